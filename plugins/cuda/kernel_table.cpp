#include "kernel_table.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "gpu-common/plan/plan.hpp"
#include "gpu-common/simt_kernels.hpp"
#include "images.inc"

#define BITNET_CUDA_DECLARE_IMAGE(name) extern const unsigned char bitnet_cuda_##name[];
extern "C" {
BITNET_CUDA_IMAGES(BITNET_CUDA_DECLARE_IMAGE)
}
#undef BITNET_CUDA_DECLARE_IMAGE

namespace bitnet::cuda {

using gpu::dtype_name, gpu::format_name, gpu::has, gpu::has_factors, gpu::shorter_group;

namespace {

#define BITNET_CUDA_IMAGE_INDEX(name) name,
enum image_index : uint8_t { BITNET_CUDA_IMAGES(BITNET_CUDA_IMAGE_INDEX) };
#undef BITNET_CUDA_IMAGE_INDEX
#define BITNET_CUDA_IMAGE_ROW(name) {#name, bitnet_cuda_##name},
const image images[] = {BITNET_CUDA_IMAGES(BITNET_CUDA_IMAGE_ROW)};
#undef BITNET_CUDA_IMAGE_ROW

// Returns the image that has a kernel; nullptr if the backend has no such kernel.
const image* image_of(gpu::kernel_id id) noexcept {
  if (id == gpu::kernel_id::round_rows || id == gpu::kernel_id::linear_dense_rounded)
    return &images[dense_rounded];
  const char* part = gpu::part_of(id);
  const auto* found = std::find_if(std::begin(images), std::end(images), [part](const image& one) {
    return part && std::strcmp(one.name, part) == 0;
  });
  return found == std::end(images) ? nullptr : found;
}

// Indices of the tables of tiled forms below.
enum form_index : uint8_t { of_few, of_many, of_one_token, n_common_forms };
enum one_scale_index : uint8_t { of_narrow_groups = n_common_forms, of_wide_groups };
enum factored_index : uint8_t { of_wide_factored = n_common_forms };
constexpr uint32_t steady = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
constexpr uint32_t exact = steady | BITNET_EXACT_INTEGER;
constexpr form_listing as_one_scale{BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, exact};
constexpr form_listing as_factored{BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_FORMAT_TERNARY2, exact};
constexpr form_listing as_f16{BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F16, BITNET_EXACT_RUN,
                              BITNET_PRECISION_F16};
constexpr form_listing as_bf16{BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_BF16, BITNET_EXACT_RUN,
                               BITNET_PRECISION_BF16};
// Tiled forms, in the order of form_index, then of one_scale_index or factored_index.
constexpr tiled_form with_one_scale[] = {
    {&images[ternary_tiles], "linear_ternary_few", few_tokens, as_one_scale},
    {&images[ternary_tiles], "linear_ternary_many", many_tokens, as_one_scale},
    {&images[ternary_tiles_one], "linear_ternary_tiles_one", one_product, as_one_scale},
#ifdef BITNET_CUDA_WARP_GROUPS
    {&images[ternary_warp_groups], "linear_ternary_narrow", narrow_form, as_one_scale},
    {&images[ternary_warp_groups], "linear_ternary_wide", wide_form, as_one_scale},
#endif
};
constexpr tiled_form with_factors[] = {
    {&images[ternary_groups], "linear_ternary_factored_few", few_factored, as_factored},
    {&images[ternary_groups], "linear_ternary_factored_many", many_factored, as_factored},
    {&images[ternary_groups_one], "linear_ternary_factored_one", one_factored, as_factored},
#ifdef BITNET_CUDA_WARP_GROUPS
    {&images[ternary_warp_groups_factored], "linear_ternary_factored_wide", wide_factored,
     as_factored},
#endif
};
// Products that quantise the row.
constexpr form_listing as_quantising{BITNET_OP_BIT_LINEAR, BITNET_FORMAT_TERNARY2, steady};
constexpr tiled_form quantising[] = {
    {&images[ternary_tiles_one], "bit_linear_tiles_one", one_quantised, as_quantising},
};
constexpr tiled_form of_f16[] = {
    {&images[dense_rounded], "linear_dense_rounded_f16_few", few_rounded, as_f16},
    {&images[dense_rounded], "linear_dense_rounded_f16_many", many_rounded, as_f16},
};
constexpr tiled_form of_bf16[] = {
    {&images[dense_rounded], "linear_dense_rounded_bf16_few", few_rounded, as_bf16},
    {&images[dense_rounded], "linear_dense_rounded_bf16_many", many_rounded, as_bf16},
};

// Whether a table has its forms at their places of form_index, and a device has room for them.
template <size_t N>
constexpr bool has_order(const tiled_form (&all)[N]) {
  return N > of_many && N <= most_tiled_forms && all[of_few].tile.tokens < all[of_many].tile.tokens;
}
static_assert(has_order(with_one_scale) && has_order(with_factors) && has_order(of_f16) &&
              has_order(of_bf16));
static_assert(with_one_scale[of_one_token].tile.tokens == 1 &&
              with_factors[of_one_token].tile.tokens == 1);
#ifdef BITNET_CUDA_WARP_GROUPS
constexpr bool built_warp_groups = true;
static_assert(with_one_scale[of_narrow_groups].tile.boxes &&
              with_one_scale[of_wide_groups].tile.boxes &&
              with_factors[of_wide_factored].tile.boxes &&
              with_one_scale[of_narrow_groups].tile.rows <
                  with_one_scale[of_wide_groups].tile.rows);
#else
constexpr bool built_warp_groups = false;
#endif

// Whole contexts of many tokens, by the most elements of a head.
constexpr form_listing as_attention{BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, steady};
constexpr tiled_form attention_of_64[] = {
    {&images[attention_prompts], "attn_prompt_64", prompt_form<64>, as_attention},
};
constexpr tiled_form attention_of_128[] = {
    {&images[attention_prompts], "attn_prompt_128", prompt_form<128>, as_attention},
};
constexpr tiled_form attention_of_256[] = {
    {&images[attention_prompts], "attn_prompt_256", prompt_form<256>, as_attention},
};

// Few rows, by the elements of a row: at most one_row_most, at most one_row_long.
constexpr form_listing as_norm{BITNET_OP_RMS_NORM, BITNET_FORMAT_NONE, steady};
constexpr form_listing as_quant{BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, exact};
constexpr form_listing as_fused_quant{BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, steady};
constexpr form_listing as_fused_groups{BITNET_OP_ACT_QUANT_I8_GROUPED, BITNET_FORMAT_NONE, steady};
constexpr form_listing as_head{BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_NONE, steady};
constexpr tiled_form norm_of_one[] = {{&images[rows_one], "rms_norm_one", one_row, as_norm}};
constexpr tiled_form quant_of_one[] = {{&images[rows_one], "act_quant_one", one_row, as_quant}};
constexpr tiled_form norm_quant_of_one[] = {
    {&images[rows_one], "norm_quant_one", one_row, as_fused_quant}};
constexpr tiled_form norm_quant_groups_of_one[] = {
    {&images[rows_one], "norm_quant_groups_one", one_row, as_fused_groups}};
constexpr tiled_form glu_quant_of_one[] = {
    {&images[rows_one], "glu_quant_one", one_row, as_fused_quant},
    {&images[rows_one], "glu_quant_one_long", one_row, as_fused_quant},
};
constexpr tiled_form head_state_of_one[] = {
    {&images[rows_one], "head_state_one", one_row, as_head}};
std::span<const tiled_form> rows_of(gpu::kernel_id id) noexcept {
  switch (id) {
    case gpu::kernel_id::rms_norm:
      return norm_of_one;
    case gpu::kernel_id::act_quant:
      return quant_of_one;
    case gpu::kernel_id::norm_quant:
      return norm_quant_of_one;
    case gpu::kernel_id::norm_quant_groups:
      return norm_quant_groups_of_one;
    case gpu::kernel_id::glu_quant:
      return glu_quant_of_one;
    case gpu::kernel_id::head_state:
      return head_state_of_one;
    default:
      return {};
  }
}

std::span<const tiled_form> prompts_of(uint32_t head_dim) noexcept {
  if (head_dim <= 64) return attention_of_64;
  if (head_dim <= 128) return attention_of_128;
  if (head_dim <= 256) return attention_of_256;
  return {};
}

// The same with rounded factors, in the order of the bits of rounded_heads_bit().
constexpr form_listing as_attention_f16{BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, BITNET_EXACT_RUN,
                                        BITNET_PRECISION_F16};
constexpr tiled_form rounded_attention[] = {
    {&images[attention_rounded], "attn_prompt_f16_64", rounded_prompt_form<64>, as_attention_f16},
    {&images[attention_rounded], "attn_prompt_f16_128", rounded_prompt_form<128>, as_attention_f16},
    {&images[attention_rounded], "attn_prompt_f16_256", rounded_prompt_form<256>, as_attention_f16},
};
std::span<const tiled_form> rounded_prompts_of(uint32_t head_dim) noexcept {
  const uint32_t bit = gpu::rounded_heads_bit(head_dim);
  if (bit == 0) return {};
  return {&rounded_attention[std::countr_zero(bit)], 1};
}

// Whether the forms for several tokens can compute the groups: the shorter ones must consist of
// whole tiles and fit into a block.
bool fits_tiles(const gpu::kernel_spec& linear, const gpu::linear_ternary_params& p) noexcept {
  const uint32_t shorter = shorter_group(linear, p);
  return !has_factors(linear) || shorter == 32 || shorter == 64 || shorter == 128;
}
// The same for the form by warp groups, whose groups of weights are no shorter than those of
// activations. With more than half a tile of tokens it takes about half of the instructions of the
// form for many, or fewer (tests/cuda/weights.csv).
bool fits_warp_groups(const gpu::kernel_spec& linear, const gpu::linear_ternary_params& p,
                      uint64_t tokens) noexcept {
  const uint32_t given = linear.constants[4];
  return fits_tiles(linear, p) && (p.scale_group == 0 || given <= p.scale_group) &&
         tokens > wide_factored.tokens / 2;
}
// The same for the form for one token, whose groups may also have two, four or eight blocks.
bool fits_one_token(const gpu::kernel_spec& linear, const gpu::linear_ternary_params& p) noexcept {
  const uint32_t shorter = shorter_group(linear, p);
  const uint64_t factors = p.scale_group == 0 ? 0 : p.k / p.scale_group;
  return has_factors(linear) && std::has_single_bit(shorter) && shorter >= 32 && shorter <= 1024 &&
         // The form computes indices of words and of factors in 32 bits.
         uint64_t{p.n_rows} * p.row_words <= UINT32_MAX &&
         (uint64_t{p.first_row} + p.n_rows) * factors <= UINT32_MAX;
}

// Adds the suffix of its form to a kernel's name.
bool add_form(const gpu::kernel_spec& spec, const forms& off, std::string& name) {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case gpu::kernel_id::delta_rule:  // states with 64 or 128 rows fit into registers
      if (const std::string own = name + "_" + std::to_string(c[1]);
          (c[1] == 64 || c[1] == 128) && !has(off, own))
        name = own;
      return true;
    case gpu::kernel_id::linear_dense_rounded:
      if (c[3] != BITNET_FORMAT_F16 && c[3] != BITNET_FORMAT_BF16) return false;
      name += std::string("_") + format_name(c[3]) +
              "_few";  // always launched as one of its tiled forms
      return true;
    case gpu::kernel_id::attn_tiles: {
      const char *key = dtype_name(c[1]), *value = dtype_name(c[2]);
      if (!key || !value) return false;
      name += std::string("_") + key + "_" + value + "_" + std::to_string(c[3]);
      return c[3] == 4 || c[3] == 8 || c[3] == most_attention_rows;
    }
    case gpu::kernel_id::attn_token: {  // pairs of formats, which are rare, have one kernel
      const char *key = dtype_name(c[1]), *value = dtype_name(c[2]);
      if (!key || !value) return false;
      if (c[1] == c[2]) name += std::string("_") + key + "_" + value;
      name += "_" + std::to_string(c[3]);
      return c[3] == 4 || c[3] == 8 || c[3] == most_attention_rows;
    }
    default:
      return gpu::add_selected(spec, name);
  }
}

// Architectures that this build has machine code for, and architectures that it has PTX for, which
// a driver compiles for newer devices. Ascending.
constexpr int built[] = {BITNET_CUDA_BUILT};
constexpr int ptx[] = {BITNET_CUDA_PTX};

}  // namespace

