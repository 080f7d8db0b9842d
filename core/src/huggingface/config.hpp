#pragma once
// The JSON files of a Hugging Face checkpoint that say what its tensors are: config.json,
// tokenizer_config.json and the index of the files with weights.
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
  bool rotates_parts = false;       // of heads
  bool norms_above_one = false;     // each but one is kept as what it is above 1
  // Where config.json is silent, as transformers has them.
  uint32_t usual_head_dim = 0;  // 0: the embedding over the heads
  uint32_t usual_kv_heads = 0;  // 0: as many as heads
  float usual_theta = 10000;
  double usual_rotating_share = 1;
  bool usually_tied = false;
  // The object in rope_parameters for layers that see everything; "": rope_parameters itself.
  std::string rope_member;
  state_heads states;                            // 0: no layer keeps one
  const struct checkpoint_form* form = nullptr;  // what read it; never nullptr afterwards
};

// What a tensor of a layer is called in GGUF. Linear ones without .weight.
struct tensor_name {
  std::string_view theirs, ours;
  bool linear, rotates;
};

// How checkpoints of one model_type are read.
struct checkpoint_form {
  std::string_view model_type;
  // What kind of model it is: architecture, linear layers, and what else config says beside sizes.
  result<config> (*read)(const nlohmann::json& c, const std::string& tokenizer);
  // Keys of its own; nullptr: none.
  result<void> (*put)(const nlohmann::json& c, const config& about, uint32_t head_dim,
                      const std::string& prefix, gguf::metadata_builder& out) = nullptr;
  // Brings a tensor that has its name of GGUF into GGUF's form; nullptr: all are in it.
  result<void> (*adjust)(gguf::file::foreign_tensor& t, const std::string& theirs,
                         const config& about) = nullptr;
  // Names that mean something else in it, or nothing elsewhere.
  std::span<const tensor_name> names{};
  // Beginnings of the names of tensors that are no part of the graph of a text.
  std::span<const std::string_view> ignored{};
};
using forms = std::span<const checkpoint_form* const>;

// What reads a model of that type.
result<const checkpoint_form*> form_of(const nlohmann::json& c, forms known);

// The text of the file `name`, which must be one JSON object; where it is none, and why.
result<nlohmann::json> parse_object(std::string_view text, const char* name);

// Of config.json, in GGUF's words; `tokenizer` is the kind that read_tokenizer() found. `made` gets
// the tensors that config.json stands for.
result<config> read_config(const nlohmann::json& c, const std::string& tokenizer, forms known,
                           gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made);

// The files that say something about the tokenizer beside tokenizer.json; null: not there.
struct tokenizer_files {
  const nlohmann::json& config;             // config.json
  const nlohmann::json& tokenizer_config;   // tokenizer_config.json
  const nlohmann::json& generation_config;  // generation_config.json
  const nlohmann::json& special_tokens;     // special_tokens_map.json
  const nlohmann::json& added_tokens;       // added_tokens.json
};
tokenizer_hints hints_of(const tokenizer_files& from);

// Names what else tokenizer_config.json asks for, or refuses it.
result<void> check_tokenizer_config(const nlohmann::json& t, members_left_out& out);

// model_type, but "bitnet" for a BitNet model whose config.json calls it "llama".
std::string model_type_of(const nlohmann::json& c);

// The names of the files with weights, each once: files of the folder, never paths out of it.
result<std::vector<std::string>> files_of_index(const nlohmann::json& index, const char* name);

}  // namespace bitnet::huggingface
