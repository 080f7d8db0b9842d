#include "plugin/file_map.hpp"

#include <sys/mman.h>

namespace bitnet::plugin {

void file_map::unmapper::operator()(const std::byte* p) const {
  ::munmap(const_cast<std::byte*>(p), size);
}

std::optional<file_map> file_map::open(int fd, uint64_t size_bytes) {
  file_map out;
  if (size_bytes == 0) return out;
  void* map = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) return std::nullopt;
  out.bytes_ = {static_cast<const std::byte*>(map), {size_bytes}};
  return out;
}

}  // namespace bitnet::plugin
