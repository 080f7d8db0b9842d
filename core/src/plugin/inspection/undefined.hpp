#pragma once
// The symbols that a plugin leaves to others: does anything that it brings define them?

#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {

// BN-A-LOAD, as the dynamic linker would say when it binds them. What only the program that loads
// the plugin may define does not count, as another program will not: a sanitizer's run time alone
// is a warning. Says nothing where a library is missing, which is an error of its own.
void examine_undefined(const elf_image& image, const std::vector<needed_library>& libraries,
                       findings& found);

}  // namespace bitnet::plugin
