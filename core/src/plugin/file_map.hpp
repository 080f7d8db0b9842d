#pragma once
// A file in memory, read as far as it is looked at: a plugin may hold hundreds of megabytes of
// device code. Only root and the user can shorten the file meanwhile, else it would not be trusted.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace bitnet::plugin {

class file_map {
 public:
  // The first bytes of an open file, which may be closed afterwards. Nothing where it cannot be
  // mapped.
  static std::optional<file_map> open(int fd, uint64_t size_bytes);
  // Valid as long as this lives; empty for an empty file.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {bytes_.get(), bytes_.get_deleter().size};
  }

 private:
  struct unmapper {
    std::size_t size;  // bytes
    void operator()(const std::byte* p) const;
  };
  file_map() = default;

  std::unique_ptr<const std::byte, unmapper> bytes_;
};

}  // namespace bitnet::plugin
