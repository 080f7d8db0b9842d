#include "kernel_table.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "gpu-common/simt_kernels.hpp"
#include "kernels/ternary_dots.hpp"
#include "kernels/ternary_matrix.hpp"

namespace bitnet::rocm {

using gpu::has, gpu::has_factors;

namespace {

uint32_t dots_rows(uint32_t) {
  return kernels::rows_of_dots;
}
template <kernels::matrix_form (*Form)(uint32_t)>
uint32_t matrix_rows(uint32_t lanes) {
  return Form(lanes).rows;
}
// From how many rows of a step on each is used was not measured: what it is of them is where dots
// would read a row of the matrix twice, and where a wave of the larger form has all its tokens.
constexpr several_form with_one_scale[] = {
    {"ternary_dots", "linear_ternary_dots", 2, false, dots_rows, kernels::tokens_of_dots},
    {matrix_part, "linear_ternary_matrix_few", kernels::tokens_of_dots + 1, false,
     matrix_rows<kernels::matrix_few>, kernels::matrix_few(0).tokens},
    {matrix_part, "linear_ternary_matrix_many", kernels::matrix_many(0).tokens, false,
     matrix_rows<kernels::matrix_many>, kernels::matrix_many(0).tokens},
};
constexpr several_form with_factors[] = {
    {matrix_part, "linear_ternary_matrix_factored", 2, true, matrix_rows<kernels::matrix_factored>,
     kernels::matrix_factored(0).tokens},
};
static_assert(std::size(with_one_scale) <= most_several && std::size(with_factors) <= most_several);
constexpr char delta_in_registers[] = "delta_rule_64";

// The last usable form whose `from` is at most `tokens`; -1: none.
int several_for(const kernel_form& form, const gpu::kernel_spec& spec,
                const gpu::linear_ternary_params& p, uint64_t tokens) noexcept {
  int out = -1;
  for (uint32_t i = 0; i < form.several.size(); ++i) {
    const several_form& one = form.several[i];
    const bool fits = !one.of_whole_words || gpu::shorter_group(spec, p) % 32 == 0;
    if ((form.usable >> i & 1) != 0 && tokens >= one.from && fits) out = static_cast<int>(i);
  }
  return out;
}

// Sets the function's name and its forms for several tokens.
bool add_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out) {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case gpu::kernel_id::linear_ternary:
      out.several = with_one_scale;
      if (has_factors(spec)) out.several = with_factors;
      for (uint32_t i = 0; i < out.several.size(); ++i)
        if (!has(off, out.several[i].function)) out.usable |= 1u << i;
      return gpu::add_selected(spec, out.function);
    case gpu::kernel_id::delta_rule:  // states of so many rows fit registers
      if (c[1] == 64 && !has(off, delta_in_registers)) out.function = delta_in_registers;
      return true;
    case gpu::kernel_id::attn_tiles:
    case gpu::kernel_id::attn_token:
      out.function += "_" + std::to_string(c[3]);
      return gpu::dtype_name(c[1]) && gpu::dtype_name(c[2]) &&
             (c[3] == 4 || c[3] == most_attention_rows);
    default:
      return gpu::add_selected(spec, out.function);
  }
}

}  // namespace

std::vector<gpu::kernel_alternative> alternatives() {
  constexpr uint32_t steady = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  constexpr uint32_t exact = steady | BITNET_EXACT_INTEGER;
  std::vector<gpu::kernel_alternative> out;
  out.push_back({delta_in_registers, BITNET_OP_DELTA_RULE, BITNET_FORMAT_NONE, steady});
  for (const several_form& one : with_one_scale)
    out.push_back({one.function, BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, exact});
  for (const several_form& one : with_factors)
    out.push_back({one.function, BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_FORMAT_TERNARY2, exact});
  return out;
}

forms optional_forms() {
  forms out;
  for (gpu::kernel_alternative& one : alternatives()) out.push_back(std::move(one.name));
  return out;
}

forms matrix_forms() {
  forms out;
  for (const std::span<const several_form> some :
       {std::span<const several_form>(with_one_scale), std::span<const several_form>(with_factors)})
    for (const several_form& one : some)
      if (std::strcmp(one.part, matrix_part) == 0) out.emplace_back(one.function);
  return out;
}

bool find_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out) {
  if (spec.id >= gpu::kernel_id::count || spec.constants[0] != group_threads) return false;
  const char* part = gpu::part_of(spec.id);
  const uint64_t shared = 4 * gpu::shared_words_of(spec);
  if (!part || shared > UINT32_MAX) return false;
  out.part = part;
  out.function = gpu::row_of(spec.id).name;
  out.shared_bytes = static_cast<uint32_t>(shared);
  if (!add_form(spec, off, out)) return false;
  out.joins = gpu::joins(out.function);
  return true;
}

grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t lanes) noexcept {
  if (spec.id != gpu::kernel_id::linear_ternary) return {groups_x, groups_y};
  constexpr uint64_t most = 65535;
  const auto groups = [&](uint64_t work, uint64_t of_group) {
    return static_cast<uint32_t>(std::clamp<uint64_t>((work + of_group - 1) / of_group, 1, most));
  };
  gpu::linear_ternary_params p{};
  std::memcpy(&p, params, sizeof p);
  const uint64_t tokens = uint64_t{groups_y} * std::max(spec.constants[2], 1u);  // at most
  const uint32_t waves = group_threads / lanes;
  if (const int chosen = several_for(form, spec, p, tokens); chosen >= 0) {
    const several_form& one = form.several[static_cast<size_t>(chosen)];
    return {groups(p.n_rows, uint64_t{waves} * one.rows(lanes)), groups(tokens, one.tokens),
            chosen};
  }
  return {has_factors(spec) ? groups(p.n_rows, waves) : groups_x, groups(tokens, 1)};
}

}  // namespace bitnet::rocm
