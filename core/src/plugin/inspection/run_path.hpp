#pragma once
// Checks the folders in which a plugin makes the dynamic linker search for libraries. A user who
// can write there can put code into the process, so only absolute folders that no other user can
// write to are allowed.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

// Appends the items of a list, split at ':'. Empty items count: they mean the current directory.
void split_run_path(std::string_view list, std::vector<std::string>& out);

// As written.
[[nodiscard]] std::vector<std::string> run_path_of(const elf_image& image);

// The fault of an item; "" if it is an absolute folder or begins with $ORIGIN. The linker expands a
// '$' anywhere in it, and searches the current folder for an empty or relative item.
[[nodiscard]] std::string run_path_fault(std::string_view item);

// The folder of an item without a fault, for an object in the folder `origin`. nullopt for $ORIGIN
// of a plugin: that is loaded through a descriptor, and its origin is "".
[[nodiscard]] std::optional<std::filesystem::path> run_path_folder(std::string_view item,
                                                                   const std::string& origin);

// BN-I-RUN-PATH: an error for an item with a fault, a folder that other users can write to, and a
// path that leaves $ORIGIN, which is the folder of descriptors; a warning for other $ORIGIN items,
// since nothing is there.
void examine_run_path(const inspection& plugin, findings& found);

}  // namespace bitnet::plugin
