// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Kernels of every primitive op: an author lists kernels of their own and takes the rest from here.
//
//   d.primitives = {my own};
//   bitnet::sdk::reference::complete(d);
//
// The kernels are plain rather than fast. They share no code with bitnet-backend-conformance, which
// tests them like all others.

#include <cstdint>
#include <utility>
#include <vector>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/reference/attention.hpp"
#include "bitnet/sdk/reference/products.hpp"
#include "bitnet/sdk/reference/recurrent.hpp"
#include "bitnet/sdk/reference/rows.hpp"

namespace bitnet::sdk::reference {

// Adapts the functions beside this file to kernels of the interpreter.
namespace kernels {

inline void embed_gather(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    reference::embed_gather(*c.w, static_cast<uint64_t>(c.step->tokens[t]),
                            c.output<float>(0) + t * c.m);
}

inline void rms_norm(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    reference::rms_norm(c.input<float>(0) + r * c.k, c.w->f32(), c.floats[0], c.k,
                        c.output<float>(0) + r * c.k);
}

inline void rms_norm_heads(const call& c, const share& s) noexcept {
  const uint64_t width = c.w->k;
  for (uint64_t at = s.first * c.k; at < s.last * c.k; at += width)
    reference::rms_norm(c.input<float>(0) + at, c.w->f32(), c.floats[0], width,
                        c.output<float>(0) + at);
}

inline void hadamard(const call& c, const share& s) noexcept {
  for (uint64_t at = s.first * c.k; at < s.last * c.k; at += c.k)
    reference::hadamard(c.input<float>(0) + at, c.w ? c.w->f32() : nullptr, c.ints[1], c.k,
                        static_cast<uint64_t>(c.ints[0]), c.output<float>(0) + at);
}

inline void act_quant_i8_grouped(const call& c, const share& s) noexcept {
  const auto group = static_cast<uint64_t>(c.ints[0]);
  for (uint64_t r = s.first; r < s.last; ++r)
    reference::act_quant_i8_grouped(c.input<float>(0) + r * c.k, c.k, group,
                                    c.output<int8_t>(0) + r * c.k,
                                    c.output<float>(1) + r * (c.k / group));
}

inline void linear_ternary_grouped(const call& c, const share& s) noexcept {
  reference::linear_ternary_grouped(*c.w, c.input<int8_t>(0), c.input<float>(1), c.k1, c.rows,
                                    s.first, s.last, c.output<float>(0));
}

inline void act_quant_i8(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    reference::act_quant_i8(c.input<float>(0) + r * c.k, c.k, c.output<int8_t>(0) + r * c.k,
                            c.output<float>(1) + r);
}

inline void linear_ternary(const call& c, const share& s) noexcept {
  reference::linear_ternary(*c.w, c.input<int8_t>(0), c.input<float>(1), c.rows, s.first, s.last,
                            c.output<float>(0));
}

inline void linear_dense(const call& c, const share& s) noexcept {
  reference::linear_dense(*c.w, c.input<float>(0), c.rows, s.first, s.last, c.output<float>(0));
}

inline void rope(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    reference::rope(c.input<float>(0) + t * c.k, static_cast<uint64_t>(c.ints[0]),
                    static_cast<uint64_t>(c.ints[1]), static_cast<uint64_t>(c.ints[2]), c.ints[3],
                    c.floats[0], c.floats[1], c.step->positions[t], c.w ? c.w->f32() : nullptr,
                    c.output<float>(0) + t * c.k);
}

inline void kv_write(const call& c, const share& s) noexcept {
  const kv_storage& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto slot = static_cast<uint64_t>(c.step->slots[t]);
    for (uint64_t head = 0; head < kv.n_kv_heads; ++head) {
      const uint64_t at = t * c.k + head * kv.head_dim;
      reference::kv_write(c.input<float>(0) + at, kv.head_dim, kv.dtype_k, kv.k(layer, slot, head));
      reference::kv_write(c.input<float>(1) + at, kv.head_dim, kv.dtype_v, kv.v(layer, slot, head));
    }
  }
}

inline void attn_paged(const call& c, const share& s) noexcept {
  const kv_storage& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto n_kv_heads = static_cast<uint64_t>(c.ints[2]);
  const auto head_dim = static_cast<uint64_t>(c.ints[3]);
  const uint64_t heads = static_cast<uint64_t>(c.ints[1]) / n_kv_heads;
  for (uint64_t unit = s.first; unit < s.last; ++unit) {
    const uint64_t t = unit / n_kv_heads, kv_head = unit % n_kv_heads;
    const step_view::sight sight = c.step->sees(t, c.ints[4]);
    const auto slot = [&](uint64_t n) {
      const uint64_t position = sight.position(n);
      const auto block = static_cast<uint64_t>(c.step->blocks_of(t)[position / kv.block_tokens]);
      return block * kv.block_tokens + position % kv.block_tokens;
    };
    const uint64_t at = t * c.k + kv_head * heads * head_dim;
    attention(
        c.input<float>(0) + at, heads, head_dim, c.floats[0], sight.count(),
        [&](uint64_t n) { return kv.k(layer, slot(n), kv_head); }, kv.dtype_k,
        [&](uint64_t n) { return kv.v(layer, slot(n), kv_head); }, kv.dtype_v, s.scratch,
        c.output<float>(0) + at);
  }
}

template <void (*Row)(const float*, const float*, uint64_t, float*) noexcept>
void binary(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    Row(c.input<float>(0) + r * c.k, c.input<float>(1) + r * c.k, c.k,
        c.output<float>(0) + r * c.k);
}

inline void scale(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    reference::scale(c.input<float>(0) + r * c.k, c.floats[0], c.k, c.output<float>(0) + r * c.k);
}

inline void columns(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    reference::columns(c.input<float>(0) + r * c.k, c.ints, c.output<float>(0) + r * c.m);
}

inline void short_conv(const call& c, const share& s) noexcept {
  const uint64_t n = c.w->k;
  for (uint64_t t = 0; t < c.rows;) {
    const auto [first, end, state, fresh] = c.step->stretch_from(t, c.ints[0]);
    const float* x = c.input<float>(0) + first * c.k;
    for (uint64_t row = 0; row < end - first; ++row)
      reference::short_conv(x, fresh ? nullptr : state, c.w->f32(), row, c.k, n, s.first, s.last,
                            c.output<float>(0) + first * c.k);
    reference::short_conv_keep(x, end - first, c.k, n, s.first, s.last, fresh, state);
    t = end;
  }
}

inline void delta_gates(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    reference::delta_gates(c.input<float>(0) + t * c.k, c.input<float>(1) + t * c.k, c.w->f32(),
                           c.k, c.output<float>(0) + t * c.m);
}

// The places of the queries, keys and values of value head h in a row.
struct delta_heads {
  uint64_t n_k, n_v, d_k, d_v;
  bool blocks;
  explicit delta_heads(const call& c) noexcept
      : n_k(static_cast<uint64_t>(c.ints[1])),
        n_v(static_cast<uint64_t>(c.ints[2])),
        d_k(static_cast<uint64_t>(c.ints[3])),
        d_v(static_cast<uint64_t>(c.ints[4])),
        blocks(c.ints[5] == BITNET_DELTA_BLOCKS) {}
  uint64_t query(uint64_t h) const noexcept { return (blocks ? h / (n_v / n_k) : h % n_k) * d_k; }
  uint64_t key(uint64_t h) const noexcept { return n_k * d_k + query(h); }
  uint64_t value(uint64_t h) const noexcept { return 2 * n_k * d_k + h * d_v; }
};

inline void delta_rule(const call& c, const share& s) noexcept {
  const delta_heads at(c);
  for (uint64_t t = 0; t < c.rows;) {
    const auto [first, end, part, fresh] = c.step->stretch_from(t, c.ints[0]);
    for (uint64_t h = s.first; h < s.last; ++h) {
      float* state = part + h * at.d_k * at.d_v;
      if (fresh) std::fill_n(state, at.d_k * at.d_v, 0.0f);
      for (uint64_t row = first; row < end; ++row) {
        const float* x = c.input<float>(0) + row * c.k;
        const float* gates = c.input<float>(1) + row * c.k1;
        reference::delta_rule(x + at.query(h), x + at.key(h), x + at.value(h), gates[h],
                              gates[at.n_v + h], c.floats[0], c.floats[1], at.d_k, at.d_v, state,
                              c.output<float>(0) + row * c.m + h * at.d_v);
      }
    }
    t = end;
  }
}

template <void (*Row)(const float*, uint64_t, float*) noexcept>
void unary(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    Row(c.input<float>(0) + r * c.k, c.k, c.output<float>(0) + r * c.k);
}

inline void gather_rows(const call& c, const share& s) noexcept {
  for (uint64_t o = s.first; o < s.last; ++o)
    reference::gather_rows(c.input<float>(0), c.step->output_rows, o, c.k, c.output<float>(0));
}

}  // namespace kernels

