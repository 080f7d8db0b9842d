#pragma once
// Converts rows of matrices and KV blocks between canonical bytes and the words that kernels read.

#include <cstdint>

#include "bitnet/sdk/formats.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::gpu {

// Bytes of a format's block, and the place of the padding in its device form.
struct block_shape {
  uint64_t bytes;   // canonical
  uint64_t before;  // bytes before the padding
  uint64_t pad;     // bytes
  bool rows_only;   // only a row as a whole is padded
};

// The shape for a row of `row_bytes`; rows_only formats are padded at the row's end.
block_shape shape_of(uint32_t format, uint64_t row_bytes) noexcept;

// Convert n rows, from canonical to device form and back. Padding becomes 0.
void to_device(uint32_t format, uint64_t k, const uint8_t* rows, uint64_t n, uint8_t* out) noexcept;
void from_device(uint32_t format, uint64_t k, const uint8_t* rows, uint64_t n,
                 uint8_t* out) noexcept;

// True if the device form is the canonical one, byte for byte.
bool is_canonical(uint32_t format, uint64_t k) noexcept;

}  // namespace bitnet::gpu
