#pragma once
// The list in which the C library's linker looks libraries up: /etc/ld.so.cache, made by ldconfig.
// Any bytes are safe to give: tests/fuzz/plugin/linker_cache_fuzz.cpp does.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace bitnet::plugin {

struct cached_library {
  std::filesystem::path file;
  bool only_some = false;  // taken by some processors only
};

// All entries of this name, in the order of the list; those for other machines are among them.
// Nothing for a list of another form.
[[nodiscard]] std::vector<cached_library> find_in_linker_cache(std::span<const std::byte> list,
                                                               std::string_view name);

}  // namespace bitnet::plugin