// One row for each primitive, for any format.
inline std::vector<primitive> primitives() {
  constexpr uint32_t any = BITNET_FORMAT_NONE;
  constexpr uint32_t level = BITNET_LEVEL_REFERENCE;
  constexpr uint32_t same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  constexpr uint32_t whole = same | BITNET_EXACT_INTEGER;
  return {
      {BITNET_OP_EMBED_GATHER, any, level, same, "embed_gather.reference", kernels::embed_gather},
      {BITNET_OP_RMS_NORM, any, level, same, "rms_norm.reference", kernels::rms_norm},
      {BITNET_OP_ACT_QUANT_I8, any, level, whole, "act_quant_i8.reference", kernels::act_quant_i8},
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, level, whole,
       "linear_ternary.ternary2.reference", kernels::linear_ternary},
      {BITNET_OP_RMS_NORM_HEADS, any, level, same, "rms_norm_heads.reference",
       kernels::rms_norm_heads},
      {BITNET_OP_ACT_QUANT_I8_GROUPED, any, level, whole, "act_quant_i8_grouped.reference",
       kernels::act_quant_i8_grouped},
      {BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_FORMAT_TERNARY2, level, whole,
       "linear_ternary_grouped.ternary2.reference", kernels::linear_ternary_grouped},
      {BITNET_OP_HADAMARD, any, level, same, "hadamard.reference", kernels::hadamard},
      {BITNET_OP_LINEAR_DENSE, any, level, same, "linear_dense.reference", kernels::linear_dense},
      {BITNET_OP_ROPE, any, level, same, "rope.reference", kernels::rope},
      {BITNET_OP_KV_WRITE, any, level, same, "kv_write.reference", kernels::kv_write},
      {BITNET_OP_ATTN_PAGED, any, level, same, "attn_paged.reference", kernels::attn_paged},
      {BITNET_OP_ADD, any, level, same, "add.reference", kernels::binary<add>},
      {BITNET_OP_MUL, any, level, same, "mul.reference", kernels::binary<mul>},
      {BITNET_OP_RELU2, any, level, same, "relu2.reference", kernels::unary<relu2>},
      {BITNET_OP_SILU, any, level, same, "silu.reference", kernels::unary<silu>},
      {BITNET_OP_GELU, any, level, same, "gelu.reference", kernels::unary<gelu>},
      {BITNET_OP_SCALE, any, level, same, "scale.reference", kernels::scale},
      {BITNET_OP_SIGMOID, any, level, same, "sigmoid.reference", kernels::unary<sigmoid>},
      {BITNET_OP_COLUMNS, any, level, same, "columns.reference", kernels::columns},
      {BITNET_OP_SHORT_CONV, any, level, same, "short_conv.reference", kernels::short_conv},
      {BITNET_OP_DELTA_GATES, any, level, same, "delta_gates.reference", kernels::delta_gates},
      {BITNET_OP_DELTA_RULE, any, level, same, "delta_rule.reference", kernels::delta_rule},
      {BITNET_OP_GATHER_ROWS, any, level, same, "gather_rows.reference", kernels::gather_rows},
  };
}

