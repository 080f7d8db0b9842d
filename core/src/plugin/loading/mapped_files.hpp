#pragma once
// Which files are mapped into this process, by the kernel: the file that the dynamic linker reports
// may be another copy.
//
// The device numbers here are those of the kernel's list. On overlay and btrfs file systems stat()
// gives others, so a file on disk is compared by mapping it too (identity_when_mapped).

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
  bool deleted = false;  // its name is gone, or stands for another file now
};

// Lines of /proc/self/maps that name a file; others are passed over.
[[nodiscard]] std::vector<mapped_file> parse_maps(std::string_view text);
[[nodiscard]] std::vector<mapped_file> mapped_files();

// The file behind an address, if there is one.
[[nodiscard]] std::optional<mapped_identity> mapped_at(uint64_t address);
// How an open file appears in the list; nullopt for what cannot be mapped.
[[nodiscard]] std::optional<mapped_identity> identity_when_mapped(int fd);
[[nodiscard]] bool is_mapped(const mapped_identity& file);

}  // namespace bitnet::plugin
