#pragma once
// What a file's general.architecture means: keys, tensors, graph and checkpoint.
//
// Source  docs/reference/models.md#architectures

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "huggingface/config.hpp"
#include "model/architectures/graph_builder.hpp"
#include "model/architectures/keys.hpp"
#include "model/architectures/list.hpp"
#include "model/architectures/parts.hpp"
#include "model/shape/shape.hpp"

namespace bitnet::model {

enum class gate_rule : uint8_t {
  silu,
  relu2,
  gelu,
  of_vocabulary  // relu2 with a gpt2 vocabulary, else silu
};

inline void no_keys(hyperparameters& /*h*/, keys& /*in*/) {}

struct architecture {
  std::string_view name;    // as messages have it; case and punctuation do not count
  std::string_view also{};  // another name that files have for it
  gate_rule gate = gate_rule::silu;
  bool rope_neox = true;       // pairs (i, i + dims / 2), else (2i, 2i + 1)
  bool trained_on_i8 = false;  // activations had a scale for each row, whatever the weights' groups
  // Files may have a norm of what each matrix of a layer reads, <matrix>_norm_in: for all or none.
  bool input_norms = false;
  // Reads keys of its own, and says what the shape has beyond a llama's. Common keys are read by
  // then, but for those of heads.
  void (*read)(hyperparameters& h, keys& in) = no_keys;
  // The weights of layer n, in the order in which the model keeps them.
  std::vector<part> (*parts)(const hyperparameters& h, uint32_t n) = llama_parts;
  // Layer n of the graph: from its input x to its output.
  uint32_t (*layer)(graph_builder& to, uint32_t n, uint32_t x) = llama_layer;
  // From what the last layer gives to the logits.
  uint32_t (*head)(graph_builder& to, uint32_t x) = llama_head;
  // The checkpoints that are read as this, or as one of several with the same form; nullptr: none.
  const huggingface::checkpoint_form* checkpoint = nullptr;
};

namespace rows {
#define BITNET_ROW(name) extern const architecture name;
BITNET_ARCHITECTURES(BITNET_ROW)
#undef BITNET_ROW
}  // namespace rows

// nullptr: not one of ours.
const architecture* find_architecture(std::string_view spelled);
// "bitnet, bitnet-25, ... and qwen35", for messages.
std::string architecture_names();
// Each once, in the order of the list.
std::vector<const huggingface::checkpoint_form*> checkpoint_forms();

}  // namespace bitnet::model
