#pragma once
// The ops of a part's program, with the facts of each that are known before a step: the level that
// the device answered, and the weights that the op reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/limits.hpp"
#include "engine/part.hpp"

namespace bitnet::engine {

struct program_op {
  uint32_t op = 0;                   // BITNET_OP_*
  uint32_t body_count = 0;           // of a composite: how many following ops are its body
  uint32_t level = 0;                // BITNET_LEVEL_*; NONE of a composite: its body runs
  std::optional<uint32_t> layer;     // of the model; nullopt: before or behind all layers
  std::vector<uint32_t> formats;     // BITNET_FORMAT_* of its weights and its body's, each once
  uint64_t weight_bytes = 0;         // of all these weights, as the model has them
  std::vector<std::string> weights;  // their names
};

// The ops in their order, composites before their bodies. The caller has device_mutex().
[[nodiscard]] result<std::vector<program_op>> program_ops(const part& on,
                                                          const session_options& options,
                                                          const limits& most);

// "blk.7.attn_q.weight" is of layer 7.
[[nodiscard]] std::optional<uint32_t> layer_of(const std::string& weight_name);

}  // namespace bitnet::engine
