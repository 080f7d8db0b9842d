#pragma once
// The weights of a model in the backends' terms, and what each is for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/tensor.h"

namespace bitnet::model {

inline constexpr uint32_t no_weight = BITNET_NONE;

// HADAMARD of bitnet/abi/ops.h on blocks of `block` elements; 0: no transform.
struct transform {
  uint32_t block = 0;
  uint32_t factors = no_weight;  // index into model::weights()

  bool operator==(const transform&) const = default;
};

// A tensor in a format of bitnet/abi/tensor.h. Shape: ne[0] = K contiguous, ne[1] = M rows.
struct weight {
  std::string name;  // GGUF name
  uint32_t format = BITNET_FORMAT_NONE;
  uint32_t rank = 2;
  int64_t ne[2] = {1, 1};
  uint64_t data_bytes = 0;    // in `format`
  uint64_t scale_group = 0;   // ternary: see bitnet_tensor_desc
  std::vector<float> scales;  // in memory while held: model::hold_scales
  // The file's bytes if they are already in `format` (32-byte aligned, mapped for the life of the
  // model), else empty: then stream_weight converts.
  std::span<const std::byte> alias;
  uint32_t source_type = 0;  // GGUF type id
  // For the matrix of a linear layer, what is applied to its input first; at most one of them.
  transform of_input;               // factors are applied first
  uint32_t input_norm = no_weight;  // index into model::weights() of a norm's factors
};

// The rotation of queries and keys in a context of a given length.
struct rotation {
  float base = 10000;
  float scale = 1;                // multiplies the position
  uint32_t divisors = no_weight;  // index into model::weights() of divisors of the angles
  float magnitude = 1;            // see rope_scaling

  bool operator==(const rotation&) const = default;
};

// Indices into model::weights().
struct layer {
  uint32_t attn_norm = no_weight;
  uint32_t attn_q = no_weight, attn_k = no_weight, attn_v = no_weight, attn_output = no_weight;
  uint32_t ffn_norm = no_weight, ffn_gate = no_weight, ffn_up = no_weight, ffn_down = no_weight;
  uint32_t attn_sub_norm = no_weight, ffn_sub_norm = no_weight;
  uint32_t attn_q_norm = no_weight, attn_k_norm = no_weight;
  uint32_t post_attention_norm = no_weight, post_ffw_norm = no_weight;
  // For recurrent layers: the mixed input, its gate, the inputs of decay and strength; factors of
  // the convolution (channels x taps) and of the decays (2 x value_heads); norm of heads; output
  // matrix.
  uint32_t attn_qkv = no_weight, attn_gate = no_weight, ssm_alpha = no_weight, ssm_beta = no_weight;
  uint32_t ssm_conv = no_weight, ssm_gates = no_weight, ssm_norm = no_weight, ssm_out = no_weight;
};

// The largest of 32, 64 and 128 up to `wanted` that fits the width and the scale groups of a
// ternary weight (LINEAR_TERNARY_GROUPED in ops.h); 0: none fits, or `wanted` is 0.
uint32_t activation_group_of(const weight& w, uint32_t wanted);

}  // namespace bitnet::model
