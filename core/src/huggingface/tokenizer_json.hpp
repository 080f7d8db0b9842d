#pragma once
// Converts the vocabulary of tokenizer.json to GGUF's metadata.
//
// Kinds    byte-level BPE becomes tokenizer.ggml.model "gpt2", with the splitting rule recognised
//          by its components. BPE with byte fallback (a converted SentencePiece model) becomes
//          "llama", with scores in the order of merges, or "gpt2" with the splitting rule
//          "sarvam-moe" if scores cannot express the merges.
// Errors   BITNET_UNSUPPORTED for other kinds, splitting rules and normalizers, BITNET_BAD_DATA
//          otherwise.
// Source   docs/reference/tokenizers.md; the file's own field names.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gguf/writer.hpp"
#include "huggingface/members.hpp"

namespace bitnet::huggingface {

// What the other files of the folder say about the tokenizer; ids override texts.
struct tokenizer_hints {
  uint64_t n_vocab = 0;  // rows of the embedding; missing tokens are added
  std::optional<uint32_t> bos, eos, padding;
  std::string bos_text, eos_text, padding_text, unknown_text;
  // From tokenizer_config.json; the post_processor overrides them.
  std::optional<bool> add_bos, add_eos;
  std::vector<uint32_t> ends;  // all tokens that end a text
  // Tokens of other files; tokenizer.json must have them under the same ids.
  std::vector<std::pair<std::string, uint32_t>> expected;
  std::string chat_template;
};

// Adds the tokenizer.* keys to `out`; returns the kind, "gpt2" or "llama". Adds unused members to
// `left_out`.
result<std::string> read_tokenizer(std::string_view tokenizer_json, const tokenizer_hints& hints,
                                   gguf::metadata_builder& out, members_left_out& left_out);

}  // namespace bitnet::huggingface
