// Base-3 digits and 2-bit planes with a scale behind them: TQ1_0, TQ2_0 and PTQ1_0.
#include <fmt/core.h>

#include <cmath>

#include "base/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t tq1_bytes = 54;
constexpr uint64_t tq2_bytes = 66;  // of a block; the last two are its scale
constexpr uint64_t ptq1_elements = 128;
constexpr uint64_t ptq1_bytes = 28;

template <uint64_t BlockBytes>
std::span<const std::byte> block_at(const source& from, uint64_t index) {
  return from.bytes.subspan(index * BlockBytes, BlockBytes);
}

float scale_of(std::span<const std::byte> b) {
  return from_f16(gguf::load<uint16_t>(b.last(2)));
}

// Decodes digit `index`, 0 the most significant, of each byte. Returns the end of the output.
uint8_t* digits(std::span<const std::byte> packed, uint32_t index, uint8_t* to) {
  for (const std::byte b : packed) *to++ = base3_digit(b, index);
  return to;
}

void tq1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto b = block_at<tq1_bytes>(from, (row * from.k + column) / tq_block);
  uint8_t* to = out.data();
  const auto wide = b.first(32);
  if (column % tq_block == 0) {
    for (uint32_t index = 0; index < 4; ++index) to = digits(wide, index, to);
    return;
  }
  to = digits(wide, 4, to);
  for (uint32_t index = 0; index < 5; ++index) to = digits(b.subspan(32, 16), index, to);
  for (uint32_t index = 0; index < 4; ++index) to = digits(b.subspan(48, 4), index, to);
}

void tq2_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto b = block_at<tq2_bytes>(from, (row * from.k + column) / tq_block);
  uint8_t* to = out.data();
  for (uint32_t plane = 0; plane < 4; ++plane)
    for (const std::byte x : b.subspan(column % tq_block == 0 ? 0 : 32, 32))
      *to++ = static_cast<uint8_t>(std::to_integer<uint32_t>(x) >> 2 * plane & 3U);
}

void ptq1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto b = block_at<ptq1_bytes>(from, (row * from.k + column) / ptq1_elements);
  uint8_t* to = out.data();
  for (uint32_t index = 0; index < 5; ++index) to = digits(b.first(16), index, to);
  for (uint32_t index = 0; index < 5; ++index) to = digits(b.subspan(16, 8), index, to);
  for (uint32_t index = 0; index < 4; ++index) to = digits(b.subspan(24, 2), index, to);
}

}  // namespace

result<reading> understand_ptq1_0(const source& from) {
  if (auto ok = check_blocks(from, ptq1_elements, ptq1_bytes, "PTQ1_0"); !ok)
    return std::unexpected(ok.error());
  std::vector<float> scales;
  scales.reserve(from.k / ptq1_elements * from.m);
  for (uint64_t i = 0; i < from.k / ptq1_elements * from.m; ++i) {
    scales.push_back(scale_of(from.bytes.subspan(i * ptq1_bytes, ptq1_bytes)));
    if (!std::isfinite(scales.back()))
      return fail(
          BITNET_BAD_DATA,
          fmt::format("the scale of block {} is not a finite number; the file is damaged", i));
  }
  return ternary_reading(from, ptq1_codes, ptq1_elements, std::move(scales), by_type(from));
}

result<reading> understand_tq(const source& from) {
  const bool two_bits = from.type == gguf::type::tq2_0;
  const uint64_t block_bytes = two_bits ? tq2_bytes : tq1_bytes;
  std::vector<float> scales;
  scales.reserve(from.k / tq_block * from.m);
  for (uint64_t i = 0; i < from.k / tq_block * from.m; ++i) {
    const auto b = from.bytes.subspan(i * block_bytes, block_bytes);
    const float d = scale_of(b);
    if (!std::isfinite(d))
      return fail(
          BITNET_BAD_DATA,
          fmt::format("the scale of block {} is not a finite number; the file is damaged", i));
    if (two_bits && d != 0 && has_code_3(b.first(64)))
      return fail(BITNET_BAD_DATA, fmt::format("TQ2_0 block {} holds the code 3, which stands for "
                                               "no ternary value; the file is damaged",
                                               i));
    scales.push_back(d);
  }
  return ternary_reading(from, two_bits ? tq2_codes : tq1_codes, tq_block, std::move(scales),
                         by_type(from));
}

}  // namespace bitnet::formats
