#pragma once
// Checks that only root and the current user could have written a file.
//
// A plugin or manifest must be a regular file. The file, the directories above it and the symbolic
// links on the way must belong to root or to the effective user, and no other user may be able to
// write to them (except to a sticky directory, like /tmp). Each step starts at the descriptor of
// the previous one, so the checked file is the open file. A plugin is loaded through the descriptor
// that is kept here, so the file cannot be replaced between check and load.

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

// Identifies the checked file, to compare it with a later one.
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

// Opens a file if it can be trusted. BN-T-MISSING (BITNET_UNAVAILABLE), BN-T-KIND, BN-T-OWNER,
// BN-T-MODE.
[[nodiscard]] checked<trusted_file> open_trusted(const std::filesystem::path& file);

// Duplicates the descriptor of the open file.
[[nodiscard]] trusted_file duplicate(const trusted_file& file);

// Checks that the file has not changed since it was opened. BN-T-CHANGED.
[[nodiscard]] checked<void> check_unchanged(const trusted_file& file);

// Opens a file of any owner, for reading only, never for loading. BN-T-MISSING, BN-T-KIND.
[[nodiscard]] checked<trusted_file> open_any(const std::filesystem::path& file);

// Checks a directory and all directories above it by the same rules.
[[nodiscard]] checked<void> trust_directory(const std::filesystem::path& directory);

// The same, and holds the directory open, so that files opened from it lie where it was checked.
// With `make`, missing directories are made with mode 0700, each inside a checked one.
enum class missing_directory : uint8_t { is_an_error, make };
[[nodiscard]] checked<file_descriptor> open_trusted_directory(
    const std::filesystem::path& directory,
    missing_directory what = missing_directory::is_an_error);

// Reads the whole file, at most `limit` bytes; BN-M-SIZE if it has more.
[[nodiscard]] checked<std::string> read_all(const trusted_file& file, uint64_t limit);

}  // namespace bitnet::plugin
