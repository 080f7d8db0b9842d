#pragma once
// 16-bit floating-point numbers as float32; both conversions are exact.

#include <bit>
#include <cstdint>

namespace bitnet::formats {

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

}  // namespace bitnet::formats
