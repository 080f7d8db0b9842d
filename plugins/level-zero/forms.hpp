#pragma once
// Kernels as SPIR-V, made of plugins/gpu-common/opencl-c when the plugin was built.
//
// A form is compiled for some constants of a gpu::kernel_spec. Of some kernels one constant of the
// specification, the loose one, may be less than the form's: the form has room for more. Where it
// changes what is computed, its value is given to the driver as specialisation constant 1.

#include <cstdint>
#include <span>

#include "gpu-common/kernels.hpp"

namespace bitnet::level_zero {

inline constexpr uint32_t group_threads = 64;        // of every form
inline constexpr uint32_t specialised_constant = 1;  // its id in SPIR-V

struct form {
  gpu::kernel_id id;
  uint32_t constants[5];  // as those of a specification
  uint32_t loose;         // which of them may be more than is asked for; 0: none
  bool specialised;       // the value that is asked for is a constant of the SPIR-V
  const unsigned char *begin, *end;
};

std::span<const form> forms() noexcept;

// The form with the least room that computes what is asked for; nullptr if none does.
const form* form_of(const gpu::kernel_spec& spec) noexcept;

// Elements of a head of attention, of keys of the delta rule: the most that a form has room for.
inline constexpr uint32_t most_kept = 8;  // times group_threads

}  // namespace bitnet::level_zero
