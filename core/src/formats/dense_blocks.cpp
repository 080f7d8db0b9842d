#include "formats/dense_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/floats.hpp"
#include "formats/reading.hpp"
#include "formats/writing.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

void put16(std::span<std::byte> at, uint16_t x) {
  std::memcpy(at.data(), &x, sizeof x);
}

float f16_at(std::span<const std::byte> at) {
  return from_f16(gguf::load<uint16_t>(at));
}

uint32_t u8(std::byte b) {
  return std::to_integer<uint32_t>(b);
}

float largest_of(std::span<const float> x) {  // the sign is kept
  float most = 0;
  for (const float v : x)
    if (std::fabs(v) > std::fabs(most)) most = v;
  return most;
}

// ---- Q6_K: 16 scales of 16 elements, values -32 to 31 -------------------------------------------

constexpr uint64_t q6_block = 256;
constexpr uint64_t q6_bytes = 210;

int q6_level(float x, float step) {
  return step == 0 ? 0 : std::clamp(static_cast<int>(std::lround(x / step)), -32, 31);
}

// The step with the least squared error, weighted by the elements' size.
float q6_step_in_range(std::span<const float> x, float most) {
  float best_step = 0;
  float best_fit = 0;
  for (int i = -9; i <= 9; ++i) {
    const float step = -most / (32 + 0.1F * static_cast<float>(i));
    float along = 0;
    float size = 0;
    for (const float v : x) {
      const auto q = static_cast<float>(q6_level(v, step));
      along += v * v * v * q;
      size += v * v * q * q;
    }
    if (size > 0 && along * along > best_fit * size) {
      best_fit = along * along / size;
      best_step = along / size;
    }
  }
  return best_step;
}

float q6_step(std::span<const float> x) {
  const float most = largest_of(x);
  if (most == 0) return 0;
  // Scales by a power of two, which loses nothing, so that sixth powers stay in float's range.
  const int away = std::ilogb(most);
  if (std::abs(away) < 16) return q6_step_in_range(x, most);
  std::array<float, 16> nearer{};
  std::ranges::transform(x, nearer.begin(), [&](float v) { return std::scalbn(v, -away); });
  return std::scalbn(q6_step_in_range(nearer, std::scalbn(most, -away)), away);
}

// 1 / step; 0 if it overflows: then no f16 holds the step either.
float inverse_of(float step) {
  return std::fabs(step) < std::numeric_limits<float>::min() ? 0 : 1 / step;
}

void q6_one(std::span<const float> x, std::span<std::byte> out) {
  std::array<float, 16> steps{};
  for (uint64_t j = 0; j < 16; ++j) steps[j] = q6_step(x.subspan(16 * j, 16));
  const uint16_t d_bits = to_f16(largest_of(steps) / -128);
  const float d = from_f16(d_bits);
  put16(out.subspan(208), d_bits);
  std::array<uint32_t, q6_block> q{};
  for (uint64_t j = 0; j < 16; ++j) {
    const int sc = d == 0 ? 0 : std::clamp(static_cast<int>(std::lround(steps[j] / d)), -128, 127);
    out[192 + j] = static_cast<std::byte>(sc);
    for (uint64_t i = 16 * j; i < 16 * (j + 1); ++i)
      q[i] = static_cast<uint32_t>(q6_level(x[i], d * static_cast<float>(sc)) + 32);
  }
  for (uint64_t half = 0; half < 2; ++half)
    for (uint64_t l = 0; l < 32; ++l) {
      const uint32_t* at = &q[128 * half + l];
      const auto low = out.subspan(64 * half);
      low[l] = static_cast<std::byte>((at[0] & 15U) | (at[64] & 15U) << 4);
      low[l + 32] = static_cast<std::byte>((at[32] & 15U) | (at[96] & 15U) << 4);
      out[128 + 32 * half + l] = static_cast<std::byte>(at[0] >> 4 | at[32] >> 4 << 2 |
                                                        at[64] >> 4 << 4 | at[96] >> 4 << 6);
    }
}

// ---- decoding: one block each -------------------------------------------------------------------

void from_q8_0(std::span<const std::byte> b, float* y) {
  const float d = f16_at(b);
  for (uint64_t i = 0; i < 32; ++i)
    y[i] = d * static_cast<float>(static_cast<int8_t>(std::to_integer<uint8_t>(b[2 + i])));
}

void from_q4_0(std::span<const std::byte> b, float* y) {
  const float d = f16_at(b);
  for (uint64_t i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(static_cast<int>(u8(b[2 + i]) & 15U) - 8);
    y[i + 16] = d * static_cast<float>(static_cast<int>(u8(b[2 + i]) >> 4) - 8);
  }
}

