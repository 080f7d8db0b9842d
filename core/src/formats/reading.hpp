#pragma once
// From the bytes of a GGUF tensor to a weight format of bitnet/abi/tensor.h.
//
// Shapes   K = ne[0] inputs, contiguous; M rows.
// Ternary  I2_S (layouts A, B, C), TQ1_0 and TQ2_0 become BITNET_FORMAT_TERNARY2. Scales: one if
// all
//          non-zero block scales are equal (a block of scale 0 then holds zeros), else one per 256.
// Dense    F32 F16 BF16 Q8_0 Q4_0 Q4_K Q6_K pass unchanged.
// Errors   BITNET_UNSUPPORTED for other types and flavours; BITNET_BAD_DATA for sizes and scales
// that
//          cannot be. Messages name types, the caller adds the tensor.
// Threads  functions of their arguments only.
// Source   formats.md 2, 5, 7, 9.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace bitnet::formats {

// A tensor as the file has it.
struct source {
  uint32_t type = 0;  // GGUF id
  uint64_t k = 1;
  uint64_t m = 1;
  std::span<const std::byte> bytes{};  // for I2_S up to the next tensor or the end of the file
  uint64_t alignment = 32;             // of the file
  uint32_t i2s_layout = 0;             // BITNET_I2S_LAYOUT_*
  bool scale_sibling = false;          // the file has a scale tensor beside it; hints at a flavour
};

// What it becomes.
struct reading {
  uint32_t format = 0;       // BITNET_FORMAT_*
  uint64_t data_bytes = 0;   // in `format`
  uint64_t scale_group = 0;  // elements of a row that share a scale; 0 = the whole tensor
  std::vector<float> scales;
  bool verbatim = false;  // the source's first data_bytes are it; else convert
};

// Whether understand can succeed for some tensor of this GGUF type.
[[nodiscard]] bool is_readable(uint32_t type);

// Reads all of an I2_S or TQ2_0 tensor to see whether it holds what it may.
result<reading> understand(const source& from);
// A vector of F32, F16 or BF16, wanted as F32; NaN and infinities are BITNET_BAD_DATA.
result<reading> understand_vector(const source& from);

// Writes the bytes [offset, offset + out.size()) of a reading that is not verbatim. Both numbers
// are multiples of 32, or of 4 in a vector.
void convert(const source& from, const reading& to, uint64_t offset, std::span<std::byte> out);

}  // namespace bitnet::formats
