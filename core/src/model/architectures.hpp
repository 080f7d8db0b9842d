#pragma once
// The architectures that this program runs: the only list. A row says which graph a file of that
// name means, beside what its own keys say.
//
// Source  docs/reference/models.md#architectures

#include <cstdint>
#include <string>
#include <string_view>

namespace bitnet::model {

enum class gate_rule : uint8_t {
  silu,
  relu2,
  gelu,
  of_vocabulary  // relu2 with a gpt2 vocabulary, else silu
};

struct architecture {
  std::string_view name;  // lower case, without punctuation: spellings differ in that
  gate_rule gate;
  bool rope_neox;      // pairs (i, i + dims / 2), else (2i, 2i + 1)
  bool sub_norms;      // norms behind attention and behind the gated product
  bool head_norms;     // norms of each head of q and k before they rotate
  bool trained_on_i8;  // activations had a scale for each row, whatever the weights' groups are
  // Looked-up rows times sqrt(n_embd), norms of what each part of a layer adds, and windows, with a
  // RoPE of their own, in most layers.
  bool gemma = false;
  // Layers with a state, but for each n-th, whose attention has a gate; blocks behind the layers
  // that predict further tokens; post_attention_norm is what others call ffn_norm.
  bool hybrid = false;
};

// nullptr: not one of ours.
const architecture* find_architecture(std::string_view spelled);
// "bitnet, bitnet-25, ... and qwen35", for messages.
std::string architecture_names();

}  // namespace bitnet::model
