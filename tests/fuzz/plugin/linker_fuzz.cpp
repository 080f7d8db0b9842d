// Any bytes as an ld.so.conf file: absolute folders and patterns, each within one line of it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugin/inspection/library_search.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& line : bitnet::plugin::parse_linker_lines(text)) {
    if (line.text.empty() || text.find(line.text) == std::string_view::npos) std::abort();
    if (line.text.find('\n') != std::string::npos || line.text.find('#') != std::string::npos ||
        line.text.find('\0') != std::string::npos)
      std::abort();
    if (!line.includes && line.text.front() != '/') std::abort();
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    if (is_blank(line.text.front()) || is_blank(line.text.back())) std::abort();
  }
  return 0;
}
