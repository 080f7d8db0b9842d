#pragma once
// The place to which a path for writing leads, held open, so that no other process can redirect the
// path afterwards.
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

// Why a file cannot be written: `error` is an errno, `text` ends a sentence.
struct problem {
  int error = 0;
  std::string text;
};

[[nodiscard]] std::unexpected<problem> refuse(int error, std::string why = {});

struct place {
  descriptor folder;  // O_PATH
  std::string name;   // in it; no link when it was looked at
  // What has that name, if anything has.
  std::optional<struct stat> found;
  // An open file that has no name that could be taken again, such as /dev/stdout of a pipe: O_PATH.
  descriptor nameless;
};

[[nodiscard]] std::expected<place, problem> find_place(const std::filesystem::path& path);
// A name without '/' in a folder that is held open, and was judged by the caller.
[[nodiscard]] std::expected<place, problem> find_place(int folder, const std::string& name);

}  // namespace bitnet::files
