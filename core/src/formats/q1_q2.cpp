// llama.cpp's 1-bit and 2-bit blocks, an f16 scale before the codes.
#include <fmt/core.h>

#include <cmath>

#include "formats/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t block_bytes = 18;  // of both: two of scale, 16 of codes
constexpr uint64_t q1_block = 128;    // elements
constexpr uint64_t q2_block = 64;

float scale_of(const source& from, uint64_t index) {
  return from_f16(gguf::load<uint16_t>(from.bytes.subspan(index * block_bytes)));
}

std::span<const std::byte> packed_of(const source& from, uint64_t index) {
  return from.bytes.subspan(index * block_bytes + 2, 16);
}

// A set bit is +d, a clear one -d.
void q1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto packed = packed_of(from, (row * from.k + column) / q1_block);
  for (uint64_t j = 0; j < out.size(); ++j)
    out[j] = (std::to_integer<uint32_t>(packed[j / 8]) >> j % 8 & 1U) != 0 ? 2 : 0;
}

void q2_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  for (uint64_t done = 0; done < out.size(); done += q2_block) {
    const auto packed = packed_of(from, (row * from.k + column + done) / q2_block);
    for (uint64_t j = 0; j < q2_block && done + j < out.size(); ++j)
      out[done + j] =
          static_cast<uint8_t>(std::to_integer<uint32_t>(packed[j / 4]) >> 2 * (j % 4) & 3U);
  }
}

result<std::vector<float>> scales_of(const source& from, uint64_t block) {
  std::vector<float> scales;
  for (uint64_t i = 0; i < from.k * from.m / block; ++i) {
    scales.push_back(scale_of(from, i));
    if (!std::isfinite(scales.back()))
      return fail(
          BITNET_BAD_DATA,
          fmt::format("the scale of block {} is not a finite number; the file is damaged", i));
  }
  return scales;
}

}  // namespace

result<reading> understand_q1_0(const source& from) {
  auto scales = scales_of(from, q1_block);
  if (!scales) return std::unexpected(scales.error());
  return ternary_reading(from, q1_codes, q1_block, std::move(*scales), by_type(from));
}

result<reading> understand_q2_0(const source& from) {
  auto scales = scales_of(from, q2_block);
  if (!scales) return std::unexpected(scales.error());
  for (uint64_t i = 0; i < scales->size(); ++i)
    if ((*scales)[i] != 0 && has_code_3(packed_of(from, i)))
      return fail(BITNET_UNSUPPORTED, fmt::format("Q2_0 block {} holds the code 3, which stands "
                                                  "for +2 scales: the weights are not ternary",
                                                  i));
  return ternary_reading(from, q2_codes, q2_block, std::move(*scales), by_type(from));
}

}  // namespace bitnet::formats
