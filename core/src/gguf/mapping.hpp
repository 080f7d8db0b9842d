#pragma once
// A regular file, mapped read-only for as long as this object lives.
//
// Errors  BITNET_NOT_FOUND when it cannot be opened, BITNET_BAD_DATA when it is no regular file or
//         is empty. That of the thread's file_judge where there is one.
// Threads the bytes may be read from any thread.
// Changes of a file that another program cuts short while it is mapped, the missing bytes read as
//         zeros: what was read must not be used before check_size() agrees.

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
  // Of a file that is open for reading, which it owns from now on; `path` is its name in messages.
  static result<mapping> adopt(int descriptor, const std::filesystem::path& path);
  mapping(mapping&& other) noexcept;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping();

  [[nodiscard]] std::span<const std::byte> bytes() const { return map_.bytes(); }
  [[nodiscard]] bool holds(std::span<const std::byte> part) const {
    return part.data() >= bytes().data() && part.data() < bytes().data() + bytes().size();
  }
  // Pages of a part need not stay in memory: guarded_map.
  void give_back(std::span<const std::byte> part) const { map_.give_back(part); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Changes with whatever changes the file: device, inode, size and times.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  // Whether `path` leads to this file now.
  [[nodiscard]] bool is_file(const std::filesystem::path& path) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // BITNET_BAD_DATA if the file has another size than when it was opened, or bytes of it could not
  // be read.
  [[nodiscard]] result<void> check_size() const;
  // The latter only, which costs no system call: for every token.
  [[nodiscard]] result<void> check_read() const;

 private:
  mapping() = default;
  std::filesystem::path path_;
  std::string identity_;
  int descriptor_ = -1;
  guarded_map map_;
};

}  // namespace bitnet::gguf