const image* images_begin() noexcept {
  return std::begin(images);
}
const image* images_end() noexcept {
  return std::end(images);
}

std::vector<gpu::kernel_alternative> alternatives_for(uint32_t precisions) {
  std::vector<gpu::kernel_alternative> out;
  const auto add = [&](std::string name, const form_listing& one) {
    const bool rounds = one.precision != BITNET_PRECISION_F32;
    if (!rounds || (precisions >> one.precision & 1) != 0)
      out.push_back({std::move(name), one.op, one.format, one.exact, one.precision});
  };
  const auto add_all = [&](std::initializer_list<std::span<const tiled_form>> tables) {
    for (const auto all : tables)
      for (const tiled_form& one : all) add(one.function, one.listing);
  };
  add_all({with_one_scale, quantising, with_factors});
  // Factors are rounded by a kernel of its own.
  add("round_rows_f16", of_f16[of_few].listing);
  add("round_rows_bf16", of_bf16[of_few].listing);
  add_all({of_f16, of_bf16, norm_of_one, quant_of_one, norm_quant_of_one, norm_quant_groups_of_one,
           glu_quant_of_one, head_state_of_one});
  for (const char* one : {"delta_rule_64", "delta_rule_128"})
    add(one, {BITNET_OP_DELTA_RULE, BITNET_FORMAT_NONE, steady});
  add_all({attention_of_64, attention_of_128, attention_of_256, rounded_attention});
  return out;
}

