#pragma once
// What lies in place of a file that was to be downloaded.

#include <cstddef>
#include <span>
#include <string>

namespace bitnet::gguf {

// What it is and what to do, to follow the file's name: "is a pointer of Git LFS ...". "": neither
// a pointer of Git LFS nor a web page.
[[nodiscard]] std::string stand_in(std::span<const std::byte> bytes);

}  // namespace bitnet::gguf