// Adds the reference kernels after the author's own, which take precedence. If all KV kernels come
// from here, it also sets what the device can do with keys, values and attention. If the author
// drops the rows of ternary weights, grouped products could not read them, so these and their
// quantiser are left out.
inline void complete(definition& d) {
  bool own_kv = false, rows_dropped = false;
  for (const primitive& p : d.primitives) {
    own_kv = own_kv || p.op == BITNET_OP_KV_WRITE || p.op == BITNET_OP_ATTN_PAGED;
    rows_dropped = rows_dropped ||
                   (p.op == BITNET_OP_LINEAR_TERNARY && p.packing.bytes && p.packing.drops_rows);
  }
  for (const composite& c : d.composites)
    own_kv = own_kv || c.op == BITNET_OP_QKV_ROPE_KV || c.op == BITNET_OP_ATTN_OUT;
  if (!own_kv) {
    d.device.kv_dtypes = kv_dtypes;
    d.device.attention_flags |= BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  }
  for (primitive& p : primitives()) {
    const bool grouped =
        p.op == BITNET_OP_ACT_QUANT_I8_GROUPED || p.op == BITNET_OP_LINEAR_TERNARY_GROUPED;
    if (!grouped || !rows_dropped) d.primitives.push_back(std::move(p));
  }
}

}  // namespace bitnet::sdk::reference
