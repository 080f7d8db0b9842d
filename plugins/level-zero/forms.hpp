#pragma once
// Kernels as SPIR-V, compiled from plugins/gpu-common/opencl-c when the plugin is built.
//
// A form is compiled for certain constants of a gpu::kernel_spec. For some kernels one constant of
// the specification, the loose one, may be less than the form's: the form has room for more. If it
// changes the result, the driver gets its value as specialisation constant 1.

#include <cstdint>
#include <span>

#include "gpu-common/kernels.hpp"

namespace bitnet::level_zero {

inline constexpr uint32_t group_threads = 64;        // of every form
inline constexpr uint32_t specialised_constant = 1;  // its id in SPIR-V

struct form {
  gpu::kernel_id id;
  uint32_t constants[5];  // as in a specification
  uint32_t loose;         // index of the constant that may exceed the request; 0: none
  bool specialised;       // the requested value is a constant of the SPIR-V
  const unsigned char *begin, *end;
};

std::span<const form> forms() noexcept;

// The form with the least room that meets the specification; nullptr if none does.
const form* form_of(const gpu::kernel_spec& spec) noexcept;

// Most elements of an attention head, or of keys of the delta rule, that a form has room for.
inline constexpr uint32_t most_kept = 8;  // times group_threads

}  // namespace bitnet::level_zero
