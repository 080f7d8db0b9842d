#pragma once
// Chooses the function of the embedded kernels that computes a specification, and says which
// devices this build has code for.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu-common/forms/forms.hpp"
#include "gpu-common/kernels.hpp"
#include "kernels/launch.hpp"
#include "kernels/tiles.hpp"

namespace bitnet::cuda {

// Declarations that kernels and host code share.
using kernels::few_factored, kernels::few_rounded, kernels::few_tokens;
using kernels::group_threads, kernels::joined_launch, kernels::launch, kernels::most_joined;
using kernels::many_factored, kernels::many_rounded, kernels::many_tokens, kernels::one_factored;
using kernels::most_quantised, kernels::one_product, kernels::one_quantised;
using kernels::narrow_form, kernels::prompt_form, kernels::rounded_prompt_form;
using kernels::one_row, kernels::one_row_long, kernels::one_row_most;
using kernels::stage_elements, kernels::stages;
using kernels::tensor_map, kernels::tile_form, kernels::warp_lanes;
using kernels::wide_factored, kernels::wide_form;

struct image {
  const char* name;
  const void* data;  // a fat binary
};
// One image for each kernels/<name>.cu.
const image* images_begin() noexcept;
const image* images_end() noexcept;

inline constexpr uint32_t most_attention_rows = 16;  // of a tile, but for those of prompts

// How a form is listed: the members of gpu::kernel_alternative without its name.
struct form_listing {
  uint32_t op, format, exact;
  uint32_t precision = BITNET_PRECISION_F32;
};
// A form that computes a tile of rows and tokens with the same bits; most use tensor cores.
struct tiled_form {
  const image* from;
  const char* function;
  tile_form tile;
  form_listing listing;
};
using gpu::forms;
// Every form that plans can do without, so that each can be switched off: another form replaces it,
// or, for products with rounded activations, the kernel in f32.
forms optional_forms();
// The forms among them that need warp groups.
forms forms_by_warp_groups();
// The forms among them that gain only where has_many_doubles().
forms forms_by_doubles();
// optional_forms() of a device with such precisions (gpu::capabilities), as they are listed.
std::vector<gpu::kernel_alternative> alternatives_for(uint32_t precisions);
// The precisions, as in gpu::capabilities, of products with rounded activations, if these forms are
// left out.
uint32_t rounded_products_without(const forms& off) noexcept;
// gpu::capabilities::rounded_heads, if these forms are left out; and the forms of the heads that
// are not among `rounded_heads`.
uint32_t rounded_heads_without(const forms& off) noexcept;
forms forms_without_heads(uint32_t rounded_heads);

inline constexpr uint32_t most_tiled_forms = 5;
struct kernel_form {
  const image* from = nullptr;
  std::string function;
  uint32_t shared_bytes = 0;  // of dynamic shared memory
  // For few tokens, for many tokens, for one token; then by warp groups, without factors two forms
  // and the smaller tile first. For few rows: that for short rows first.
  const tiled_form* tiled = nullptr;
  uint32_t tiled_count = 0;  // number of elements of `tiled`
  uint32_t usable = 0;       // bit i: tiled[i] may be used
  bool joins = false;        // several launches of `function` can be one
};
// False for constants that no kernel supports; gpu-common does not use such constants.
bool find_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out);

// From this architecture on, kernels wait for the kernels before them (BITNET_KERNEL_BY in
// plugins/gpu-common/simt/common.cuh), so that they may be launched before those end.
inline constexpr int first_that_waits = 90;

// The grid and the tiled form of a command's launch. They differ from the command's own numbers of
// groups: gpu-common assumes a thread for each row of a matrix, but here a warp computes a row, and
// gpu-common does not know forms for several tokens. `processors`: multiprocessors of the device.
// `all_rows`: of the matrices of all commands that are one launch with this one; 0 if it is alone.
struct grid {
  uint32_t x, y;
  const tiled_form* tiled;  // one of the form's, or nullptr: its plain function
};
grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t processors,
             uint64_t all_rows = 0) noexcept;

// Returns the built architecture whose code a device of `architecture` (90: sm_90) runs, or 0 if
// there is none: the newest built one of the same major that is not newer than the device, else the
// newest PTX that is not newer, which the driver compiles. Code for integrated GPUs (Jetson) and
// code for other GPUs is not compatible.
int code_of(int architecture, std::span<const int> built, std::span<const int> ptx) noexcept;
int code_of(int architecture) noexcept;
// Whether devices of `architecture` multiply by warp groups and this build has kernels for them.
// Only sm_90 can run such code.
bool has_warp_groups(int architecture) noexcept;
// Whether devices of `architecture` compute half as many products of doubles as of floats. Others
// compute one in 32 or 64.
bool has_many_doubles(int architecture) noexcept;
// Lists the built architectures: "sm_80, sm_90".
std::string built_architectures();

}  // namespace bitnet::cuda
