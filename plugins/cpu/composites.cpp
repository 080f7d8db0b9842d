// Fused forms: the same row and tile functions as the primitives, in fewer parallel regions. This
// saves barriers: a layer of BitNet b1.58 has 10 of them instead of 25, and 5 in steps of one
// token.
//
// BIT_LINEAR has no fused form: it would have as many regions as its body.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "ops/ops.hpp"
#include "ops/ternary_tiles.hpp"
#include "ops/top_head.hpp"
#include "primitives.hpp"

namespace bitnet::cpu {
namespace {

using sdk::call;
using sdk::roles;
using sdk::share;
using sdk::team;

using sdk::column_grain;

const isa_form& isa_of(const call& c) {
  return *static_cast<const isa_form*>(c.author_data);
}

// [RMS_NORM], ACT_QUANT_I8 of row r. The norm's result goes to `normed` (k): no other op reads it.
void norm_quant(const call* norm, const call& quant, uint64_t r, float* normed, int8_t* codes,
                float* scale) {
  const row_kernels& rows_of = isa_of(quant).rows;
  const uint64_t k = quant.k;
  const float* x = quant.input<float>(0) + r * k;
  if (norm) {
    rows_of.rms_norm(norm->input<float>(0) + r * k, norm->w->f32(), norm->floats[0], k, normed);
    x = normed;
  }
  rows_of.act_quant(x, k, codes, scale);
}

// The activations of products. For a few tokens each worker makes all of them in its own memory,
// which takes about as long as making a part and waiting for the others.
class quantised {
 public:
  quantised(const call* norm, const call& quant, team& workers) {
    const uint64_t k = quant.k;
    const share rows = workers.split(quant.rows);
    auto* codes = quant.output<int8_t>(0);
    auto* scales = quant.output<float>(1);
    if (quant.rows <= most_own_rows && workers.size() > 1) {
      auto* own = static_cast<uint8_t*>(rows.keep) + keep_row_at;
      scales = reinterpret_cast<float*>(own);
      auto* normed = reinterpret_cast<float*>(own + keep_line);
      codes = reinterpret_cast<int8_t*>(normed + k);
      for (uint64_t r = 0; r < quant.rows; ++r)
        norm_quant(norm, quant, r, normed, codes + r * k, scales + r);
    } else {
      // All rows use the place of the worker's first row, which stays in the first-level cache.
      float* normed = norm ? norm->output<float>(0) + rows.first * k : nullptr;
      for (uint64_t r = rows.first; r < rows.last; ++r)
        norm_quant(norm, quant, r, normed, codes + r * k, scales + r);
      workers.sync();
    }
    codes_ = codes;
    scales_ = scales;
  }
  // The product with these activations as inputs.
  call read_by(const call& linear) const {
    call out = linear;
    out.in[0] = codes_;
    out.in[1] = scales_;
    return out;
  }

