#pragma once
// A file in memory, read as far as it is looked at: a plugin may hold hundreds of megabytes of
// device code. Bytes that it loses meanwhile read as zeros; check_unchanged() finds that out.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/guarded_map.hpp"

namespace bitnet::plugin {

class file_map {
 public:
  // The first bytes of an open file, which may be closed afterwards. Nothing where it cannot be
  // mapped.
  static std::optional<file_map> open(int fd, uint64_t size_bytes);
  // Valid as long as this lives; empty for an empty file.
  [[nodiscard]] std::span<const std::byte> bytes() const { return map_.bytes(); }

 private:
  explicit file_map(guarded_map map) : map_(std::move(map)) {}

  guarded_map map_;
};

}  // namespace bitnet::plugin
