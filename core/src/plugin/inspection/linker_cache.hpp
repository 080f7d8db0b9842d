#pragma once
// Reads the list of libraries of the C library's linker: /etc/ld.so.cache, made by ldconfig. Any
// input is safe: tests/fuzz/plugin/linker_cache_fuzz.cpp.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace bitnet::plugin {

struct cached_library {
  std::filesystem::path file;
  bool only_some = false;  // for some processors only
};

// All entries of this name in order, also those for other machines. Empty for an unknown format.
[[nodiscard]] std::vector<cached_library> find_in_linker_cache(std::span<const std::byte> list,
                                                               std::string_view name);

}  // namespace bitnet::plugin
