#pragma once
// Maps a file, so that only the parts in use are read: a plugin may hold hundreds of megabytes of
// device code. Bytes that the file loses meanwhile read as zeros; check_unchanged() detects that.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/guarded_map.hpp"

namespace bitnet::plugin {

class file_map {
 public:
  // Maps the first bytes of an open file, which may be closed afterwards. nullopt if that fails.
  static std::optional<file_map> open(int fd, uint64_t size_bytes);
  // Valid while this object lives; empty for an empty file.
  [[nodiscard]] std::span<const std::byte> bytes() const { return map_.bytes(); }

 private:
  explicit file_map(guarded_map map) : map_(std::move(map)) {}

  guarded_map map_;
};

}  // namespace bitnet::plugin
