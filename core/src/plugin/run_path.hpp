#pragma once
// Where a plugin tells the dynamic linker to look for its libraries. Whoever can write there can
// put code into the process, so only absolute folders that nobody else can fill are allowed.

#include <string>
#include <string_view>
#include <vector>

#include "plugin/elf_image.hpp"
#include "plugin/finding.hpp"
#include "plugin/inspect.hpp"

namespace bitnet::plugin {

// Appends the items of a list, split at ':'. An empty item is one, too: it means the current
// directory.
void split_run_path(std::string_view list, std::vector<std::string>& out);

// As written.
[[nodiscard]] std::vector<std::string> run_path_of(const elf_image& image);

// BN-I-RUN-PATH: an error for a relative folder or one that somebody else can fill, a warning for
// $ORIGIN, which is not followed.
void examine_run_path(const inspection& plugin, findings& found);

}  // namespace bitnet::plugin
