#include "primitives.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/sdk/reference/primitives.hpp"
#include "ops/ops.hpp"
#include "ops/ternary_tiles.hpp"

namespace bitnet::cpu {
namespace {

using sdk::call;
using sdk::share;

const isa_form& isa_of(const call& c) {
  return *static_cast<const isa_form*>(c.author_data);
}

void embed_gather(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    embed_row(*c.w, static_cast<uint64_t>(c.step->tokens[t]), c.output<float>(0) + t * c.m);
}

void rms_norm(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    isa_of(c).rows.rms_norm(c.input<float>(0) + r * c.k, c.w->f32(), c.floats[0], c.k,
                            c.output<float>(0) + r * c.k);
}

void act_quant_i8(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    isa_of(c).rows.act_quant(c.input<float>(0) + r * c.k, c.k, c.output<int8_t>(0) + r * c.k,
                             c.output<float>(1) + r);
}

void rms_norm_heads(const call& c, const share& s) noexcept {
  for (uint64_t at = s.first * c.k; at < s.last * c.k; at += c.w->k)
    isa_of(c).rows.rms_norm(c.input<float>(0) + at, c.w->f32(), c.floats[0], c.w->k,
                            c.output<float>(0) + at);
}

void hadamard(const call& c, const share& s) noexcept {
  const bool first = c.ints[hadamard_ints::place] == BITNET_HADAMARD_FACTORS_FIRST;
  for (uint64_t at = s.first * c.k; at < s.last * c.k; at += c.k)
    isa_of(c).rows.hadamard(c.input<float>(0) + at, c.w ? c.w->f32() : nullptr, first, c.k,
                            static_cast<uint64_t>(c.ints[hadamard_ints::block]),
                            c.output<float>(0) + at);
}

void act_quant_i8_grouped(const call& c, const share& s) noexcept {
  const auto group = static_cast<uint64_t>(c.ints[0]);
  for (uint64_t r = s.first; r < s.last; ++r)
    isa_of(c).rows.act_quant_groups(c.input<float>(0) + r * c.k, c.k, group,
                                    c.output<int8_t>(0) + r * c.k,
                                    c.output<float>(1) + r * (c.k / group));
}

void run_linear_grouped(const call& c, const share& s) noexcept {
  linear_ternary_grouped(
      isa_of(c), *c.w, c.input<int8_t>(0), c.input<float>(1), c.k1,
      {.tokens = c.rows, .first = s.first, .last = s.last, .y = c.output<float>(0)}, s.scratch);
}

void run_linear_ternary(const call& c, const share& s) noexcept {
  linear_ternary(isa_of(c), *c.w, c.input<int8_t>(0), c.input<float>(1),
                 {.tokens = c.rows, .first = s.first, .last = s.last, .y = c.output<float>(0)},
                 s.scratch);
}

void run_linear_dense(const call& c, const share& s) noexcept {
  linear_dense(isa_of(c), *c.w, c.input<float>(0),
               {.tokens = c.rows, .first = s.first, .last = s.last, .y = c.output<float>(0)},
               s.scratch);
}

void rope(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    rope_row(isa_of(c), c.input<float>(0) + t * c.k, t, c.step->positions[t], c,
             *static_cast<rope_angles*>(s.keep), c.output<float>(0) + t * c.k);
}

void kv_write(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t)
    kv_write_row(isa_of(c), c.step->kv, static_cast<uint64_t>(c.ints[0]),
                 static_cast<uint64_t>(c.step->slots[t]), c.input<float>(0) + t * c.k,
                 c.input<float>(1) + t * c.k);
}

void attn_paged(const call& c, const share& s) noexcept {
  if (c.rows >= fewest_attending) return attention_of_tokens(isa_of(c), c, s);
  const auto group =
      static_cast<uint64_t>(c.ints[attention_ints::n_heads] / c.ints[attention_ints::n_kv_heads]);
  attention(isa_of(c), c, s.first * group, s.last * group, s.scratch);
}

template <void (*row_kernels::*Row)(const float*, const float*, uint64_t, float*)>
void binary(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    (isa_of(c).rows.*Row)(c.input<float>(0) + r * c.k, c.input<float>(1) + r * c.k, c.k,
                          c.output<float>(0) + r * c.k);
}

template <void (*row_kernels::*Row)(const float*, uint64_t, float*)>
void unary(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r)
    (isa_of(c).rows.*Row)(c.input<float>(0) + r * c.k, c.k, c.output<float>(0) + r * c.k);
}

void scale(const call& c, const share& s) noexcept {
  for (uint64_t at = s.first * c.k; at < s.last * c.k; at += c.k)
    isa_of(c).rows.scale(c.input<float>(0) + at, c.floats[0], c.k, c.output<float>(0) + at);
}

void run_short_conv(const call& c, const share& s) noexcept {
  short_conv(c, s.first, s.last);
}

void run_delta_rule(const call& c, const share& s) noexcept {
  delta_rule(isa_of(c), c, s.first, s.last);
}

