#pragma once
// Reads the JSON files of a Hugging Face checkpoint that describe its tensors: config.json,
// tokenizer_config.json and the index of weight files.
//
// Errors  BITNET_BAD_DATA or BITNET_UNSUPPORTED, naming the file.
// Source  docs/reference/weights.md#checkpoints, docs/reference/models.md

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "gguf/writer.hpp"
#include "huggingface/members.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {

// How the linear layers are stored.
enum class linear_kind : uint8_t { plain, packed, packed_inverse, master };

// Layers with a state: heads of `value_size`, in groups that share a key.
struct state_heads {
  uint64_t keys = 0, in_group = 0;  // all value heads: keys * in_group
  uint64_t key_size = 0, value_size = 0;
};

struct config {
  std::string architecture;  // GGUF's name
  linear_kind linear = linear_kind::plain;
  uint64_t n_layers = 0, n_heads = 0, n_kv_heads = 0, n_vocab = 0;
  bool tied = false;
  bool rotates_neighbours = false;  // as in GGUF's llama: rows of Q and K are reordered
  bool rotates_parts = false;       // only a part of each head rotates
  bool norms_above_one = false;     // all norms but one are stored minus 1
  // Defaults of transformers, for keys that config.json lacks.
  uint32_t usual_head_dim = 0;  // 0: embedding width / heads
  uint32_t usual_kv_heads = 0;  // 0: one per head
  float usual_theta = 10000;
  double usual_rotating_share = 1;
  bool usually_tied = false;
  // Object in rope_parameters for layers with full attention; "": rope_parameters itself.
  std::string rope_member;
  state_heads states;                            // 0: no layer has a state
  const struct checkpoint_form* form = nullptr;  // the form that read it; not nullptr afterwards
};

// GGUF's name for a tensor of a layer. Linear layers without .weight.
struct tensor_name {
  std::string_view theirs, ours;
  bool linear, rotates;
};

// How to read checkpoints of one model_type.
struct checkpoint_form {
  std::string_view model_type;
  // Reads everything but sizes from config.json: architecture, linear layers, options.
  result<config> (*read)(const nlohmann::json& c, const std::string& tokenizer);
  // Writes its own keys; nullptr: it has none.
  result<void> (*put)(const nlohmann::json& c, const config& about, uint32_t head_dim,
                      const std::string& prefix, gguf::metadata_builder& out) = nullptr;
  // Converts a tensor, which has its GGUF name already, to GGUF's form; nullptr: not needed.
  result<void> (*adjust)(gguf::file::foreign_tensor& t, const std::string& theirs,
                         const config& about) = nullptr;
  // Tensor names that only this form has, or that mean something else in it.
  std::span<const tensor_name> names{};
  // Prefixes of tensors that are not needed for text.
  std::span<const std::string_view> ignored{};
};
using forms = std::span<const checkpoint_form* const>;

// Returns the form for the model's type.
result<const checkpoint_form*> form_of(const nlohmann::json& c, forms known);

// Parses the text of the file `name`, which must be one JSON object; the error names the position.
result<nlohmann::json> parse_object(std::string_view text, const char* name);

// Reads config.json into GGUF's keys. `tokenizer`: the kind from read_tokenizer(). `made` gets the
// tensors that are computed from config.json.
result<config> read_config(const nlohmann::json& c, const std::string& tokenizer, forms known,
                           gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made);

// The files that describe the tokenizer beside tokenizer.json; null: absent.
struct tokenizer_files {
  const nlohmann::json& config;             // config.json
  const nlohmann::json& tokenizer_config;   // tokenizer_config.json
  const nlohmann::json& generation_config;  // generation_config.json
  const nlohmann::json& special_tokens;     // special_tokens_map.json
  const nlohmann::json& added_tokens;       // added_tokens.json
};
tokenizer_hints hints_of(const tokenizer_files& from);

// Adds members of tokenizer_config.json that are not used to the list, or rejects the file.
result<void> check_tokenizer_config(const nlohmann::json& t, members_left_out& out);

// Returns model_type, but "bitnet" for a BitNet model whose config.json says "llama".
std::string model_type_of(const nlohmann::json& c);

// The names of the weight files, each once: files in the folder, never paths out of it.
result<std::vector<std::string>> files_of_index(const nlohmann::json& index, const char* name);

}  // namespace bitnet::huggingface
