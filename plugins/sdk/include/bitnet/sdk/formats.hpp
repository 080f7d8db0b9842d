// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Weight formats: the size of a row and the meaning of its bytes. Slow, obvious, exact.
//
// Source   the layouts are those of GGUF, and BITNET_FORMAT_TERNARY2 of bitnet/abi/tensor.h.

#include <bit>
#include <cstdint>
#include <cstring>

#include "bitnet/abi/tensor.h"

namespace bitnet::sdk {

struct format {
  const char* name;  // as it appears in kernel ids
  uint32_t id;       // BITNET_FORMAT_*
  uint32_t block;    // elements
  uint32_t block_bytes;
  uint32_t alignment;  // bytes, for typed access
};

inline constexpr format formats[] = {
    {"f32", BITNET_FORMAT_F32, 1, 4, 4},       {"f16", BITNET_FORMAT_F16, 1, 2, 2},
    {"bf16", BITNET_FORMAT_BF16, 1, 2, 2},     {"q8_0", BITNET_FORMAT_Q8_0, 32, 34, 1},
    {"q4_0", BITNET_FORMAT_Q4_0, 32, 18, 1},   {"q4_k", BITNET_FORMAT_Q4_K, 256, 144, 1},
    {"q6_k", BITNET_FORMAT_Q6_K, 256, 210, 1}, {"ternary2", BITNET_FORMAT_TERNARY2, 128, 32, 1},
};

inline const format* find_format(uint32_t id) noexcept {
  for (const format& f : formats)
    if (f.id == id) return &f;
  return nullptr;
}

// Bytes of a row of k elements; 0 if k is no whole number of blocks. Ternary rows are padded.
inline uint64_t row_bytes(const format& f, uint64_t k) noexcept {
  if (f.id == BITNET_FORMAT_TERNARY2) return (k + f.block - 1) / f.block * f.block_bytes;
  return k % f.block == 0 ? k / f.block * f.block_bytes : 0;
}

inline float f16_to_f32(uint16_t h) noexcept {
  const uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) {  // infinity, or NaN made quiet as the hardware does
    const uint32_t quiet = rest > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | quiet);
  }
  if (rest < 0x400u) {  // subnormal: a multiple of 2^-24
    const float value = static_cast<float>(rest) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
}

// Round to nearest, ties to even.
inline uint16_t f32_to_f16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (rest >> 13 & 0x3ffu));
  if (rest >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // subnormal: adding 0.5 leaves a multiple of 2^-24 in the low bits
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = rest >> 13 & 1u;
  return static_cast<uint16_t>(sign | (rest + 0xfffu + odd - (112u << 23)) >> 13);
}

inline float bf16_to_f32(uint16_t h) noexcept {
  return std::bit_cast<float>(uint32_t{h} << 16);
}

template <class T>
T load(const uint8_t* at) noexcept {  // unaligned
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The value t in {-1, 0, 1} of element k of a TERNARY2 row, without its scale.
inline int32_t ternary_at(const uint8_t* row, uint64_t k) noexcept {
  const uint64_t in_group = k % 128;
  return (row[k / 128 * 32 + in_group % 32] >> (6 - 2 * (in_group / 32)) & 3) - 1;
}

namespace detail {

inline void decode_q8_0(const uint8_t* block, float* out) noexcept {
  const float d = f16_to_f32(load<uint16_t>(block));
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

inline void decode_q4_0(const uint8_t* block, float* out) noexcept {
  const float d = f16_to_f32(load<uint16_t>(block));
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

inline void decode_q4_k(const uint8_t* block, float* out) noexcept {
  const float d = f16_to_f32(load<uint16_t>(block));
  const float dmin = f16_to_f32(load<uint16_t>(block + 2));
  const uint8_t* s = block + 4;
  const uint8_t* nibbles = block + 16;
  for (int j = 0; j < 8; ++j) {  // sub-blocks of 32
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    const float step = d * static_cast<float>(scale), offset = dmin * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = nibbles[j / 2 * 32 + i];
      out[32 * j + i] = step * static_cast<float>(j % 2 ? byte >> 4 : byte & 15) - offset;
    }
  }
}

inline void decode_q6_k(const uint8_t* block, float* out) noexcept {
  const float d = f16_to_f32(load<uint16_t>(block + 208));
  for (int64_t half = 0; half < 2; ++half) {
    const uint8_t* ql = block + 64 * half;
    const uint8_t* qh = block + 128 + 32 * half;
    const uint8_t* scales = block + 192 + 8 * half;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const uint8_t low = ql[32 * (quarter % 2) + i];
        const int q = ((quarter < 2 ? low & 15 : low >> 4) | (qh[i] >> 2 * quarter & 3) << 4) - 32;
        const auto scale = static_cast<float>(static_cast<int8_t>(scales[2 * quarter + i / 16]));
        out[128 * half + int64_t{32} * quarter + i] = d * scale * static_cast<float>(q);
      }
    }
  }
}

}  // namespace detail

// Decodes the elements [first, first + n) of a row. first must be a multiple of the format's block,
// and n too, except for TERNARY2, which decodes to t without its scale.
inline void decode(uint32_t id, const uint8_t* row, uint64_t first, uint64_t n,
                   float* out) noexcept {
  const auto blocks = [&](uint64_t elements, uint64_t bytes, auto one) {
    for (uint64_t i = 0; i + elements <= n; i += elements)
      one(row + (first + i) / elements * bytes, out + i);
  };
  switch (id) {
    case BITNET_FORMAT_F32:
      std::memcpy(out, row + 4 * first, 4 * n);
      break;
    case BITNET_FORMAT_F16:
      blocks(1, 2, [](const uint8_t* b, float* y) { *y = f16_to_f32(load<uint16_t>(b)); });
      break;
    case BITNET_FORMAT_BF16:
      blocks(1, 2, [](const uint8_t* b, float* y) { *y = bf16_to_f32(load<uint16_t>(b)); });
      break;
    case BITNET_FORMAT_Q8_0:
      blocks(32, 34, detail::decode_q8_0);
      break;
    case BITNET_FORMAT_Q4_0:
      blocks(32, 18, detail::decode_q4_0);
      break;
    case BITNET_FORMAT_Q4_K:
      blocks(256, 144, detail::decode_q4_k);
      break;
    case BITNET_FORMAT_Q6_K:
      blocks(256, 210, detail::decode_q6_k);
      break;
    case BITNET_FORMAT_TERNARY2:
      for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(ternary_at(row, first + i));
      break;
    default:
      break;
  }
}

}  // namespace bitnet::sdk
