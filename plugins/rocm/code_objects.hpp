#pragma once
// The code objects that the plugin carries: the kernels of kernels/<part>.cu or of
// plugins/gpu-common/simt/<part>.cu, for each target. pack.py has the form of the archive.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::rocm {

// Whether there is code for a target such as gfx90a, whether some of it is of a part, and the names
// of all that there is code for, "gfx900, gfx902".
bool has_code(std::string_view target);
bool has_code(std::string_view target, std::string_view part);
std::string built_targets();

// The code object of a part for a target, as HIP loads it. Empty if there is none, or none that is
// valid.
std::vector<uint8_t> code_object(std::string_view target, std::string_view part);

// The same of any archive.
std::vector<uint8_t> code_object(std::span<const uint8_t> archive, std::string_view target,
                                 std::string_view part);

}  // namespace bitnet::rocm
