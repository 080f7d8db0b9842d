#pragma once
// Detects a file that was downloaded in place of a model.

#include <cstddef>
#include <span>
#include <string>

namespace bitnet::gguf {

// Describes it and what to do, as the continuation of the file's name: "is a pointer of Git LFS
// ...". "": neither a pointer of Git LFS nor a web page.
[[nodiscard]] std::string stand_in(std::span<const std::byte> bytes);

}  // namespace bitnet::gguf
