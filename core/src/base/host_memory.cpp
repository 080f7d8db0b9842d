#include "base/host_memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "system/control_groups.hpp"

namespace bitnet {
namespace {

// The number behind `name` in a file of lines "name number ...".
std::optional<uint64_t> number_at(const std::filesystem::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name) || line.size() == name.size() || line[name.size()] != ' ') continue;
    try {
      return std::stoull(line.substr(name.size()));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// The number in a file without other content; "max" is no number.
std::optional<uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t out = 0;
  if (!(in >> out)) return std::nullopt;
  return out;
}

// Memory that the group may still allocate, if it has a limit. Pages of inactive files count as
// free, since the kernel reclaims them at the limit.
std::optional<uint64_t> left_in(const control_group& group) {
  const auto limit =
      number_in(group.folder / (group.unified ? "memory.max" : "memory.limit_in_bytes"));
  const auto usage =
      number_in(group.folder / (group.unified ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !usage) return std::nullopt;
  const uint64_t idle = number_at(group.folder / "memory.stat",
                                  group.unified ? "inactive_file" : "total_inactive_file")
                            .value_or(0);
  const uint64_t used = *usage - std::min(*usage, idle);
  return *limit - std::min(*limit, used);
}

}  // namespace

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

uint64_t free_host_memory(const std::filesystem::path& root) {
  const auto kib = number_at(root / "proc/meminfo", "MemAvailable:");
  if (!kib || *kib > UINT64_MAX / 1024) return 0;
  uint64_t out = *kib * 1024;
  for (const control_group& group : control_groups(root))
    if (const auto left = left_in(group)) out = std::min(out, *left);
  return out;
}

}  // namespace bitnet
