// ik_llama.cpp's ternary rows: a scale per row, then blocks of 64 elements.
#include <fmt/core.h>

#include <cmath>

#include "base/floats.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t ik_block = 64;  // elements
constexpr uint64_t iq1_block_bytes =
    13;  // of a block: four groups of three bytes, and one byte for the remaining elements
constexpr uint64_t iq2_block_bytes = 16;
constexpr uint64_t iq1_meta = 2;  // bytes of a row's scale
constexpr uint64_t iq2_meta = 4;
constexpr uint64_t r4_meta = 16;  // of four rows

uint64_t iq1_row_bytes(const source& from) {
  return iq1_meta + from.k / ik_block * iq1_block_bytes;
}
uint64_t iq2_row_bytes(const source& from) {
  return iq2_meta + from.k / ik_block * iq2_block_bytes;
}

// Byte b of group g has elements 16 g + 5 b + j, the first in the least significant digit; the last
// byte has the 16th of each group.
void iq1_block(std::span<const std::byte> packed, std::span<uint8_t> out) {
  for (uint32_t g = 0; g < 4; ++g) {
    for (uint32_t b = 0; b < 3; ++b)
      for (uint32_t j = 0; j < 5; ++j)
        out[16 * g + 5 * b + j] = base3_digit(packed[3 * g + b], 4 - j);
    out[16 * g + 15] = base3_digit(packed[12], 4 - g);
  }
}

void iq1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto blocks = from.bytes.subspan(row * iq1_row_bytes(from) + iq1_meta);
  for (uint64_t done = 0; done < out.size(); done += ik_block)
    iq1_block(blocks.subspan((column + done) / ik_block * iq1_block_bytes, iq1_block_bytes),
              out.subspan(done, ik_block));
}

void iq2_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto blocks = from.bytes.subspan(row * iq2_row_bytes(from) + iq2_meta);
  for (uint64_t done = 0; done < out.size(); done += ik_block) {
    const auto packed =
        blocks.subspan((column + done) / ik_block * iq2_block_bytes, iq2_block_bytes);
    for (uint64_t j = 0; j < ik_block; ++j)
      out[done + j] =
          static_cast<uint8_t>(std::to_integer<uint32_t>(packed[j % 16]) >> 2 * (j / 16) & 3U);
  }
}

// Four rows share 64 bytes for 64 columns: row k, column 16 l + 4 u + i is in byte 4 k + i + 16 l,
// bits 2 u.
void r4_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const auto blocks = from.bytes.subspan(row / 4 * 4 * iq2_row_bytes(from) + r4_meta);
  for (uint64_t done = 0; done < out.size(); done += ik_block) {
    const auto packed =
        blocks.subspan((column + done) / ik_block * 4 * iq2_block_bytes, 4 * iq2_block_bytes);
    for (uint64_t j = 0; j < ik_block; ++j)
      out[done + j] = static_cast<uint8_t>(
          std::to_integer<uint32_t>(packed[4 * (row % 4) + j % 4 + j / 16 * 16]) >>
              2 * (j % 16 / 4) &
          3U);
  }
}

result<void> check_shape(const source& from, uint64_t row_bytes, const char* name) {
  if (from.k % ik_block != 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("{} has rows of {} elements; expected a multiple of {}", name, from.k,
                            ik_block));
  return check_bytes(from, row_bytes * from.m, name);
}

std::unexpected<failure> bad_scale(const char* name, uint64_t row) {
  return fail(
      BITNET_BAD_DATA,
      fmt::format("the {} scale of row {} is not a finite number; the file is damaged", name, row));
}

result<void> check_codes(std::span<const std::byte> packed, const char* name, uint64_t row) {
  if (!has_code_3(packed)) return {};
  return fail(
      BITNET_BAD_DATA,
      fmt::format(
          "{} row {} holds the code 3, which stands for no ternary value; the file is damaged",
          name, row));
}

}  // namespace

result<reading> understand_iq1_bn(const source& from) {
  if (auto ok = check_shape(from, iq1_row_bytes(from), "IQ1_BN"); !ok)
    return std::unexpected(ok.error());
  std::vector<float> scales;
  for (uint64_t r = 0; r < from.m; ++r) {
    scales.push_back(from_f16(gguf::load<uint16_t>(from.bytes.subspan(r * iq1_row_bytes(from)))));
    if (!std::isfinite(scales.back())) return bad_scale("IQ1_BN", r);
  }
  return ternary_reading(from, iq1_codes, from.k, std::move(scales), by_type(from));
}

result<reading> understand_iq2_bn(const source& from) {
  const uint64_t row_bytes = iq2_row_bytes(from);
  if (auto ok = check_shape(from, row_bytes, "IQ2_BN"); !ok) return std::unexpected(ok.error());
  std::vector<float> scales;
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto row = from.bytes.subspan(r * row_bytes, row_bytes);
    scales.push_back(gguf::load<float>(row));
    if (!std::isfinite(scales.back())) return bad_scale("IQ2_BN", r);
    if (auto ok = check_codes(row.subspan(iq2_meta), "IQ2_BN", r); !ok)
      return std::unexpected(ok.error());
  }
  return ternary_reading(from, iq2_codes, from.k, std::move(scales), by_type(from));
}

result<reading> understand_iq2_bn_r4(const source& from) {
  const uint64_t row_bytes = iq2_row_bytes(from);
  if (from.m % 4 != 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("IQ2_BN_R4 has {} rows; expected a multiple of 4", from.m));
  if (auto ok = check_shape(from, row_bytes, "IQ2_BN_R4"); !ok) return std::unexpected(ok.error());
  std::vector<float> scales;
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto rows = from.bytes.subspan(r / 4 * 4 * row_bytes, 4 * row_bytes);
    scales.push_back(gguf::load<float>(rows.subspan(4 * (r % 4))));
    if (!std::isfinite(scales.back())) return bad_scale("IQ2_BN_R4", r);
    if (auto ok = check_codes(rows.subspan(r4_meta), "IQ2_BN_R4", r); r % 4 == 0 && !ok)
      return std::unexpected(ok.error());
  }
  return ternary_reading(from, r4_codes, from.k, std::move(scales), by_type(from));
}

}  // namespace bitnet::formats
