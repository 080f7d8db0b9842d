#pragma once
// The files of the browser page, embedded into the program.

#include <span>
#include <string_view>

namespace bitnet::host {

struct page_file {
  std::string_view name;    // "main.js"
  std::string_view digest;  // SHA-256 of its text, in hexadecimal digits
  std::string_view text;
};

// Sorted by name. They live as long as the program.
[[nodiscard]] std::span<const page_file> page_files();

}  // namespace bitnet::host
