#pragma once
// A layer whose sequences carry a state: looked-up rows, a short convolution, the delta rule. No
// keys, no attention.

#include <cstdint>
#include <random>

#include "model/model.hpp"

namespace bitnet::conformance {

inline model recurrent_model() {
  constexpr int32_t n_k = 1, n_v = 2, d_k = 16, d_v = 24, taps = 4;
  constexpr int32_t width = 2 * n_k * d_k + n_v * d_v;
  model m;
  std::mt19937 random(11);
  const auto f32 = [&](int64_t columns) {
    return m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, columns);
  };
  const uint32_t rows = f32(width + 2 * n_v);
  m.op(BITNET_OP_EMBED_GATHER, {}, {rows},
       {m.dense(BITNET_FORMAT_F32, width + 2 * n_v, 32, random)});
  const auto columns = [&](int32_t first, int32_t length) {
    const uint32_t y = f32(length);
    bitnet_op& o = m.op(BITNET_OP_COLUMNS, {rows}, {y});
    o.ints[0] = length;
    o.ints[1] = first;
    o.ints[2] = o.ints[4] = 1;
    return y;
  };
  const uint32_t x = columns(0, width), a = columns(width, n_v), b = columns(width + n_v, n_v);
  const uint32_t mixed = f32(width), active = f32(width);
  m.op(BITNET_OP_SHORT_CONV, {x}, {mixed}, {m.dense(BITNET_FORMAT_F32, taps, width, random)});
  m.op(BITNET_OP_SILU, {mixed}, {active});
  constexpr int64_t values = int64_t{n_v} * d_v;
  const uint32_t gates = f32(int64_t{2} * n_v), y = f32(values), open = f32(values);
  const std::vector<float> of_gates = {-0.5f, -2.0f, 0.25f, -1.0f};
  m.op(BITNET_OP_DELTA_GATES, {a, b}, {gates}, {m.matrix_f32(n_v, 2, of_gates)});
  bitnet_op& rule = m.op(BITNET_OP_DELTA_RULE, {active, gates}, {y});
  rule.ints[0] = (taps - 1) * width;
  rule.ints[1] = n_k;
  rule.ints[2] = n_v;
  rule.ints[3] = d_k;
  rule.ints[4] = d_v;
  rule.floats[0] = 0.25f;
  rule.floats[1] = 1e-6f;
  m.op(BITNET_OP_SIGMOID, {y}, {open});
  m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, values);
  m.op(BITNET_OP_GATHER_ROWS, {open}, {m.logits});
  m.state_elements = (taps - 1) * width + n_v * d_k * d_v;
  return m;
}

}  // namespace bitnet::conformance