forms optional_forms() {
  forms out;
  for (gpu::kernel_alternative& one : alternatives_for(~0u)) out.push_back(std::move(one.name));
  return out;
}
forms forms_by_warp_groups() {
  forms out;
  for (const std::span<const tiled_form> all :
       {std::span<const tiled_form>(with_one_scale), std::span<const tiled_form>(with_factors)})
    for (const tiled_form& one : all)
      if (one.tile.boxes) out.emplace_back(one.function);
  return out;
}
forms forms_by_doubles() {
  return {head_state_of_one[0].function};
}

uint32_t rounded_products_without(const forms& off) noexcept {
  const auto works = [&](const char* rounding, const tiled_form(&all)[2]) {
    return !has(off, rounding) &&
           !(has(off, all[of_few].function) && has(off, all[of_many].function));
  };
  return (works("round_rows_f16", of_f16) ? 1u << BITNET_PRECISION_F16 : 0u) |
         (works("round_rows_bf16", of_bf16) ? 1u << BITNET_PRECISION_BF16 : 0u);
}
uint32_t rounded_heads_without(const forms& off) noexcept {
  uint32_t out = 0;
  for (uint32_t i = 0; i < std::size(rounded_attention); ++i)
    if (!has(off, rounded_attention[i].function)) out |= 1u << i;
  return out;
}
forms forms_without_heads(uint32_t rounded_heads) {
  forms out;
  for (uint32_t i = 0; i < std::size(rounded_attention); ++i)
    if ((rounded_heads >> i & 1) == 0) out.emplace_back(rounded_attention[i].function);
  return out;
}

