#pragma once
// Which function of the embedded kernels computes a specification, and for which devices there are
// any.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu-common/kernels.hpp"
#include "kernels/launch.hpp"
#include "kernels/tiles.hpp"

namespace bitnet::cuda {

// What kernels and the host share.
using kernels::few_factored, kernels::few_rounded, kernels::few_tokens;
using kernels::group_threads, kernels::joined_launch, kernels::launch, kernels::most_joined;
using kernels::many_factored, kernels::many_rounded, kernels::many_tokens, kernels::one_factored;
using kernels::narrow_form, kernels::wide_form;
using kernels::stage_elements, kernels::stages;
using kernels::tensor_map, kernels::tile_form, kernels::warp_lanes;

struct image {
  const char* name;
  const void* data;  // a fat binary
};
// By kernels/<name>.cu.
const image* images_begin() noexcept;
const image* images_end() noexcept;

// Kernels that have the same bits, of tiles of rows and tokens; nearly all on tensor cores.
struct tiled_form {
  const image* from;
  const char* function;
  tile_form tile;
};
// Names of forms that a device does without.
using forms = std::vector<std::string>;
// All that it can do without, since another kernel does the same, and those by warp groups.
forms optional_forms();
forms forms_by_warp_groups();

// For few tokens, for many; then, with factors, for one; or those by warp groups, the smaller tile
// first.
inline constexpr uint32_t most_tiled_forms = 4;
struct kernel_form {
  const image* from = nullptr;
  std::string function;
  uint32_t shared_bytes = 0;  // of dynamic shared memory
  const tiled_form* tiled = nullptr;
  uint32_t tiled_count = 0;  // so many
  uint32_t usable = 0;       // a bit for each of these
  bool joins = false;        // several launches of `function` can be one
};
// False if there is none: constants that gpu-common does not ask for.
bool find_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out);

// Code of this architecture and newer ones waits for kernels that it is launched beside
// (common.cuh).
inline constexpr int first_that_waits = 90;

// Whether the kernel writes what is bound there, and whether it reads cosines and sines there.
bool writes_binding(gpu::kernel_id id, uint32_t binding) noexcept;
bool reads_turns(gpu::kernel_id id, uint32_t binding) noexcept;

// What is launched for a command: gpu-common counts rows of a matrix by threads where each takes
// one, and here a warp does; and it does not know of kernels for several tokens. `processors`: of
// the device, which run groups beside each other.
struct grid {
  uint32_t x, y;
  const tiled_form* tiled;  // one of the form's, or nullptr: its plain function
};
grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t processors) noexcept;

// The architecture whose code a device of this one runs, 90 for sm_90: that of the same first digit
// or, compiled by the driver, the newest PTX that is not newer than the device. 0: there is none.
// Devices that are a chip with its processor (Jetson) and others do not run each other's code.
// And what is built, "sm_80, sm_90".
int code_of(int architecture, std::span<const int> built, std::span<const int> ptx) noexcept;
int code_of(int architecture) noexcept;
// Whether a device of this one has tensor cores that multiply by warp groups, and this build
// kernels for them: code for those runs on nothing else.
bool has_warp_groups(int architecture) noexcept;
std::string built_architectures();

}  // namespace bitnet::cuda
