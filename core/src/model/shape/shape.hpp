#pragma once
// The hyperparameters of a model.
//
// Source  docs/reference/models.md

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/shape/rope.hpp"

namespace bitnet::model {

enum class activation : uint8_t { relu2, silu, gelu };

// Layers with a state in place of keys: a short convolution, then the gated delta rule. Value head
// h uses key head h % key_heads.
struct recurrence {
  uint32_t taps = 0;  // rows that the convolution reads
  uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  // The input of their last matrix was rotated with heads in another order: heads that share a key
  // head stand side by side.
  bool regrouped = false;

  [[nodiscard]] uint64_t values() const { return uint64_t{value_heads} * value_dim; }
  [[nodiscard]] uint64_t channels() const { return 2 * uint64_t{key_heads} * key_dim + values(); }
  // f32 elements of a layer's state: rows of the convolution, then the heads.
  [[nodiscard]] uint64_t rows_elements() const { return (taps - 1) * channels(); }
  [[nodiscard]] uint64_t elements() const { return rows_elements() + key_dim * values(); }
};

struct architecture;

// A part of a model: the layers [first, last), with the embedding before them and what makes logits
// or embeddings behind them.
struct section {
  uint32_t first = 0, last = 0;
  bool embedding = true, lm_head = true;

  bool operator==(const section&) const = default;
};

struct hyperparameters {
  const model::architecture* arch = nullptr;  // nullptr: only the vocabulary is known
  std::string architecture;                   // as the file spells it
  std::string name;                           // general.name, may be empty
  uint32_t n_vocab = 0;
  uint32_t n_context = 0;  // trained length
  uint32_t n_layers = 0;
  uint32_t n_skipped = 0;  // blocks behind the layers that predict further tokens; not used
  uint32_t n_embedding = 0;
  uint32_t n_feed_forward = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t rope_dims = 0;   // rotated dimensions of a head, even, <= head_dim
  float rope_base = 10000;  // theta
  float rope_scale = 1;     // multiplies the position
  model::rope_scaling rope_scaling{};
  bool rope_neox = true;  // false: pairs (2i, 2i+1)
  float rms_epsilon = 1e-5F;
  bool sub_norms = false;       // behind attention and behind the gated product
  bool head_norms = false;      // of each head of q and k before they rotate
  bool post_norms = false;      // of the outputs of attention and gated product
  bool input_norms = false;     // of the input of each matrix
  float embedding_scale = 1;    // of looked-up rows; a tied head uses the rows unscaled
  float attention_divisor = 0;  // divides the products of queries and keys
  // Layers that see `window` tokens, their own included, and rotate by local_rope_base without
  // scaling. Empty: none.
  std::vector<bool> windowed{};
  uint32_t window = 0;
  float local_rope_base = 10000;
  // Which layers are recurrent; empty: none.
  std::vector<bool> recurrent{};
  model::recurrence recurrence{};
  bool trained_on_i8 = true;
  activation gate = activation::relu2;
  uint32_t pooling = 0;        // the file's number of the pooling; 0: it has none
  std::array<float, 4> own{};  // numbers that only the architecture's own functions use
  // Elements of a row of activations that share a scale when ternary weights read them; 0: the
  // whole row. A smaller group is used if this one does not fit: activation_group_of.
  uint32_t activation_group = 0;

  [[nodiscard]] bool is_recurrent(uint32_t layer) const {
    return !recurrent.empty() && recurrent[layer];
  }
  [[nodiscard]] uint32_t n_recurrent() const {
    return static_cast<uint32_t>(std::ranges::count(recurrent, true));
  }
  // Layers with keys and values.
  [[nodiscard]] uint32_t n_attending() const { return n_layers - n_recurrent(); }
  // f32 elements of a sequence's state; 0: none.
  [[nodiscard]] uint64_t state_elements() const {
    return recurrent.empty() ? 0 : n_recurrent() * recurrence.elements();
  }

  [[nodiscard]] section whole() const { return {.first = 0, .last = n_layers}; }
  // The same for a section.
  [[nodiscard]] uint32_t n_recurrent(const section& of) const {
    uint32_t n = 0;
    for (uint32_t i = of.first; i < of.last; ++i) n += is_recurrent(i) ? 1 : 0;
    return n;
  }
  [[nodiscard]] uint32_t n_attending(const section& of) const {
    return of.last - of.first - n_recurrent(of);
  }
  [[nodiscard]] uint64_t state_elements(const section& of) const {
    return recurrent.empty() ? 0 : n_recurrent(of) * recurrence.elements();
  }
};

}  // namespace bitnet::model