void gather_rows(const call& c, const share& s) noexcept {
  for (uint64_t o = s.first; o < s.last; ++o)
    std::memcpy(c.output<float>(0) + o * c.k,
                c.input<float>(0) + static_cast<uint64_t>(c.step->output_rows[o]) * c.k,
                c.k * sizeof(float));
}

}  // namespace

std::string kernel_id(const std::string& name, const char* isa) {
  std::string ending = isa;
  std::ranges::replace(ending, '_', '-');  // as in the names of forms
  return name + "." + ending;
}

std::string kernel_id_of_both(const std::string& name, const char* few, const isa_form& form) {
  return kernel_id(name, (std::string(few) + "+" + form.panel.isa).c_str());
}

void withhold_panels(const isa_form& form, sdk::definition& out) {
  const std::string ending = std::string("+") + form.panel.isa;
  const auto from = [&](auto& rows) {
    for (auto& row : rows)
      if (row.id.ends_with(ending)) row.fits = [](const sdk::weight&) { return false; };
  };
  from(out.primitives);
  from(out.composites);
}

bool has_row_scales(const sdk::weight& w) {
  return path_of(w) == ternary_path::rows;
}
bool has_group_scales(const sdk::weight& w) {
  return path_of(w) == ternary_path::groups;
}

namespace {

constexpr uint32_t stable = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
constexpr uint32_t integer = stable | BITNET_EXACT_INTEGER;

// The kernels of one form, preferred ones first.
class primitive_list {
 public:
  primitive_list(const isa_form& isa, sdk::definition& out) : isa_(isa), out_(out) {}

  void add_ternary();
  void add_dense();
  void add_rows();

 private:
  // `of`: the kernel's instruction set.
  void add(uint32_t op, uint32_t format, const char* of, uint32_t exact, const std::string& name,
           sdk::primitive_kernel run, bool (*fits)(const sdk::weight&) = nullptr,
           const sdk::packing& packing = {}) {
    const bool fast = std::string_view(of) != scalar_form.name;
    out_.primitives.push_back({op, format, fast ? BITNET_LEVEL_OPTIMISED : BITNET_LEVEL_REFERENCE,
                               exact, kernel_id(name, of), run, fits, packing});
  }
  // `few`: the instruction set of ternary products with few tokens. Larger products use panels.
  void add_both(uint32_t op, const char* few, const char* name, sdk::primitive_kernel run,
                bool (*fits)(const sdk::weight&), const sdk::packing& packing) {
    out_.primitives.push_back({op, BITNET_FORMAT_TERNARY2, BITNET_LEVEL_OPTIMISED, integer,
                               kernel_id_of_both(name, few, isa_), run, fits, packing});
  }
  void add_panels();

