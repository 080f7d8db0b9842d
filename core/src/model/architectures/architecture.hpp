#pragma once
// The meaning of a file's general.architecture: its keys, tensors, graph and checkpoint.
//
// Source  docs/reference/models.md#architectures

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "huggingface/config.hpp"
#include "model/architectures/graph_builder.hpp"
#include "model/architectures/keys.hpp"
#include "model/architectures/layer_weights.hpp"
#include "model/architectures/list.hpp"
#include "model/shape/shape.hpp"

namespace bitnet::model {

enum class gate_rule : uint8_t {
  silu,
  relu2,
  gelu,
  of_vocabulary  // relu2 with a gpt2 vocabulary, else silu
};

inline void no_keys(hyperparameters& /*shape*/, keys& /*in*/) {}

struct architecture {
  std::string_view name;    // as in messages; comparison ignores case and punctuation
  std::string_view also{};  // another name in files
  gate_rule gate = gate_rule::silu;
  bool rope_neox = true;       // pairs (i, i + dims / 2), else (2i, 2i + 1)
  bool trained_on_i8 = false;  // activations had one scale per row, even with weight groups
  // Files may have a norm for the input of each matrix, <matrix>_norm_in: for all or for none.
  bool input_norms = false;
  // Reads the architecture's own keys, and sets what differs from a llama's shape. It runs after
  // the common keys, but before those of heads.
  void (*read)(hyperparameters& shape, keys& in) = no_keys;
  // Lists the weights of layer n, in the order in which the model keeps them.
  std::vector<layer_weight> (*weights)(const hyperparameters& shape, uint32_t n) = llama_weights;
  // Adds layer n to the graph; returns its output.
  uint32_t (*layer)(graph_builder& to, uint32_t n, uint32_t x) = llama_layer;
  // Adds the ops from the last layer's output to the logits.
  uint32_t (*lm_head)(graph_builder& to, uint32_t x) = llama_lm_head;
  // Reads its checkpoints; several rows may share a form; nullptr: it has none.
  const huggingface::checkpoint_form* checkpoint = nullptr;
};

namespace rows {
#define BITNET_ROW(name) extern const architecture name;
BITNET_ARCHITECTURES(BITNET_ROW)
#undef BITNET_ROW
}  // namespace rows

// Returns nullptr for an unknown name.
const architecture* find_architecture(std::string_view spelled);
// "bitnet, bitnet-25, ... and qwen35", for messages.
std::string architecture_names();
// Each form once, in the order of the list.
std::vector<const huggingface::checkpoint_form*> checkpoint_forms();

}  // namespace bitnet::model
