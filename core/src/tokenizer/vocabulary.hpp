#pragma once
// A checked vocabulary: other code of the tokenizer relies on the checks.
//
// Holds   every text is 1..4096 bytes and unique, UTF-8 unless the kind is SPM; types and scores
//         have one entry per token; special ids are inside the vocabulary.
// Errors  BITNET_BAD_DATA naming the token or key, BITNET_UNSUPPORTED for another kind.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::tokenizer {

enum class vocabulary_kind : uint8_t { bpe, spm, wordpiece };

struct vocabulary {
  vocabulary_kind kind = vocabulary_kind::bpe;
  alphabet letters = alphabet::bytes;  // BPE only
  std::vector<std::string> texts;
  std::vector<token_type> types;
  std::vector<float> scores;                        // SPM only
  std::unordered_map<std::string_view, token> ids;  // keys point into texts
  std::array<token, 256> byte_tokens{};             // "<0xHH>" by byte; -1 = none
  std::optional<token> bos, eos, eot, eom, unknown, padding;
  infill_tokens<token> infill;
  std::unordered_map<token, uint8_t> flags;  // token_flag, if not 0
  std::unordered_set<token> ends;            // docs/reference/tokenizers.md#end-tokens
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;     // SPM only
  bool prefix_unless_there = false;  // no second space
  bool prefix_at_beginning = false;  // not behind special tokens
  size_t longest_text = 0;           // bytes

  vocabulary() = default;
  vocabulary(vocabulary&&) = default;  // the heap buffers that `ids` points into move along
  vocabulary& operator=(vocabulary&&) = default;
  vocabulary(const vocabulary&) = delete;
  vocabulary& operator=(const vocabulary&) = delete;

  [[nodiscard]] std::optional<token> find(std::string_view text) const;
  [[nodiscard]] token_type type(token id) const { return types[static_cast<size_t>(id)]; }
  // Whether the token is found in a text before others: control, unknown and user-defined tokens.
  [[nodiscard]] bool is_special(token id) const;
  // Whether the vocabulary has tokens "<0xHH>" for bytes.
  [[nodiscard]] bool has_byte_tokens() const;
};

// The kind for tokenizer.ggml.model.
[[nodiscard]] result<vocabulary_kind> kind_of(std::string_view model);

// Moves tokens, types and scores out of `data`; merges stay there for BPE. `rule`: BPE only.
[[nodiscard]] result<vocabulary> check_vocabulary(vocabulary_data& data, const pre_rule& rule);

}  // namespace bitnet::tokenizer
