#include "plugin/trust/file_map.hpp"

namespace bitnet::plugin {

std::optional<file_map> file_map::open(int fd, uint64_t size_bytes) {
  auto map = guarded_map::open(fd, size_bytes);
  if (!map) return std::nullopt;
  return file_map(*std::move(map));
}

}  // namespace bitnet::plugin
