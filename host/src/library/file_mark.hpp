#pragma once
// What differs between two states of a file, and the folders that decide which file a path means.

#include <cstdint>
#include <set>
#include <string>

namespace bitnet::host {

// All zero: no file is there.
struct file_mark {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const file_mark&) const = default;
};

// Of the file that `path` leads to now.
[[nodiscard]] file_mark mark_of(const std::string& path);

// Every folder on the way to `path`, through the links that are there now: a change in one of them
// may make the path mean another file. `path` is absolute.
[[nodiscard]] std::set<std::string> folders_on_the_way(const std::string& path);

}  // namespace bitnet::host
