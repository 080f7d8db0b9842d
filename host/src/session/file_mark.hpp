#pragma once
// Detects a changed file, and lists the folders that decide which file a path means.

#include <cstdint>
#include <set>
#include <string>

namespace bitnet::host {

// Identifies a state of a file. All zero: there is no file.
struct file_mark {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const file_mark&) const = default;
};

// The mark of the file that `path` leads to now.
[[nodiscard]] file_mark mark_of(const std::string& path);

// Every folder on the way to `path`, through the present links. A change in one of them may make
// the path lead to another file. `path` is absolute.
[[nodiscard]] std::set<std::string> folders_on_the_way(const std::string& path);

}  // namespace bitnet::host