  const isa_form& isa_;
  sdk::definition& out_;
};

void primitive_list::add_panels() {
  add_both(BITNET_OP_LINEAR_TERNARY, isa_.ternary.isa, "linear_ternary.ternary2",
           run_linear_ternary, panels_fit_rows, {});
  add_both(BITNET_OP_LINEAR_TERNARY, isa_.grouped.isa, "linear_ternary_tiles.ternary2",
           run_linear_ternary, panels_fit_tiles, in_tiles());
  add_both(BITNET_OP_LINEAR_TERNARY_GROUPED, isa_.grouped.isa, "linear_grouped_tiles.ternary2",
           run_linear_grouped, panels_fit_tiles, in_tiles());
  add_both(BITNET_OP_LINEAR_TERNARY_GROUPED, isa_.grouped.isa, "linear_grouped.ternary2",
           run_linear_grouped, panels_fit_rows, {});
}

void primitive_list::add_ternary() {
  constexpr uint32_t ternary = BITNET_FORMAT_TERNARY2;
  if (isa_.both_named) add_panels();
  add(BITNET_OP_LINEAR_TERNARY, ternary, isa_.ternary.isa, integer, "linear_ternary.ternary2",
      run_linear_ternary, has_row_scales);
  add(BITNET_OP_LINEAR_TERNARY, ternary, isa_.grouped.isa, integer, "linear_ternary_tiles.ternary2",
      run_linear_ternary, nullptr, in_tiles());
  add(BITNET_OP_LINEAR_TERNARY, ternary, isa_.grouped.isa, integer,
      "linear_ternary_grouped.ternary2", run_linear_ternary, has_group_scales);
  add(BITNET_OP_LINEAR_TERNARY, ternary, "scalar", integer, "linear_ternary_ref.ternary2",
      run_linear_ternary);
  add(BITNET_OP_LINEAR_TERNARY_GROUPED, ternary, isa_.grouped.isa, integer,
      "linear_grouped_tiles.ternary2", run_linear_grouped, nullptr, in_tiles());
  add(BITNET_OP_LINEAR_TERNARY_GROUPED, ternary, isa_.grouped.isa, integer,
      "linear_grouped.ternary2", run_linear_grouped, grouped_has_vector_form);
  add(BITNET_OP_LINEAR_TERNARY_GROUPED, ternary, scalar_form.name, integer,
      "linear_grouped_ref.ternary2", run_linear_grouped);
  add(BITNET_OP_EMBED_GATHER, ternary, "scalar", stable, "embed_gather_tiles.ternary2",
      embed_gather, nullptr, in_tiles());
}

void primitive_list::add_dense() {
  for (const sdk::format& f : sdk::formats) {
    if (f.id != BITNET_FORMAT_TERNARY2)
      add(BITNET_OP_LINEAR_DENSE, f.id, isa_.dense.isa, stable,
          std::string("linear_dense.") + f.name, run_linear_dense);
    add(BITNET_OP_EMBED_GATHER, f.id, "scalar", stable, std::string("embed_gather.") + f.name,
        embed_gather);
  }
}

void primitive_list::add_rows() {
  out_.worker_keep_bytes = keep_row_at + 2 * keep_line;
  out_.worker_row_bytes = sizeof(float) + most_own_rows;
  out_.most_scores = most_scores;
  out_.worker_room_bytes = room_bytes;
  const char* rows = isa_.rows.isa;
  add(BITNET_OP_RMS_NORM, BITNET_FORMAT_F32, rows, stable, "rms_norm.f32", rms_norm);
  add(BITNET_OP_RMS_NORM_HEADS, BITNET_FORMAT_F32, rows, stable, "rms_norm_heads.f32",
      rms_norm_heads);
  add(BITNET_OP_HADAMARD, 0, rows, stable, "hadamard", hadamard);
  add(BITNET_OP_ACT_QUANT_I8_GROUPED, 0, rows, integer, "act_quant_i8_grouped",
      act_quant_i8_grouped);
  add(BITNET_OP_ACT_QUANT_I8, 0, rows, integer, "act_quant_i8", act_quant_i8);
  add(BITNET_OP_ROPE, 0, rows, stable, "rope", rope);
  add(BITNET_OP_KV_WRITE, 0, rows, stable, "kv_write", kv_write);
  add(BITNET_OP_ATTN_PAGED, 0, isa_.dense.isa, stable, "attn_paged", attn_paged);
  add(BITNET_OP_ADD, 0, rows, stable, "add", binary<&row_kernels::add>);
  add(BITNET_OP_MUL, 0, rows, stable, "mul", binary<&row_kernels::mul>);
  add(BITNET_OP_RELU2, 0, rows, stable, "relu2", unary<&row_kernels::relu2>);
  add(BITNET_OP_SILU, 0, rows, stable, "silu", unary<&row_kernels::silu>);
  add(BITNET_OP_GELU, 0, rows, stable, "gelu", unary<&row_kernels::gelu>);
  add(BITNET_OP_SCALE, 0, rows, stable, "scale", scale);
  add(BITNET_OP_SIGMOID, 0, rows, stable, "sigmoid", unary<&row_kernels::sigmoid>);
  add(BITNET_OP_COLUMNS, 0, "scalar", stable, "columns", sdk::reference::kernels::columns);
  add(BITNET_OP_SHORT_CONV, BITNET_FORMAT_F32, "scalar", stable, "short_conv.f32", run_short_conv);
  add(BITNET_OP_DELTA_GATES, BITNET_FORMAT_F32, "scalar", stable, "delta_gates.f32",
      sdk::reference::kernels::delta_gates);
  add(BITNET_OP_DELTA_RULE, 0, rows, stable, "delta_rule", run_delta_rule);
  add(BITNET_OP_GATHER_ROWS, 0, "scalar", stable, "gather_rows", gather_rows);
}

}  // namespace

void add_primitives(const isa_form& isa, sdk::definition& out) {
  primitive_list list(isa, out);
  list.add_ternary();
  list.add_dense();
  list.add_rows();
}

void add_others(const isa_form& chosen, top_head_bits (*bits)(const isa_form&),
                sdk::definition& out) {
  for (const isa_form& form : isa_forms) {
    if (&form == &chosen || !form.supported()) continue;
    sdk::definition other;
    add_primitives(form, other);
    add_composites(form, bits(form), other);
    const auto list = [&](const auto& row, uint32_t level) {
      // Kernels with a single form are in both lists.
      for (const auto& p : out.primitives)
        if (p.id == row.id) return;
      for (const auto& c : out.composites)
        if (c.id == row.id) return;
      for (const bitnet_kernel_info& k : out.others)
        if (row.id == k.id) return;
      bitnet_kernel_info info{};
      info.struct_size = sizeof info;
      info.op = row.op;
      info.format = row.format;
      info.level = level;
      info.exact = row.exact;
      row.id.copy(info.id, sizeof info.id - 1);
      out.others.push_back(info);
    };
    for (const sdk::composite& c : other.composites) list(c, BITNET_LEVEL_FUSED);
    for (const sdk::primitive& p : other.primitives) list(p, p.level);
  }
}

}  // namespace bitnet::cpu
