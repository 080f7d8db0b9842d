#include "kernel_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "bitnet/abi/tensor.h"

extern "C" {
extern const unsigned char bitnet_cuda_rows[], bitnet_cuda_elements[], bitnet_cuda_states[],
    bitnet_cuda_dense[], bitnet_cuda_dense_rounded[], bitnet_cuda_attention[],
    bitnet_cuda_ternary[], bitnet_cuda_ternary_groups[], bitnet_cuda_ternary_tiles[],
    bitnet_cuda_head[];
#ifdef BITNET_CUDA_WARP_GROUPS
extern const unsigned char bitnet_cuda_ternary_warp_groups[];
#endif
}

namespace bitnet::cuda {
namespace {

enum image_index : uint8_t {
  rows,
  elements,
  states,
  dense,
  dense_rounded,
  attention,
  ternary,
  ternary_groups,
  ternary_tiles,
  head,
#ifdef BITNET_CUDA_WARP_GROUPS
  ternary_warp_groups,
#endif
  image_count
};
const image images[] = {
    {"rows", bitnet_cuda_rows},
    {"elements", bitnet_cuda_elements},
    {"states", bitnet_cuda_states},
    {"dense", bitnet_cuda_dense},
    {"dense_rounded", bitnet_cuda_dense_rounded},
    {"attention", bitnet_cuda_attention},
    {"ternary", bitnet_cuda_ternary},
    {"ternary_groups", bitnet_cuda_ternary_groups},
    {"ternary_tiles", bitnet_cuda_ternary_tiles},
    {"head", bitnet_cuda_head},
#ifdef BITNET_CUDA_WARP_GROUPS
    {"ternary_warp_groups", bitnet_cuda_ternary_warp_groups},
#endif
};
static_assert(std::size(images) == image_count);

// In the order of gpu::kernel_id; without a name where another takes its place. What kernels write
// is bound behind what they read.
struct known {
  image_index from;
  const char* name;
  uint32_t written;  // how many of the bindings
};
constexpr known kernels[] = {
    {dense, "embed_gather", 1},
    {rows, "rms_norm", 1},
    {rows, "act_quant", 2},
    {rows, "act_quant_groups", 2},
    {rows, "hadamard", 1},
    {ternary, "linear_ternary", 1},
    {dense, "linear_dense", 1},
    {elements, "rope", 1},
    {attention, "kv_write", 2},
    {attention, nullptr, 1},
    {elements, "elementwise", 1},
    {elements, "gather_rows", 1},
    {elements, "columns", 1},
    {states, "short_conv", 2},
    {states, "delta_gates", 1},
    {states, "delta_rule", 2},
    {rows, "norm_quant", 2},
    {rows, "glu_quant", 3},
    {ternary, "bit_linear", 1},
    {attention, "attn_tiles", 1},
    {attention, "attn_merge", 1},
    {head, "head_copy", 2},
    {head, "head_state", 2},
    {head, "head_approximate", 2},
    {head, "head_count", 1},
    {head, "head_exact", 3},
    {dense_rounded, "round_rows", 1},
    {dense_rounded, "linear_dense_rounded", 1},
};
static_assert(std::size(kernels) == static_cast<size_t>(gpu::kernel_id::count));

// For several tokens, fewest first.
const tiled_form with_one_scale[] = {
    {&images[ternary_tiles], "linear_ternary_few", few_tokens},
    {&images[ternary_tiles], "linear_ternary_many", many_tokens},
#ifdef BITNET_CUDA_WARP_GROUPS
    {&images[ternary_warp_groups], "linear_ternary_narrow", narrow_form},
    {&images[ternary_warp_groups], "linear_ternary_wide", wide_form},
#endif
};
const tiled_form with_factors[tiled_forms] = {
    {&images[ternary_groups], "linear_ternary_factored_few", few_factored},
    {&images[ternary_groups], "linear_ternary_factored_many", many_factored},
};
const tiled_form of_f16[tiled_forms] = {
    {&images[dense_rounded], "linear_dense_rounded_f16_few", few_rounded},
    {&images[dense_rounded], "linear_dense_rounded_f16_many", many_rounded},
};
const tiled_form of_bf16[tiled_forms] = {
    {&images[dense_rounded], "linear_dense_rounded_bf16_few", few_rounded},
    {&images[dense_rounded], "linear_dense_rounded_bf16_many", many_rounded},
};

bool has_factors(const gpu::kernel_spec& linear) noexcept {
  return linear.constants[1] == 1 || linear.constants[4] != 0;
}
// Of their kernels for several tokens: the shorter groups are a whole number of tiles, and part of
// a block.
bool fits_tiles(const gpu::kernel_spec& linear, const gpu::linear_ternary_params& p) noexcept {
  if (!has_factors(linear)) return true;
  const uint32_t own = p.scale_group == 0 ? p.k : p.scale_group, given = linear.constants[4];
  const uint32_t shorter = given == 0 ? own : std::min(own, given);
  return shorter == 32 || shorter == 64 || shorter == 128;
}

const char* format_name(uint32_t format) noexcept {
  switch (format) {
    case BITNET_FORMAT_F32:
      return "f32";
    case BITNET_FORMAT_F16:
      return "f16";
    case BITNET_FORMAT_BF16:
      return "bf16";
    case BITNET_FORMAT_Q8_0:
      return "q8_0";
    case BITNET_FORMAT_Q4_0:
      return "q4_0";
    case BITNET_FORMAT_Q4_K:
      return "q4_k";
    case BITNET_FORMAT_Q6_K:
      return "q6_k";
    default:
      return nullptr;
  }
}
const char* dtype_name(uint32_t dtype) noexcept {
  switch (dtype) {
    case BITNET_DTYPE_F32:
      return "f32";
    case BITNET_DTYPE_F16:
      return "f16";
    case BITNET_DTYPE_Q8_0:
      return "q8_0";
    case BITNET_DTYPE_Q4_0:
      return "q4_0";
    default:
      return nullptr;
  }
}

// Adds to a kernel's name what its form is called by.
bool add_form(const gpu::kernel_spec& spec, std::string& name) {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case gpu::kernel_id::linear_ternary:
      name += has_factors(spec) ? "_factored" : "_1";
      return true;
    case gpu::kernel_id::linear_dense: {
      const char* format = format_name(c[3]);
      if (!format) return false;
      name += std::string("_") + format + (c[2] <= 1 ? "_1" : "_4");
      return true;
    }
    case gpu::kernel_id::linear_dense_rounded:
      if (c[3] != BITNET_FORMAT_F16 && c[3] != BITNET_FORMAT_BF16) return false;
      name += std::string("_") + format_name(c[3]) + "_few";  // always one of its tiled forms
      return true;
    case gpu::kernel_id::head_copy:
    case gpu::kernel_id::head_exact: {
      const char* format = format_name(c[3]);
      if (!format) return false;
      name += std::string("_") + format;
      return true;
    }
    case gpu::kernel_id::head_approximate:
      name += c[2] <= 1 ? "_1" : "_4";
      return true;
    case gpu::kernel_id::attn_tiles: {
      const char *key = dtype_name(c[1]), *value = dtype_name(c[2]);
      if (!key || !value) return false;
      name += std::string("_") + key + "_" + value + "_" + std::to_string(c[3]);
      return c[3] == 4 || c[3] == 8 || c[3] == 16;
    }
    default:
      return true;
  }
}

uint64_t shared_words_of(const gpu::kernel_spec& spec) noexcept {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case gpu::kernel_id::hadamard:
      return c[1];
    case gpu::kernel_id::delta_rule:
      return uint64_t{2} * c[1];
    case gpu::kernel_id::bit_linear:
      return c[4];
    case gpu::kernel_id::head_approximate:
      return uint64_t{gpu::head_bins} * (c[2] <= 1 ? 1 : 4);
    case gpu::kernel_id::attn_tiles:
      return gpu::attn_tile_words(c[3], c[4]);
    case gpu::kernel_id::attn_merge:
      return uint64_t{4} * group_threads;
    default:
      return 0;
  }
}

