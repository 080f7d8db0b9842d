#pragma once
// Parses and checks the table of a safetensors file: names, types, shapes and offsets.
//
// Errors  BITNET_BAD_DATA for invalid files, BITNET_UNSUPPORTED for other types.
// Owner   the caller keeps the file's bytes; the table views them.
// Source  the format's README: u64 length of a JSON header, the header, then the data; offsets
//         count from the data's start.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bitnet::huggingface {

struct stored_tensor {
  std::string name;
  std::string dtype;  // "BF16", "U8", ...
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes;  // product of shape times the size of dtype
};

result<std::vector<stored_tensor>> read_safetensors(std::span<const std::byte> file);

}  // namespace bitnet::huggingface
