#pragma once
// SHA-256 of bytes in pieces, and of files with a cache.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bitnet::receipt {

class sha256 {
 public:
  sha256();
  ~sha256();
  sha256(const sha256&) = delete;
  sha256& operator=(const sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  // 64 hexadecimal digits, lower case. Add nothing afterwards.
  [[nodiscard]] std::string hex();
  // The 32 bytes, likewise.
  [[nodiscard]] std::string bytes();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// An open file.
struct open_file {
  int descriptor = -1;
  uint64_t size_bytes = 0;
  std::string identity;  // changes if the file changes; "": its sum is not cached
  std::filesystem::path path;
};

// Hashes the whole file. BITNET_BAD_DATA if it has become shorter.
[[nodiscard]] result<std::string> sha256_of(const open_file& file);

// Cached sums of files, in a folder that only its owner can write: one small file each, named by
// the identity. A sum is valid while the identity is the same.
class remembered_sums {
 public:
  // "": no cache.
  explicit remembered_sums(std::filesystem::path folder) : folder_(std::move(folder)) {}
  [[nodiscard]] result<std::string> of(const open_file& file) const;

 private:
  [[nodiscard]] std::string recall(const open_file& file) const;
  void remember(const open_file& file, const std::string& sum) const;

  const std::filesystem::path folder_;
};

}  // namespace bitnet::receipt