bool find_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out) {
  if (spec.id >= gpu::kernel_id::count || spec.constants[0] != group_threads) return false;
  gpu::kernel_spec plain = spec;
  if (spec.id == gpu::kernel_id::attn_rounded) {  // the f32 kernel stands in for its forms
    if (spec.constants[1] != BITNET_DTYPE_F16 || spec.constants[2] != BITNET_DTYPE_F16)
      return false;
    plain.id = gpu::kernel_id::attn_tiles;
  }
  if (spec.id == gpu::kernel_id::round_rows) {  // nothing stands in for it
    const char* format = format_name(spec.constants[3]);
    if (format && has(off, std::string("round_rows_") + format)) return false;
  }
  const image* from = image_of(plain.id);
  const uint64_t shared = 4 * gpu::shared_words_of(plain);
  if (!from || shared > UINT32_MAX) return false;
  out.from = from;
  out.function = gpu::row_of(plain.id).name;
  out.shared_bytes = static_cast<uint32_t>(shared);
  if (!add_form(plain, off, out.function)) return false;
  out.joins = gpu::joins(out.function);
  const auto take = [&](std::span<const tiled_form> all) {
    out.tiled = all.data();
    out.tiled_count = static_cast<uint32_t>(all.size());
  };
  if (spec.id == gpu::kernel_id::linear_ternary && has_factors(spec)) take(with_factors);
  if (spec.id == gpu::kernel_id::linear_ternary && !has_factors(spec)) take(with_one_scale);
  if (spec.id == gpu::kernel_id::bit_linear) take(quantising);
  if (spec.id == gpu::kernel_id::linear_dense_rounded)
    take(spec.constants[3] == BITNET_FORMAT_F16 ? of_f16 : of_bf16);
  if (spec.id == gpu::kernel_id::attn_tiles && spec.constants[3] == most_attention_rows)
    take(prompts_of(spec.constants[4]));
  if (const auto of_rows = rows_of(spec.id); !of_rows.empty()) take(of_rows);
  if (spec.id == gpu::kernel_id::attn_rounded) take(rounded_prompts_of(spec.constants[4]));
  for (uint32_t i = 0; i < out.tiled_count; ++i)
    if (!has(off, out.tiled[i].function)) out.usable |= 1u << i;
  return spec.id != gpu::kernel_id::linear_dense_rounded || out.usable != 0;
}