void from_q4_k(std::span<const std::byte> b, float* y) {
  const float d = f16_at(b);
  const float dmin = f16_at(b.subspan(2));
  const auto s = b.subspan(4, 12);
  for (uint64_t j = 0; j < 8; ++j) {
    const uint32_t scale = j < 4 ? u8(s[j]) & 63U : (u8(s[j + 4]) & 15U) | u8(s[j - 4]) >> 6 << 4;
    const uint32_t least = j < 4 ? u8(s[j + 4]) & 63U : u8(s[j + 4]) >> 4 | u8(s[j]) >> 6 << 4;
    for (uint64_t i = 0; i < 32; ++i) {
      const uint32_t both = u8(b[16 + j / 2 * 32 + i]);
      y[32 * j + i] =
          d * static_cast<float>(scale) * static_cast<float>(j % 2 == 0 ? both & 15U : both >> 4) -
          dmin * static_cast<float>(least);
    }
  }
}

void from_q6_k(std::span<const std::byte> b, float* y) {
  const float d = f16_at(b.subspan(208));
  for (uint64_t e = 0; e < q6_block; ++e) {
    const uint64_t half = e / 128, quarter = e % 128 / 32, l = e % 32;
    const uint32_t low = u8(b[64 * half + 32 * (quarter % 2) + l]) >> (quarter < 2 ? 0 : 4) & 15U;
    const uint32_t high = u8(b[128 + 32 * half + l]) >> 2 * quarter & 3U;
    const auto sc = static_cast<int8_t>(std::to_integer<uint8_t>(b[192 + e / 16]));
    y[e] = d * static_cast<float>(sc) * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

struct decoder {
  uint32_t type;
  void (*block)(std::span<const std::byte> b, float* y);
};
constexpr std::array decoders = {
    decoder{gguf::type::q8_0, from_q8_0}, decoder{gguf::type::q4_0, from_q4_0},
    decoder{gguf::type::q4_k, from_q4_k}, decoder{gguf::type::q6_k, from_q6_k}};

}  // namespace

void write_f32(std::span<const float> from, std::span<std::byte> out) {
  std::memcpy(out.data(), from.data(), from.size_bytes());
}

void write_f16(std::span<const float> from, std::span<std::byte> out) {
  for (uint64_t i = 0; i < from.size(); ++i) put16(out.subspan(2 * i), to_f16(from[i]));
}

void write_bf16(std::span<const float> from, std::span<std::byte> out) {
  for (uint64_t i = 0; i < from.size(); ++i) put16(out.subspan(2 * i), to_bf16(from[i]));
}

void write_q8_0(std::span<const float> from, std::span<std::byte> out) {
  for (uint64_t b = 0; b < from.size() / 32; ++b) {
    const auto x = from.subspan(32 * b, 32);
    const auto to = out.subspan(34 * b, 34);
    const float d = std::fabs(largest_of(x)) / 127;
    const float inverse = inverse_of(d);
    put16(to, to_f16(d));
    for (uint64_t i = 0; i < 32; ++i)
      to[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(x[i] * inverse)));
  }
}

void write_q4_0(std::span<const float> from, std::span<std::byte> out) {
  for (uint64_t b = 0; b < from.size() / 32; ++b) {
    const auto x = from.subspan(32 * b, 32);
    const auto to = out.subspan(18 * b, 18);
    const float d = largest_of(x) / -8;
    const float inverse = inverse_of(d);
    const auto level = [&](float v) {
      return static_cast<uint32_t>(std::min(15, static_cast<int>(v * inverse + 8.5F)));
    };
    put16(to, to_f16(d));
    for (uint64_t i = 0; i < 16; ++i)
      to[2 + i] = static_cast<std::byte>(level(x[i]) | level(x[i + 16]) << 4);
  }
}

void write_q6_k(std::span<const float> from, std::span<std::byte> out) {
  for (uint64_t b = 0; b < from.size() / q6_block; ++b)
    q6_one(from.subspan(q6_block * b, q6_block), out.subspan(q6_bytes * b, q6_bytes));
}

void read_dense(uint32_t type, std::span<const std::byte> bytes, uint64_t first,
                std::span<float> out) {
  const auto* d = std::ranges::find(decoders, type, &decoder::type);
  if (d == decoders.end()) {
    for (uint64_t i = 0; i < out.size(); ++i) out[i] = real_element(type, bytes, first + i);
    return;
  }
  const auto size = gguf::size_of(type).value_or(gguf::type_size{1, 1});
  for (uint64_t i = 0; i < out.size(); i += size.block)
    d->block(bytes.subspan((first + i) / size.block * size.bytes, size.bytes), &out[i]);
}

}  // namespace bitnet::formats
