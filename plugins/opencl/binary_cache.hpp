#pragma once
// Compiled kernels kept between runs, one file for each key.
//
// A file holds its whole key, so that keys with the same file name are distinguished, and a
// checksum. It is written to another name and renamed, so that a reader never sees a part of it.
// The folder and the files must belong to the user, and no other user may write to them, since
// their contents are executed.
// The code for files is this backend's own: a plugin includes nothing of common/, so that it can be
// built without the core.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::opencl {

class binary_cache {
 public:
  // With an empty folder or "off" nothing is kept.
  explicit binary_cache(std::string folder);

  // True if the file of this key was read. False with an empty note: there is no file; otherwise
  // `note` says why it cannot be used.
  bool load(std::string_view key, std::vector<unsigned char>& out, std::string& note) const;

  // Keeps `data`; `note` says why if that failed.
  bool store(std::string_view key, const std::vector<unsigned char>& data, std::string& note) const;

  // "" if nothing is kept.
  std::string path_of(std::string_view key) const;

 private:
  std::string folder_;
};

// The data in a file's content; nothing if it is damaged or belongs to another key.
std::optional<std::string_view> read_kept(std::string_view file, std::string_view key);

// FNV-1a, which detects accidental differences, not attacks.
uint64_t hash_of(std::string_view bytes, uint64_t start = 0xcbf29ce484222325u);

}  // namespace bitnet::opencl
