#pragma once
// A regular file, mapped read-only for as long as this object lives.
//
// Errors  BITNET_NOT_FOUND when it cannot be opened, BITNET_BAD_DATA when it is no regular file or
//         is empty.
// Threads the bytes may be read from any thread. A file that another program cuts short while it is
//         mapped would kill a reader with SIGBUS; check_size finds that out beforehand.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

namespace bitnet::gguf {

class mapping {
 public:
  static result<mapping> open(const std::filesystem::path& path);
  mapping(mapping&& other) noexcept;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Changes with whatever changes the file: device, inode, size and times.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  // BITNET_BAD_DATA if the file has another size than when it was opened.
  [[nodiscard]] result<void> check_size() const;

 private:
  mapping() = default;
  std::filesystem::path path_;
  std::string identity_;
  int descriptor_ = -1;
  std::span<const std::byte> bytes_;
};

}  // namespace bitnet::gguf
