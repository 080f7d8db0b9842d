#pragma once
// Checks that only root and the user who runs us could have put code into a file.
//
// A plugin or manifest must be a regular file, and it and every directory above it must belong to
// root or to the effective user, and be writable by no other user (a directory may if it is sticky,
// like /tmp). So must the symbolic links on the way. Each step is taken from the descriptor of the
// one before, so that what was checked is what was opened, and a plugin is loaded through the
// descriptor that is kept here: nothing can be swapped in between.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

class file_descriptor {
 public:
  explicit file_descriptor(int fd = -1) : fd_(fd) {}
  file_descriptor(file_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~file_descriptor();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Identifies the file that was checked, so that a later one can be compared.
struct file_identity {
  uint64_t device = 0, inode = 0, size_bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const file_identity&) const = default;
};

struct trusted_file {
  file_descriptor fd;          // open for reading
  std::filesystem::path path;  // absolute, without symbolic links
  file_identity identity;
};

// Opens a file that may be trusted. BN-T-MISSING (BITNET_UNAVAILABLE), BN-T-KIND, BN-T-OWNER,
// BN-T-MODE.
[[nodiscard]] checked<trusted_file> open_trusted(const std::filesystem::path& file);

// The same open file again.
[[nodiscard]] trusted_file duplicate(const trusted_file& file);

// Does the file still hold the bytes that it held when it was opened? BN-T-CHANGED.
[[nodiscard]] checked<void> check_unchanged(const trusted_file& file);

// The same for any owner: to read a file and never to load it. BN-T-MISSING, BN-T-KIND.
[[nodiscard]] checked<trusted_file> open_any(const std::filesystem::path& file);

// The same rules for a directory and all above it.
[[nodiscard]] checked<void> trust_directory(const std::filesystem::path& directory);

// The same, held open for reading, so that what is opened from it lies where it was checked. With
// `make`, directories that are missing are made with mode 0700, each in one that was checked before
// anything was made in it.
enum class missing_directory : uint8_t { is_an_error, make };
[[nodiscard]] checked<file_descriptor> open_trusted_directory(
    const std::filesystem::path& directory,
    missing_directory what = missing_directory::is_an_error);

// All bytes of the file, at most `limit`; BN-M-SIZE beyond it.
[[nodiscard]] checked<std::string> read_all(const trusted_file& file, uint64_t limit);

}  // namespace bitnet::plugin
