#pragma once
// Which function of the embedded kernels computes a specification, and for which devices there are
// any.

#include <cstdint>
#include <string>

#include "gpu-common/kernels.hpp"
#include "kernels/launch.hpp"

namespace bitnet::cuda {

struct image {
  const char* name;
  const void* data;  // a fat binary
};
// By kernels/<name>.cu.
const image* images_begin() noexcept;
const image* images_end() noexcept;

struct kernel_form {
  const image* from = nullptr;
  std::string function;
  std::string many;           // for many tokens, with the same bits; empty: there is none
  uint32_t shared_bytes = 0;  // of dynamic shared memory
};
// False if there is none: constants that gpu-common does not ask for.
bool find_form(const gpu::kernel_spec& spec, kernel_form& out);

// Whether the kernel writes what is bound there.
bool writes_binding(gpu::kernel_id id, uint32_t binding) noexcept;

// What is launched for a command: gpu-common counts rows of a matrix by threads where each takes
// one, and here a warp does; and it does not know of kernels for many tokens.
struct grid {
  uint32_t x, y;
  bool many;
};
grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y) noexcept;

// Whether there is code for a device of this architecture, 90 for sm_90, and "sm_80, sm_90".
bool has_code_for(int architecture) noexcept;
std::string built_architectures();

}  // namespace bitnet::cuda
