#include "host_memory.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>

namespace bitnet::cuda {

uint64_t available_bytes(const char* meminfo) {
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, closer> in(std::fopen(meminfo, "re"));
  constexpr std::string_view key = "MemAvailable:";
  char buffer[256];
  while (in && std::fgets(buffer, sizeof buffer, in.get())) {
    std::string_view line = buffer;
    if (line.substr(0, key.size()) != key) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    uint64_t kib = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), kib).ec != std::errc()) return 0;
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
  }
  return 0;
}

uint64_t free_bytes(bool integrated, uint64_t free, uint64_t total, const char* meminfo) {
  const uint64_t reclaimable = integrated ? available_bytes(meminfo) : 0;
  return std::min(std::max(free, reclaimable), total);
}

}  // namespace bitnet::cuda
