#include "model/formats.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bitnet/abi/tensor.h"

namespace bitnet::conformance {
namespace {

constexpr double unit_f32 = 0x1p-24;  // largest relative error of one rounding to f32

uint16_t u16_at(const uint8_t* at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}
double f16_at(const uint8_t* at) {
  return static_cast<double>(half_to_float(u16_at(at)));
}

// {scale * step, minimum * its step} of element i of a Q4_K block, and the element's code.
struct q4_k_parts {
  double step, offset;
  int code;
};
q4_k_parts read_q4_k(const uint8_t* block, uint64_t i) {
  const uint64_t j = i / 32;
  const uint8_t* s = block + 4;
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  const uint8_t byte = block[16 + j / 2 * 32 + i % 32];
  return {f16_at(block) * scale, f16_at(block + 2) * minimum, j % 2 != 0 ? byte >> 4 : byte & 15};
}

double q6_k(const uint8_t* block, uint64_t i) {
  const uint64_t half = i / 128, quarter = i % 128 / 32, at = i % 32;
  const uint8_t low = block[64 * half + 32 * (quarter % 2) + at];
  const uint8_t high = block[128 + 32 * half + at];
  const int code = ((quarter < 2 ? low & 15 : low >> 4) | (high >> 2 * quarter & 3) << 4) - 32;
  const auto scale = static_cast<int8_t>(block[192 + 8 * half + 2 * quarter + at / 16]);
  return f16_at(block + 208) * scale * code;
}

}  // namespace

const std::vector<format>& all_formats() {
  static const std::vector<format> rows = {
      {"f32", BITNET_FORMAT_F32, 1, 4, {}},
      {"f16", BITNET_FORMAT_F16, 1, 2, {0}},
      {"bf16", BITNET_FORMAT_BF16, 1, 2, {}},
      {"q8_0", BITNET_FORMAT_Q8_0, 32, 34, {0}},
      {"q4_0", BITNET_FORMAT_Q4_0, 32, 18, {0}},
      {"q4_k", BITNET_FORMAT_Q4_K, 256, 144, {0, 2}},
      {"q6_k", BITNET_FORMAT_Q6_K, 256, 210, {208}},
      {"ternary2", BITNET_FORMAT_TERNARY2, 128, 32, {}},
  };
  return rows;
}

const format& format_of(uint32_t id) {
  for (const format& f : all_formats())
    if (f.id == id) return f;
  throw std::runtime_error("no weight format " + std::to_string(id));
}

std::string format_name(uint32_t id) {
  return id == BITNET_FORMAT_NONE ? "" : format_of(id).name;
}

uint64_t row_bytes(uint32_t id, uint64_t k) {
  const format& f = format_of(id);
  if (id == BITNET_FORMAT_TERNARY2) return (k + f.block - 1) / f.block * f.block_bytes;
  return k % f.block == 0 ? k / f.block * f.block_bytes : 0;
}

float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return static_cast<float>(fraction != 0 ? std::nan("") : sign * HUGE_VAL);
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(fraction, -24));
  return static_cast<float>(sign * std::ldexp(1024 + fraction, exponent - 25));
}

uint16_t float_to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(static_cast<double>(value));
  if (std::isnan(size)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;  // rounds past the largest half
  int exponent = size == 0 ? -14 : std::ilogb(size);
  if (exponent < -14) exponent = -14;
  // In units of the last place; nearbyint ties to even, and a carry moves into the exponent.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + units));
}

double element(uint32_t id, const uint8_t* row, uint64_t i) {
  switch (id) {
    case BITNET_FORMAT_F32: {
      float value = 0;
      std::memcpy(&value, row + 4 * i, 4);
      return static_cast<double>(value);
    }
    case BITNET_FORMAT_F16:
      return f16_at(row + 2 * i);
    case BITNET_FORMAT_BF16: {
      const uint32_t bits = static_cast<uint32_t>(u16_at(row + 2 * i)) << 16;
      float value = 0;
      std::memcpy(&value, &bits, 4);
      return static_cast<double>(value);
    }
    case BITNET_FORMAT_Q8_0: {
      const uint8_t* block = row + i / 32 * 34;
      return f16_at(block) * static_cast<int8_t>(block[2 + i % 32]);
    }
    case BITNET_FORMAT_Q4_0: {
      const uint8_t* block = row + i / 32 * 18;
      const uint8_t byte = block[2 + i % 16];
      return f16_at(block) * ((i % 32 < 16 ? byte & 15 : byte >> 4) - 8);
    }
    case BITNET_FORMAT_Q4_K: {
      const q4_k_parts p = read_q4_k(row + i / 256 * 144, i % 256);
      return p.step * p.code - p.offset;
    }
    case BITNET_FORMAT_Q6_K:
      return q6_k(row + i / 256 * 210, i % 256);
    case BITNET_FORMAT_TERNARY2: {
      const uint64_t at = i % 128;
      return (row[i / 128 * 32 + at % 32] >> (6 - 2 * (at / 32)) & 3) - 1;
    }
    default:
      throw std::runtime_error("no weight format " + std::to_string(id));
  }
}

double element_slack(uint32_t id, const uint8_t* row, uint64_t i) {
  // Step and offset have 17 bits, step times code 21: only the difference is rounded.
  if (id == BITNET_FORMAT_Q4_K) {
    const q4_k_parts p = read_q4_k(row + i / 256 * 144, i % 256);
    return 2 * unit_f32 * (std::fabs(p.step * p.code) + std::fabs(p.offset));
  }
  // 11 bits times 8 times 6: one product of the two is rounded.
  if (id == BITNET_FORMAT_Q6_K) return 2 * unit_f32 * std::fabs(element(id, row, i));
  return 0;
}

}  // namespace bitnet::conformance