// Architectures with code of their own, ascending, and the one whose PTX a driver can compile for
// newer ones.
constexpr int built[] = {BITNET_CUDA_BUILT};
constexpr int newest = BITNET_CUDA_NEWEST;

}  // namespace

const image* images_begin() noexcept {
  return std::begin(images);
}
const image* images_end() noexcept {
  return std::end(images);
}

bool find_form(const gpu::kernel_spec& spec, bool warp_groups, kernel_form& out) {
  if (spec.id >= gpu::kernel_id::count || spec.constants[0] != group_threads) return false;
  const known& kernel = kernels[static_cast<size_t>(spec.id)];
  const uint64_t shared = 4 * shared_words_of(spec);
  if (!kernel.name || shared > UINT32_MAX) return false;
  out.from = &images[kernel.from];
  out.function = kernel.name;
  out.shared_bytes = static_cast<uint32_t>(shared);
  if (!add_form(spec, out.function)) return false;
  if (spec.id == gpu::kernel_id::linear_ternary)
    out.tiled = has_factors(spec) ? with_factors : with_one_scale;
  if (spec.id == gpu::kernel_id::linear_dense_rounded)
    out.tiled = spec.constants[3] == BITNET_FORMAT_F16 ? of_f16 : of_bf16;
  if (out.tiled) out.tiled_count = tiled_forms;
  if (out.tiled == with_one_scale && warp_groups) out.tiled_count = with_warp_groups;
  return true;
}

