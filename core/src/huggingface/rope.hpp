#pragma once
// Translates RoPE scaling from config.json to GGUF: to keys, or to tensors if no key can express
// it.
//
// Source  transformers, modeling_rope_utils.py; GGUF's names by docs/reference/rope-scaling.md.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "gguf/writer.hpp"

namespace bitnet::huggingface {

struct rope_config {
  std::string kind;              // rope_type: "default", "linear", "dynamic", "llama3", ...
  float theta = 10000;           // base of the angles
  uint32_t head_dim = 0;         // all dimensions rotate
  uint32_t longest_context = 0;  // max_position_embeddings
  std::optional<uint32_t> original_context{};
  std::optional<float> factor{}, attention_factor{};
  std::optional<float> low_freq_factor{}, high_freq_factor{};             // llama3
  std::optional<float> beta_fast{}, beta_slow{}, mscale{}, mscale_all{};  // yarn
  std::vector<float> short_factors{}, long_factors{};                     // longrope
};

// BITNET_UNSUPPORTED for another kind of scaling, BITNET_BAD_DATA if a parameter is missing.
result<void> put_rope(const rope_config& c, const std::string& prefix,
                      gguf::metadata_builder& metadata,
                      std::vector<gguf::file::foreign_tensor>& tensors);

}  // namespace bitnet::huggingface
