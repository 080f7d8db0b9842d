#include "plugin/inspection/linker_cache.hpp"

#include <cstdint>
#include <cstring>
#include <optional>

namespace bitnet::plugin {
namespace {

// The format that glibc writes since 2.2 (sysdeps/generic/dl-cache.h); numbers in the machine's
// byte order, offsets relative to the header.
struct header {
  char magic[20];  // "glibc-ld.so.cache1.1", without a NUL
  uint32_t entries, string_bytes;
  uint8_t flags, padding[3];
  uint32_t extension, unused[3];
};
static_assert(sizeof(header) == 48);
struct entry {
  int32_t flags;
  uint32_t name, file, os_version;
  uint64_t capabilities;  // processor features that the library requires; 0: none
};
static_assert(sizeof(entry) == 24);

constexpr std::string_view magic = "glibc-ld.so.cache1.1";

std::optional<std::string_view> text_at(std::string_view list, uint32_t offset) {
  if (offset >= list.size()) return std::nullopt;
  const std::string_view rest = list.substr(offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

}  // namespace

std::vector<cached_library> find_in_linker_cache(std::span<const std::byte> list,
                                                 std::string_view name) {
  std::string_view text(reinterpret_cast<const char*>(list.data()), list.size());
  // ldconfig can write a list of the earlier form in front of it.
  const std::size_t begin = text.find(magic);
  if (begin == std::string_view::npos || text.size() - begin < sizeof(header)) return {};
  text.remove_prefix(begin);
  header start{};
  std::memcpy(&start, text.data(), sizeof start);
  const uint64_t most = (text.size() - sizeof start) / sizeof(entry);
  std::vector<cached_library> out;
  for (uint64_t i = 0; i < start.entries && i < most; ++i) {
    entry one{};
    std::memcpy(&one, text.data() + sizeof start + i * sizeof one, sizeof one);
    if (text_at(text, one.name) != name) continue;
    const auto file = text_at(text, one.file);
    if (file && file->starts_with('/')) out.push_back({*file, one.capabilities != 0});
  }
  return out;
}

}  // namespace bitnet::plugin
