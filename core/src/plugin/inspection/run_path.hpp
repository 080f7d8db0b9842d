#pragma once
// The folders in which a plugin lets the dynamic linker look for its libraries. A user who can
// write there can put code into the process, so only absolute folders are allowed to which no other
// user can write.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

// Appends the items of a list, split at ':'. An empty item is one, too: it means the current
// directory.
void split_run_path(std::string_view list, std::vector<std::string>& out);

// As written.
[[nodiscard]] std::vector<std::string> run_path_of(const elf_image& image);

// Why it cannot be known where the linker would look for this item; "" if it is an absolute folder
// or begins with $ORIGIN. The linker replaces a '$' anywhere in it, and looks for an empty item,
// like any relative one, in the current folder.
[[nodiscard]] std::string run_path_fault(std::string_view item);

// The folder of an item without a fault, for an object in the folder `origin`. Nothing for $ORIGIN
// of a plugin, which is loaded through a descriptor and has "" for a folder.
[[nodiscard]] std::optional<std::filesystem::path> run_path_folder(std::string_view item,
                                                                   const std::string& origin);

// BN-I-RUN-PATH: an error for what has a fault, for a folder that other users can fill and for
// what climbs out of $ORIGIN, which is the folder of descriptors; a warning for other $ORIGIN, as
// nothing is there.
void examine_run_path(const inspection& plugin, findings& found);

}  // namespace bitnet::plugin
