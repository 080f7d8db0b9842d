#pragma once
// Compiled kernels that are kept between runs, one file for each key.
//
// A file holds its whole key, so that two keys with one name are distinguished, and a checksum. It
// is written beside its place and renamed, so that a reader sees all of it or none. The folder and
// the files must belong to the user, and no other user may write to them: their contents are run.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::opencl {

class binary_cache {
 public:
  // An empty folder or "off": nothing is kept.
  explicit binary_cache(std::string folder);

  // True if the file of this key was read. False without a note: there is none; with one: it cannot
  // be used, and why.
  bool load(std::string_view key, std::vector<unsigned char>& out, std::string& note) const;

  // Keeps `data`; `note` says why if that failed.
  bool store(std::string_view key, const std::vector<unsigned char>& data, std::string& note) const;

  // "" if nothing is kept.
  std::string path_of(std::string_view key) const;

 private:
  std::string folder_;
};

// The data of a file's content; nothing if it is not whole, or another key's.
std::optional<std::string_view> read_kept(std::string_view file, std::string_view key);

// FNV-1a, against differences by accident, not by attack.
uint64_t hash_of(std::string_view bytes, uint64_t start = 0xcbf29ce484222325u);

}  // namespace bitnet::opencl
