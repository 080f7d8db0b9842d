#pragma once
// Lists the files mapped into this process, by the kernel: the path that the dynamic linker reports
// may lead to another file by now.
//
// Device numbers here are those of the kernel's list. stat() returns others on overlay and btrfs,
// so a file on disk is compared by mapping it too (identity_when_mapped).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::plugin {

struct mapped_identity {
  uint64_t device = 0, inode = 0;
  bool operator==(const mapped_identity&) const = default;
};

struct mapped_file {
  uint64_t begin = 0, end = 0;  // addresses
  mapped_identity identity;
  std::string path;      // "" if it has none
  bool deleted = false;  // its name is gone or belongs to another file now
};

// Parses the lines of /proc/self/maps that name a file; skips others.
[[nodiscard]] std::vector<mapped_file> parse_maps(std::string_view text);
[[nodiscard]] std::vector<mapped_file> mapped_files();

// The file behind an address, if there is one.
[[nodiscard]] std::optional<mapped_identity> mapped_at(uint64_t address);
// The identity of an open file in that list; nullopt if it cannot be mapped.
[[nodiscard]] std::optional<mapped_identity> identity_when_mapped(int fd);
[[nodiscard]] bool is_mapped(const mapped_identity& file);

}  // namespace bitnet::plugin
