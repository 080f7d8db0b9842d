#pragma once
// Which function of the kernels computes a specification.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu-common/forms/forms.hpp"
#include "gpu-common/kernels.hpp"
#include "kernels/launch.hpp"

namespace bitnet::rocm {

// What kernels and the host share.
using kernels::group_threads, kernels::joined_launch, kernels::launch, kernels::most_joined;

inline constexpr uint32_t most_attention_rows = 8;  // of a tile

// The part with products by matrix cores, which devices without them do not have.
inline constexpr char matrix_part[] = "ternary_matrix";

using gpu::forms;
// Every form that another kernel can replace.
forms optional_forms();
// Those of them that use matrix cores.
forms matrix_forms();
// optional_forms(), as they are listed.
std::vector<gpu::kernel_alternative> alternatives();

// A kernel for steps of several rows.
struct several_form {
  const char *part, *function;
  uint32_t from;                     // rows of a step from which on it is used
  bool of_whole_words;               // its groups of elements are a multiple of 32
  uint32_t (*rows)(uint32_t lanes);  // of the matrix that a wave takes
  uint32_t tokens;                   // that a wave takes
};
inline constexpr uint32_t most_several = 3;

struct kernel_form {
  const char* part = nullptr;  // code_object() has it by this name
  std::string function;
  std::span<const several_form> several;  // in ascending order of several_form::from
  uint32_t usable = 0;                    // bit i: several[i] may be used
  uint32_t shared_bytes = 0;              // of dynamic shared memory
  bool joins = false;                     // several launches of `function` can be one
};
// The form without any of `off`. False if there is none: constants that gpu-common does not ask
// for.
bool find_form(const gpu::kernel_spec& spec, const forms& off, kernel_form& out);

// What is launched for a command: gpu-common counts rows of a matrix by threads where each takes
// one, and here a wave of so many lanes does.
struct grid {
  uint32_t x, y;
  int several = -1;  // which of kernel_form::several; -1: none
};
grid grid_of(const kernel_form& form, const gpu::kernel_spec& spec, const uint32_t* params,
             uint32_t groups_x, uint32_t groups_y, uint32_t lanes) noexcept;

}  // namespace bitnet::rocm
