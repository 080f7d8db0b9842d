#pragma once
// Checks that the libraries of a plugin define all symbols that it needs.

#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {

// BN-A-LOAD, as the dynamic linker would report. Symbols that only the program defines count as
// undefined, since another program lacks them; for a sanitizer's run time it is a warning. No
// result if a library is missing, which is an error of its own.
void examine_undefined(const elf_image& image, const std::vector<needed_library>& libraries,
                       findings& found);

}  // namespace bitnet::plugin
