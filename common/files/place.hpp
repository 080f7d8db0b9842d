#pragma once
// The folder and name that a path for writing leads to. The folder is held open, so that no other
// process can redirect the path afterwards.
//
// Links   of root are followed, and those of the effective user as long as the file lies in a
//         folder of root or of that user. Links of other users are not: the owner of a link would
//         decide which file is overwritten.

#include <sys/stat.h>

#include <expected>
#include <filesystem>
#include <optional>
#include <string>

#include "files/descriptor.hpp"

namespace bitnet::files {

// Why a file cannot be written: `error` is an errno, `text` the end of a message.
struct problem {
  int error = 0;
  std::string text;
};

// The system failed or refused, or this library does not accept the file. `why`: the end of a
// message; "": the system's text for `error`.
[[nodiscard]] std::unexpected<problem> fail(int error, std::string why = {});

struct place {
  descriptor folder;  // O_PATH
  std::string name;   // in `folder`; was no link when it was looked up
  // The existing file of that name; nullopt: there is none.
  std::optional<struct stat> found;
  // O_PATH descriptor of an open file that has no name to open again: /dev/stdout of a pipe.
  descriptor nameless;
};

[[nodiscard]] std::expected<place, problem> find_place(const std::filesystem::path& path);
// Finds `name`, which has no '/', in an open folder that the caller has checked.
[[nodiscard]] std::expected<place, problem> find_place(int folder, const std::string& name);

}  // namespace bitnet::files
