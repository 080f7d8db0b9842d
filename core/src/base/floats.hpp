#pragma once
// 16-bit floating-point numbers. To float32 is exact; from float32 rounds half to even.

#include <bit>
#include <cstdint>

namespace bitnet {

inline float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline float from_f16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = bits >> 10 & 31U;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

// NaN becomes a quiet NaN.
inline uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

// Numbers that are too large become infinity, NaN a quiet NaN.
inline uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return sign | 0x7e00U;
  if (size >= 0x47800000U) return sign | 0x7c00U;  // 2^16 and more
  if (size < 0x38800000U) {                        // under 2^-14: subnormal
    // Adding half of the unit 2^-24 makes the addition itself round.
    const float shifted = std::bit_cast<float>(size) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t rounded = size + 0xfffU + (size >> 13 & 1U);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000U) >> 13);
}

}  // namespace bitnet
