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

// One digit, the most significant being 0, of each of `packed`, which hold base-3 digits as
// fractions of 256. Returns where the next elements go.
uint8_t* digits(std::span<const std::byte> packed, uint32_t index, uint8_t* to) {
  constexpr std::array<uint8_t, 5> power = {1, 3, 9, 27, 81};
  for (const std::byte b : packed)
    *to++ = static_cast<uint8_t>(
        static_cast<uint8_t>(std::to_integer<uint8_t>(b) * power[index]) * 3 >> 8);
  return to;
}

// Half a block: elements 0 to 127, or the other 128.
void tq1_codes(std::span<const std::byte> b, bool second, uint8_t* to) {
  const auto wide = b.first(32);
  if (!second) {
    for (uint32_t index = 0; index < 4; ++index) to = digits(wide, index, to);
    return;
  }
  to = digits(wide, 4, to);
  for (uint32_t index = 0; index < 5; ++index) to = digits(b.subspan(32, 16), index, to);
  for (uint32_t index = 0; index < 4; ++index) to = digits(b.subspan(48, 4), index, to);
}

void tq2_codes(std::span<const std::byte> b, bool second, uint8_t* to) {
  for (uint32_t plane = 0; plane < 4; ++plane)
    for (const std::byte x : b.subspan(second ? 32 : 0, 32))
      *to++ = static_cast<uint8_t>(std::to_integer<uint32_t>(x) >> 2 * plane & 3U);
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
    if (from.type == gguf::type::tq2_0 && d != 0 && has_code_3(b.first(64)))
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
  const bool second = column % block != 0;
  if (scale_of(b) == 0)
    std::ranges::fill(out, uint8_t{1});
  else if (from.type == gguf::type::tq1_0)
    tq1_codes(b, second, out.data());
  else
    tq2_codes(b, second, out.data());
}

}  // namespace bitnet::formats