bool writes_binding(gpu::kernel_id id, uint32_t binding) noexcept {
  return binding + kernels[static_cast<size_t>(id)].written >= gpu::bindings_of(id);
}

grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t processors) noexcept {
  const bool rounded = spec.id == gpu::kernel_id::linear_dense_rounded;
  if (spec.id != gpu::kernel_id::linear_ternary && !rounded) return {groups_x, groups_y, nullptr};
  constexpr uint32_t warps = group_threads / 32, most = 65535;
  const auto groups = [&](uint64_t work, uint64_t of_group) {
    return static_cast<uint32_t>(std::clamp<uint64_t>((work + of_group - 1) / of_group, 1, most));
  };
  const uint64_t tokens = uint64_t{groups_y} * std::max(spec.constants[2], 1u);  // at most
  const auto tiled = [&](const tiled_form& best, uint64_t n_rows) {
    return grid{groups(n_rows, best.tile.rows), groups(tokens, best.tile.tokens), &best};
  };
  // Of dense rows the next tile would be read again.
  if (rounded) {
    gpu::linear_dense_rounded_params p{};
    std::memcpy(&p, params, sizeof p);
    return tiled(form.tiled[tokens > few_rounded.tokens ? 1 : 0], p.n_rows);
  }
  gpu::linear_ternary_params p{};
  std::memcpy(&p, params, sizeof p);
  if (tokens == 1 || !form.tiled || !fits_tiles(spec, p)) {
    const uint32_t x = has_factors(spec) ? groups(p.n_rows, warps) : groups_x;
    return {x, groups(tokens, 1), nullptr};
  }
  // Two tokens take fewer instructions as a tile. From 17 on weights would be read twice.
  constexpr uint64_t fewest_of_many = 17, fewest_rows = 64;
  const bool many = tokens >= fewest_of_many && p.n_rows >= fewest_rows;
  if (!many || tokens <= many_tokens.tokens || form.tiled_count != with_warp_groups)
    return tiled(form.tiled[many ? 1 : 0], p.n_rows);
  // The larger tile reads half as much for a product, where it leaves no more than half of the
  // device without work.
  const grid wide = tiled(form.tiled[tiled_forms + 1], p.n_rows);
  const bool busy = uint64_t{2} * wide.x * wide.y >= processors;
  return busy ? wide : tiled(form.tiled[tiled_forms], p.n_rows);
}

int code_of(int architecture, std::span<const int> of, int newest_of) noexcept {
  int found = 0;
  for (const int one : of)
    if (one / 10 == architecture / 10 && one <= architecture) found = one;
  return found == 0 && architecture >= newest_of ? newest_of : found;
}
int code_of(int architecture) noexcept {
  return code_of(architecture, built, newest);
}

bool has_warp_groups(int architecture) noexcept {
  return std::size(with_one_scale) == with_warp_groups && architecture == 90;
}

std::string built_architectures() {
  std::string out;
  for (const int one : built) out += (out.empty() ? "sm_" : ", sm_") + std::to_string(one);
  return out;
}

}  // namespace bitnet::cuda
