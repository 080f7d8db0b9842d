#pragma once
// The JSON files of a Hugging Face checkpoint that say what its tensors are: config.json,
// tokenizer_config.json and the index of the files with weights.
//
// Errors  BITNET_BAD_DATA or BITNET_UNSUPPORTED, naming the file.
// Source  docs/reference/weights.md#checkpoints, docs/reference/models.md

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "gguf/writer.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {

// How the linear layers are kept.
enum class linear_kind : uint8_t { plain, packed, packed_inverse, master };

// Of layers that keep a state: heads of `value_size` in groups that share a key.
struct state_heads {
  uint64_t keys = 0, in_group = 0;  // all value heads: keys * in_group
  uint64_t key_size = 0, value_size = 0;
};

struct config {
  std::string architecture;  // of GGUF
  linear_kind linear = linear_kind::plain;
  uint64_t n_layers = 0, n_heads = 0, n_kv_heads = 0, n_vocab = 0;
  bool tied = false;
  bool rotates_neighbours = false;  // GGUF's llama; its Q and K rows are reordered
  bool gemma = false;               // four norms to a layer
  bool norms_above_one = false;     // each but one is kept as what it is above 1
  state_heads states;               // of qwen35; 0: no layer keeps one
};

// The text of the file `name`, which must be one JSON object.
result<nlohmann::json> parse_object(std::string_view text, const char* name);

// Of config.json, in GGUF's words; `tokenizer` is the kind that read_tokenizer() found. `made` gets
// the tensors that config.json stands for.
result<config> read_config(const nlohmann::json& c, const std::string& tokenizer,
                           gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made);

// What config.json and tokenizer_config.json say about the tokenizer.
tokenizer_hints hints_of(const nlohmann::json& c, const nlohmann::json& t);

// The names of the files with weights, each once: files of the folder, never paths out of it.
result<std::vector<std::string>> files_of_index(const nlohmann::json& index, const char* name);

}  // namespace bitnet::huggingface
