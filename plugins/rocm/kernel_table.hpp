#pragma once
// Which function of the kernels computes a specification.

#include <cstdint>
#include <string>

#include "gpu-common/kernels.hpp"
#include "kernels/launch.hpp"

namespace bitnet::rocm {

// What kernels and the host share.
using kernels::group_threads, kernels::joined_launch, kernels::launch, kernels::most_joined;

inline constexpr uint32_t most_attention_rows = 8;  // of a tile

struct kernel_form {
  const char* part = nullptr;  // code_object() has it by this name
  std::string function;
  std::string several;        // for steps of several rows; empty: `function`
  uint32_t shared_bytes = 0;  // of dynamic shared memory
  bool joins = false;         // several launches of `function` can be one
};
// False if there is none: constants that gpu-common does not ask for.
bool find_form(const gpu::kernel_spec& spec, kernel_form& out);

// What is launched for a command: gpu-common counts rows of a matrix by threads where each takes
// one, and here a wave of so many lanes does.
struct grid {
  uint32_t x, y;
  bool several;  // kernel_form::several
};
grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t lanes) noexcept;

}  // namespace bitnet::rocm
