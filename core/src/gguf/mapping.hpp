#pragma once
// A regular file, mapped read-only for as long as this object lives.
//
// Errors  BITNET_NOT_FOUND if it cannot be opened, BITNET_BAD_DATA if it is no regular file or is
//         empty, and the error of the thread's file_judge.
// Threads the bytes may be read from any thread.
// Changes If another program truncates the file while it is mapped, the missing bytes read as
//         zeros: call check_size() before you use what was read.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/guarded_map.hpp"
#include "base/result.hpp"

namespace bitnet::gguf {

class mapping {
 public:
  static result<mapping> open(const std::filesystem::path& path);
  // Maps an open file and takes its descriptor; `path` is its name in messages.
  static result<mapping> adopt(int descriptor, const std::filesystem::path& path);
  mapping(mapping&& other) noexcept;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping();

  [[nodiscard]] std::span<const std::byte> bytes() const { return map_.bytes(); }
  [[nodiscard]] bool holds(std::span<const std::byte> part) const {
    return part.data() >= bytes().data() && part.data() < bytes().data() + bytes().size();
  }
  // Lets the kernel drop the pages of a part: guarded_map.
  void give_back(std::span<const std::byte> part) const { map_.give_back(part); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Changes if the file changes: device, inode, size and times.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  // Whether `path` still leads to this file.
  [[nodiscard]] bool is_file(const std::filesystem::path& path) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // BITNET_BAD_DATA if the file's size has changed since it was opened, or bytes of it could not be
  // read.
  [[nodiscard]] result<void> check_size() const;
  // Only the second check. It needs no system call, so it can run for every token.
  [[nodiscard]] result<void> check_read() const;

 private:
  mapping() = default;
  std::filesystem::path path_;
  std::string identity_;
  int descriptor_ = -1;
  guarded_map map_;
};

}  // namespace bitnet::gguf
