#pragma once
// What in a shared object would make the dynamic linker map code that was not checked: names that
// are paths, libraries that take another's place or watch it, and text that the linker replaces.

#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {

// What is wrong with the name of a needed library; "" if it is a plain file name.
[[nodiscard]] std::string name_fault(std::string_view name);

// Entries of the dynamic section that name libraries in other ways than as needed ones, such as
// "DT_FILTER".
[[nodiscard]] std::vector<std::string> redirections(const elf_image& image);

// "foreign code": BN-I-FOREIGN.
void examine_foreign(const elf_image& image, findings& found);

}  // namespace bitnet::plugin