namespace {

// Steps of few tokens, and parts of the context, keep the plain kernel: its groups take less.
grid attention_grid(const kernel_form& form, const uint32_t* params, uint32_t groups_x,
                    uint32_t groups_y) noexcept {
  constexpr uint32_t fewest_of_many = gpu::most_rows_in_parts + 1;
  gpu::attn_tiles_params p{};
  std::memcpy(&p, params, sizeof p);
  if (form.usable == 0 || p.parts != 0 || groups_y < fewest_of_many)
    return {groups_x, groups_y, nullptr};
  const uint32_t of_kv = p.n_heads / p.n_kv_heads;
  const uint64_t groups =
      uint64_t{p.n_kv_heads} * gpu::attn_tile_shares(of_kv, form.tiled->tile.rows);
  return {static_cast<uint32_t>(std::min<uint64_t>(groups, 65535)), groups_y, form.tiled};
}

// A group of more threads to a row gains where processors are idle otherwise, and where a thread of
// the plain kernel has several loads in turn.
grid row_grid(const kernel_form& form, const uint32_t* params, uint32_t groups_x, uint32_t groups_y,
              uint32_t processors) noexcept {
  gpu::act_quant_params p{};  // the parameters of all these kernels begin so
  std::memcpy(&p, params, sizeof p);
  const bool few = uint64_t{groups_x} * groups_y <= processors && p.k > 4 * group_threads;
  const uint32_t i = p.k <= one_row_most ? 0 : 1;
  if (!few || p.k > one_row_long || (form.usable >> i & 1) == 0)
    return {groups_x, groups_y, nullptr};
  return {groups_x, groups_y, &form.tiled[i]};
}

// Each group quantises the row, so there are at most two groups to a multiprocessor.
grid quantising_grid(const kernel_form& form, const uint32_t* params, uint32_t groups_x,
                     uint32_t groups_y, uint64_t places, uint64_t all_rows) noexcept {
  gpu::bit_linear_params p{};
  std::memcpy(&p, params, sizeof p);
  if (form.usable == 0 || p.k > most_quantised) return {groups_x, groups_y, nullptr};
  const auto share = [](uint64_t n, uint64_t of) { return n == 0 ? 1 : (n - 1) / of + 1; };
  const uint64_t rows = form.tiled->tile.rows;
  const uint64_t each = share(share(std::max<uint64_t>(all_rows, p.n_rows), rows), places);
  const uint64_t groups = share(share(p.n_rows, rows), each);
  return {static_cast<uint32_t>(std::min<uint64_t>(groups, 65535)), groups_y, form.tiled};
}

}  // namespace

grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t processors,
             uint64_t all_rows) noexcept {
  if (spec.id == gpu::kernel_id::bit_linear)
    return quantising_grid(form, params, groups_x, groups_y, 2 * std::max<uint64_t>(processors, 1),
                           all_rows);
  const bool rounded = spec.id == gpu::kernel_id::linear_dense_rounded;
  if (spec.id == gpu::kernel_id::attn_tiles || spec.id == gpu::kernel_id::attn_rounded)
    return attention_grid(form, params, groups_x, groups_y);
  if (!rows_of(spec.id).empty()) return row_grid(form, params, groups_x, groups_y, processors);
  if (spec.id != gpu::kernel_id::linear_ternary && !rounded) return {groups_x, groups_y, nullptr};
  constexpr uint32_t warps = group_threads / warp_lanes, most = 65535;
  const auto groups = [&](uint64_t work, uint64_t of_group) {
    return static_cast<uint32_t>(std::clamp<uint64_t>((work + of_group - 1) / of_group, 1, most));
  };
  const uint64_t tokens = uint64_t{groups_y} * std::max(spec.constants[2], 1u);  // at most
  const auto has = [&](uint32_t i) { return (form.usable >> i & 1) != 0; };
  const auto tiled = [&](uint32_t i, uint64_t n_rows) {
    const tiled_form& one = form.tiled[i];
    return grid{groups(n_rows, one.tile.rows), groups(tokens, one.tile.tokens), &one};
  };
  // With more tokens than a tile has, the small tile would read the dense rows once more.
  if (rounded) {
    gpu::linear_dense_rounded_params p{};
    std::memcpy(&p, params, sizeof p);
    const bool many = has(of_many) && (tokens > few_rounded.tokens || !has(of_few));
    return tiled(many ? of_many : of_few, p.n_rows);
  }
  gpu::linear_ternary_params p{};
  std::memcpy(&p, params, sizeof p);
  const bool factors = has_factors(spec), tiles = fits_tiles(spec, p);
  // A tile takes fewer instructions from two tokens on. With more tokens than the small tile of
  // matrices with one scale takes, it would read the weights twice.
  constexpr uint64_t fewest_of_many = few_tokens.tokens + 1, fewest_rows = 64;
  const bool many = tokens >= fewest_of_many && p.n_rows >= fewest_rows;
  if (tokens > 1 && tiles) {
    // A larger tile is used if its groups keep at least half of the multiprocessors busy.
    const auto busy = [&](const tile_form& tile) {
      return uint64_t{2} * groups(p.n_rows, tile.rows) * groups(tokens, tile.tokens) >= processors;
    };
    if (!factors && many && tokens > many_tokens.tokens) {
      // The larger tile reads half as many bytes for each product.
      if (has(of_wide_groups) && (busy(wide_form) || !has(of_narrow_groups)))
        return tiled(of_wide_groups, p.n_rows);
      if (has(of_narrow_groups)) return tiled(of_narrow_groups, p.n_rows);
    }
    if (factors && many && fits_warp_groups(spec, p, tokens) && has(of_wide_factored) &&
        (busy(wide_factored) || !has(of_many)))
      return tiled(of_wide_factored, p.n_rows);
    if (many && has(of_many)) return tiled(of_many, p.n_rows);
    if (has(of_few)) return tiled(of_few, p.n_rows);
    if (has(of_many)) return tiled(of_many, p.n_rows);
  }
  if ((factors ? fits_one_token(spec, p) : tokens == 1) && has(of_one_token))
    return tiled(of_one_token, p.n_rows);
  return {factors ? groups(p.n_rows, warps) : groups_x, groups(tokens, 1), nullptr};
}

int code_of(int architecture, std::span<const int> of, std::span<const int> compiled) noexcept {
  // Code for desktop GPUs does not run on Tegra, and the reverse: CUDA C++ Programming Guide,
  // "Binary Compatibility".
  constexpr int of_tegra[] = {53, 62, 72, 87, 101, 110};
  const auto alone = [&](int one) {
    return std::find(std::begin(of_tegra), std::end(of_tegra), one) != std::end(of_tegra);
  };
  int found = 0;
  for (const int one : of)
    if (one == architecture || (one / 10 == architecture / 10 && one < architecture &&
                                !alone(one) && !alone(architecture)))
      found = one;
  if (found != 0) return found;
  for (const int one : compiled)
    if (one <= architecture) found = one;
  return found;
}
int code_of(int architecture) noexcept {
  return code_of(architecture, built, ptx);
}

bool has_warp_groups(int architecture) noexcept {
  return built_warp_groups && architecture == 90;
}

bool has_many_doubles(int architecture) noexcept {
  // CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
  return architecture == 80 || architecture == 90 || architecture == 100;
}

std::string built_architectures() {
  std::string out;
  for (const int one : built) out += (out.empty() ? "sm_" : ", sm_") + std::to_string(one);
  return out;
}

}  // namespace bitnet::cuda
