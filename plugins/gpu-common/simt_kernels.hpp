#pragma once
// Names and memory of the kernels in simt/, as the cuda and rocm backends find them in what a
// compiler made of each file there.

#include <cstdint>
#include <string>
#include <string_view>

#include "driver.hpp"
#include "kernels.hpp"

namespace bitnet::gpu {

// The file that has a kernel, without its suffix; nullptr for kernels that are not in simt/.
const char* part_of(kernel_id id) noexcept;

// The names of formats and dtypes in functions' names; nullptr if no kernel has the format.
const char* format_name(uint32_t format) noexcept;
const char* dtype_name(uint32_t dtype) noexcept;

// Whether a product with ternary weights has factors of groups of elements.
bool has_factors(const kernel_spec& linear) noexcept;
// Returns the elements of the shorter groups, of weights or of activations.
uint32_t shorter_group(const kernel_spec& linear, const linear_ternary_params& p) noexcept;

// Most bytes of a buffer that launch_recording.hpp gathers. Kernels rarely read all of a larger
// one.
inline constexpr uint64_t most_gathered_bytes = uint64_t{64} << 10;
// The same for a table of cosines and sines, which every layer reads.
inline constexpr uint64_t most_gathered_rotations = uint64_t{4} << 20;

// Adds to a kernel's name what its specification selects, but for kernels of attention and of
// states. False for a format that no kernel has.
bool add_selected(const kernel_spec& spec, std::string& name);
// Whether several launches of a function in simt/ can be one: it is a BITNET_KERNEL_JOINED.
bool joins(std::string_view function) noexcept;
// Sets the capabilities and quirks that are the kernels', whatever the device.
void set_simt_facts(facts& about) noexcept;
// Words of dynamic shared memory of a work group.
uint64_t shared_words_of(const kernel_spec& spec) noexcept;

}  // namespace bitnet::gpu