 private:
  const int8_t* codes_;
  const float* scales_;
};

void linear_columns(const call& c, uint64_t first, uint64_t last, void* room) {
  linear_ternary(isa_of(c), *c.w, c.input<int8_t>(0), c.input<float>(1),
                 {.tokens = c.rows, .first = first, .last = last, .y = c.output<float>(0)}, room);
}

// Fewest columns of a piece of a product: with fewer, products of many tokens would not use tables.
uint64_t fewest_columns(const call& linear) {
  const bool tables = isa_of(linear).tables.run != nullptr && linear.rows >= fewest_panel_tokens;
  return tables ? fewest_table_rows : 0;
}

// LINEAR_TERNARY, then ADD, by columns.
void linear_add(const call& linear, const call& add, team& workers) {
  workers.deal(
      linear.m, column_grain,
      [&](const share& columns) {
        linear_columns(linear, columns.first, columns.last, columns.scratch);
        for (uint64_t r = 0; r < linear.rows; ++r) {
          const uint64_t at = r * linear.m + columns.first;
          isa_of(add).rows.add(add.input<float>(0) + at, add.input<float>(1) + at,
                               columns.last - columns.first, add.output<float>(0) + at);
        }
      },
      fewest_columns(linear));
}

void rope_write(const call* body, const roles& parts, const share& tokens) {
  const call& write = body[parts.kv_write];
  for (uint64_t t = tokens.first; t < tokens.last; ++t) {
    for (const uint8_t part : {parts.rope_q, parts.rope_k}) {
      const call& rope = body[part];
      rope_row(isa_of(rope), rope.input<float>(0) + t * rope.k, t, rope.step->positions[t], rope,
               *static_cast<rope_angles*>(tokens.keep), rope.output<float>(0) + t * rope.k);
    }
    kv_write_row(isa_of(write), write.step->kv, static_cast<uint64_t>(write.ints[0]),
                 static_cast<uint64_t>(write.step->slots[t]), write.input<float>(0) + t * write.k,
                 write.input<float>(1) + t * write.k);
  }
}
void rope_write_token(const call* body, const roles& parts, team& workers) noexcept {
  share only = workers.split(1);
  only.first = 0;
  only.last = 1;
  rope_write(body, parts, only);
}

void qkv_rope_kv(const call* body, const roles& parts, team& workers) noexcept {
  const quantised x(&body[parts.norm], body[parts.quant], workers);
  // q, k and v as one matrix: each range covers the columns of all three.
  const call matrices[] = {x.read_by(body[parts.q]), x.read_by(body[parts.k]),
                           x.read_by(body[parts.v])};
  const uint64_t all = matrices[0].m + matrices[1].m + matrices[2].m;
  workers.deal(
      all, column_grain,
      [&](const share& columns) {
        uint64_t start = 0;
        for (const call& c : matrices) {
          const uint64_t first = std::clamp(columns.first, start, start + c.m) - start;
          const uint64_t last = std::clamp(columns.last, start, start + c.m) - start;
          if (first < last) linear_columns(c, first, last, columns.scratch);
          start += c.m;
        }
      },
      fewest_columns(matrices[0]));
  const uint64_t n_tokens = body[parts.kv_write].rows;
  if (n_tokens == 1) return workers.leave_to_last(rope_write_token);
  workers.sync();
  rope_write(body, parts, workers.split(n_tokens));
}

void attn_out(const call* body, const roles& parts, team& workers) noexcept {
  const call& attention = body[parts.attention];
  if (attention.rows >= fewest_attending) {
    // Later tokens attend to more keys, so workers with earlier tokens take over some of them.
    workers.deal(attention.rows * static_cast<uint64_t>(attention.ints[attention_ints::n_kv_heads]),
                 1, [&](const share& s) { attention_of_tokens(isa_of(attention), attention, s); });
  } else {
    const share heads = workers.split(
        attention.rows * static_cast<uint64_t>(attention.ints[attention_ints::n_heads]));
    cpu::attention(isa_of(attention), attention, heads.first, heads.last, heads.scratch);
  }
  workers.sync();
  const quantised x(parts.norm == roles::absent ? nullptr : &body[parts.norm], body[parts.quant],
                    workers);
  linear_add(x.read_by(body[parts.linear]), body[parts.add], workers);
}

template <void (*row_kernels::*Activation)(const float*, uint64_t, float*)>
void ffn_gated(const call* body, const roles& parts, team& workers) noexcept {
  const quantised x(&body[parts.norm], body[parts.quant], workers);
  // One worker computes gate, up, activation and product of the same columns.
  const call gate = x.read_by(body[parts.gate]), up = x.read_by(body[parts.up]);
  const call& activation = body[parts.activation];
  const call& mul = body[parts.mul];
  const row_kernels& rows_of = isa_of(mul).rows;
  workers.deal(
      gate.m, column_grain,
      [&](const share& columns) {
        linear_columns(gate, columns.first, columns.last, columns.scratch);
        linear_columns(up, columns.first, columns.last, columns.scratch);
        for (uint64_t r = 0; r < gate.rows; ++r) {
          const uint64_t at = r * gate.m + columns.first, n = columns.last - columns.first;
          (rows_of.*Activation)(activation.input<float>(0) + at, n,
                                activation.output<float>(0) + at);
          rows_of.mul(mul.input<float>(0) + at, mul.input<float>(1) + at, n,
                      mul.output<float>(0) + at);
        }
      },
      fewest_columns(gate));
  workers.sync();
  const quantised y(parts.sub_norm == roles::absent ? nullptr : &body[parts.sub_norm],
                    body[parts.sub_quant], workers);
  linear_add(y.read_by(body[parts.linear]), body[parts.add], workers);
}

// GATHER_ROWS, RMS_NORM of output rows [first, last).
void gather_norm(const call* body, const roles& parts, const share& rows) {
  const call& gather = body[parts.gather];
  const call& norm = body[parts.norm];
  const uint64_t k = gather.k;
  for (uint64_t o = rows.first; o < rows.last; ++o) {
    float* row = gather.output<float>(0) + o * k;
    std::memcpy(row,
                gather.input<float>(0) + static_cast<uint64_t>(gather.step->output_rows[o]) * k,
                k * sizeof(float));
    isa_of(norm).rows.rms_norm(row, norm.w->f32(), norm.floats[0], k,
                               norm.output<float>(0) + o * k);
  }
}

void lm_head(const call* body, const roles& parts, team& workers) noexcept {
  const call& linear = body[parts.linear];
  gather_norm(body, parts, workers.split(linear.rows));
  workers.sync();
  workers.deal(linear.m, column_grain, [&](const share& columns) {
    linear_dense(isa_of(linear), *linear.w, linear.input<float>(0),
                 {.tokens = linear.rows,
                  .first = columns.first,
                  .last = columns.last,
                  .y = linear.output<float>(0)},
                 columns.scratch);
  });
}

template <top_head_bits Bits>
sdk::top_state prepare_top_head(const call* body, const roles& parts, uint32_t workers) {
  const sdk::weight& w = *body[parts.linear].w;
  const uint64_t bytes = top_head::packed_bytes(w, Bits);
  if (bytes == 0) return {};
  return {std::make_shared<top_head>(w, Bits, workers), bytes};
}

template <top_head_bits Bits>
sdk::packing packing_of() {
  sdk::packing out{top_head::layout_id(Bits),
                   [](const sdk::weight& w) { return top_head::packed_bytes(w, Bits); },
                   [](const sdk::weight& w, const void* author_data, uint64_t first, uint64_t last,
                      uint8_t* to) noexcept {
                     top_head::pack(w, Bits, *static_cast<const isa_form*>(author_data), first,
                                    last, to);
                   }};
  out.row_bytes = [](const sdk::weight& w) { return top_head::row_bytes(w, Bits); };
  return out;
}

// What depends on the bits of the copy: names, packing and kernels.
struct first_pass {
  const char *name, *isa;
  sdk::packing packing;
  sdk::top_state (*prepare)(const call* body, const roles& parts, uint32_t workers);
};

template <top_head_bits Bits>
first_pass pass_of(const char* name, const char* isa) {
  return {name, isa, packing_of<Bits>(), prepare_top_head<Bits>};
}

first_pass first_pass_of(const isa_form& isa, top_head_bits bits) {
  if (bits == top_head_bits::four) return pass_of<top_head_bits::four>("i4", isa.linear_i4.isa);
  if (bits == top_head_bits::six) return pass_of<top_head_bits::six>("i6", isa.linear_i6.isa);
  return pass_of<top_head_bits::eight>("i8", isa.linear_i8.isa);
}

// Output rows [first, first + n); n is at most top_head::max_outputs.
void some_largest(const call* body, const roles& parts, team& workers, uint64_t first, uint64_t n) {
  const call& linear = body[parts.linear];
  const isa_form& isa = isa_of(linear);
  auto& head = *static_cast<top_head*>(linear.prepared);
  const share columns = workers.split(linear.m, column_grain);
  share rows = workers.split(n);
  const float* x = linear.input<float>(0) + first * linear.k;
  const uint32_t top = linear.step->top_logits;
  bitnet_largest* largest = top <= BITNET_MOST_LARGEST ? linear.step->largest : nullptr;
  if (largest) largest += first;
  for (uint64_t o = rows.first; o < rows.last; ++o) {
    gather_norm(body, parts, {first + o, first + o + 1, rows.scratch, rows.keep});
    head.take(o, x + o * linear.k);
    if (largest) largest[o].count = 0;
  }
  workers.sync();
  float* y = linear.output<float>(0) + first * linear.m;
  // The number of the step's tokens does not matter: few output rows share each read of the head.
  head.approximate(isa, workers.worker(), n, top, columns.first, columns.last, y, first == 0);
  workers.sync();
  if (head.settles()) {
    head.settle(isa, workers.size(), n, top, x, columns.first, columns.last, y, columns.scratch);
    workers.sync();
  }
  head.refine(isa, workers.size(), n, top, x, columns.first, columns.last, y, columns.scratch,
              largest);
}

// The copy is read once for at most max_outputs output rows. All parts have nearly the same number
// of rows, so that none has only a few.
void lm_head_top(const call* body, const roles& parts, team& workers) noexcept {
  const uint64_t rows = body[parts.linear].rows;
  const uint64_t n = (rows + top_head::max_outputs - 1) / top_head::max_outputs;
  for (uint64_t i = 0; i < n; ++i) {
    if (i != 0) workers.sync();  // until then others may read the head's state of the previous rows
    const uint64_t first = rows * i / n;
    some_largest(body, parts, workers, first, rows * (i + 1) / n - first);
  }
}

}  // namespace

void add_composites(const isa_form& isa, top_head_bits bits, sdk::definition& out) {
  const first_pass pass = first_pass_of(isa, bits);
  out.packing = pass.packing;
  constexpr uint32_t stable = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  const auto add = [&](uint32_t op, uint32_t format, const std::string& id,
                       sdk::composite_kernel run, bool (*fits)(const sdk::weight&) = nullptr,
                       const sdk::packing& packing = {}) {
    // With the packing in the same expression, g++ 12 warns that it may be used uninitialised.
    sdk::composite row{op, format, stable, id, run, {}, fits};
    row.packing = packing;
    out.composites.push_back(std::move(row));
  };
  constexpr uint32_t ternary = BITNET_FORMAT_TERNARY2;
  const struct {
    uint32_t op;
    const char* name;
    sdk::composite_kernel run;
  } bodies[] = {{BITNET_OP_QKV_ROPE_KV, "qkv_rope_kv", qkv_rope_kv},
                {BITNET_OP_ATTN_OUT, "attn_out", attn_out},
                {BITNET_OP_FFN_RELU2_GATED, "ffn_relu2_gated", ffn_gated<&row_kernels::relu2>},
                {BITNET_OP_FFN_SILU_GATED, "ffn_silu_gated", ffn_gated<&row_kernels::silu>}};
  // Named after the products, which take most of the time.
  for (const auto& body : bodies) {
    const std::string of_rows = std::string(body.name) + ".ternary2";
    const std::string of_tiles = std::string(body.name) + "_tiles.ternary2";
    if (isa.both_named) {
      add(body.op, ternary, kernel_id_of_both(of_rows, isa.ternary.isa, isa), body.run,
          panels_fit_rows);
      add(body.op, ternary, kernel_id_of_both(of_tiles, isa.grouped.isa, isa), body.run,
          panels_fit_tiles, in_tiles());
    }
    add(body.op, ternary, kernel_id(of_rows, isa.ternary.isa), body.run, has_row_scales);
    add(body.op, ternary, kernel_id(of_tiles, isa.grouped.isa), body.run, nullptr, in_tiles());
  }
  for (const sdk::format& f : sdk::formats)
    if (f.id != ternary) {
      add(BITNET_OP_LM_HEAD, f.id, kernel_id(std::string("lm_head.") + f.name, isa.dense.isa),
          lm_head);
      out.composites.back().top = {
          kernel_id(std::string("lm_head_top.") + pass.name + "+" + f.name, pass.isa),
          top_head::max_top, UINT32_MAX, pass.prepare, lm_head_top};
    }
}

}  // namespace bitnet::cpu
