#include <algorithm>
#include <cmath>

#include "bitnet/abi/tensor.h"
#include "formats/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t block = 256;  // elements

// Bytes of one block, whose last two are its scale.
uint64_t block_bytes(const source& from) {
  return from.type == gguf::type::tq1_0 ? 54 : 66;
}

std::span<const std::byte> block_at(const source& from, uint64_t index) {
  return from.bytes.subspan(index * block_bytes(from), block_bytes(from));
}

float scale_of(std::span<const std::byte> b) {
  return from_f16(gguf::load<uint16_t>(b.last(2)));
}

uint32_t byte_at(std::span<const std::byte> b, uint64_t i) {
  return std::to_integer<uint32_t>(b[i]);
}

// Digit `index`, the most significant first, of a byte that holds base-3 digits as a fraction of
// 256.
uint8_t digit(uint32_t byte, uint32_t index) {
  constexpr std::array<uint32_t, 5> power = {1, 3, 9, 27, 81};
  return static_cast<uint8_t>((byte * power[index] & 0xffU) * 3 >> 8);
}

uint8_t tq1_code(std::span<const std::byte> b, uint32_t e) {
  if (e < 160) return digit(byte_at(b, e % 32), e / 32);
  if (e < 240) return digit(byte_at(b, 32 + (e - 160) % 16), (e - 160) / 16);
  return digit(byte_at(b, 48 + (e - 240) % 4), (e - 240) / 4);
}

uint8_t tq2_code(std::span<const std::byte> b, uint32_t e) {
  return static_cast<uint8_t>(byte_at(b, e / 128 * 32 + e % 32) >> 2 * (e % 128 / 32) & 3U);
}

bool has_code_3(std::span<const std::byte> b) {
  return std::ranges::any_of(b.first(64), [](std::byte x) {
    const auto bits = std::to_integer<uint32_t>(x);
    return (bits & bits >> 1 & 0x55U) != 0;
  });
}

}  // namespace

result<reading> understand_tq(const source& from) {
  const uint64_t n_blocks = from.k / block * from.m;
  reading to;
  to.format = BITNET_FORMAT_TERNARY2;
  to.data_bytes = canonical_bytes(from.k, from.m);
  to.scale_group = block;
  to.scales.reserve(n_blocks);
  float common = 0;
  bool equal = true;
  for (uint64_t i = 0; i < n_blocks; ++i) {
    const auto b = block_at(from, i);
    const float d = scale_of(b);
    if (!std::isfinite(d))
      return fail(BITNET_BAD_DATA, gguf::say("the scale of block ", i,
                                             " is not a finite number; the file is damaged"));
    if (from.type == gguf::type::tq2_0 && d != 0 && has_code_3(b))
      return fail(BITNET_BAD_DATA, gguf::say("TQ2_0 block ", i,
                                             " holds the code 3, which stands for no "
                                             "ternary value; the file is damaged"));
    if (common == 0) common = d;
    equal = equal && (d == 0 || d == common);
    to.scales.push_back(d);
  }
  if (equal) {
    to.scale_group = 0;
    to.scales = {common};
  }
  return to;
}

void tq_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto b = block_at(from, (row * from.k + column) / block);
  if (scale_of(b) == 0) {
    std::ranges::fill(out, uint8_t{1});
    return;
  }
  const auto first = static_cast<uint32_t>(column % block);
  for (uint32_t j = 0; j < out.size(); ++j)
    out[j] = from.type == gguf::type::tq1_0 ? tq1_code(b, first + j) : tq2_code(b, first + j);
}

}  // namespace bitnet::formats
