#pragma once
// Finds entries of a shared object that make the dynamic linker map unchecked code: names that are
// paths, libraries that replace or audit others, and text that the linker expands.

#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {

// The fault of a needed library's name; "" if it is a plain file name.
[[nodiscard]] std::string name_fault(std::string_view name);

// Entries of the dynamic section, other than needed libraries, that name libraries, such as
// "DT_FILTER".
[[nodiscard]] std::vector<std::string> redirections(const elf_image& image);

// Runs the check "foreign code": BN-I-FOREIGN.
void examine_foreign(const elf_image& image, findings& found);

}  // namespace bitnet::plugin
