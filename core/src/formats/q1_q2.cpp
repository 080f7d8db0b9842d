// Blocks of 1-bit and 2-bit codes with an f16 scale: llama.cpp's Q1_0 and Q2_0, and relatives.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/floats.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/q2.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t q1_block = 128;  // elements
constexpr uint64_t q1_bytes = 18;   // two of scale, 16 of signs

// A set bit is +d, a clear one -d.
void q1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const uint64_t block = (row * from.k + column) / q1_block;
  const auto packed = from.bytes.subspan(block * q1_bytes + 2, q1_block / 8);
  for (uint64_t j = 0; j < out.size(); ++j)
    out[j] = (std::to_integer<uint32_t>(packed[j / 8]) >> j % 8 & 1U) != 0 ? 2 : 0;
}

std::span<const std::byte> codes_at(const source& from, const two_bit_block& b, uint64_t index) {
  return from.bytes.subspan(index * b.bytes + b.codes, b.elements / 4);
}

uint8_t two_bits_at(std::span<const std::byte> packed, uint64_t j) {
  return static_cast<uint8_t>(std::to_integer<uint32_t>(packed[j / 4]) >> 2 * (j % 4) & 3U);
}

// Codes of each byte, four at a time, since loading a model decodes gigabytes. Not for code 3 (+2),
// which the canonical form lacks.
constexpr auto codes_of_byte = [] {
  std::array<std::array<uint8_t, 4>, 256> out{};
  for (uint32_t byte = 0; byte < 256; ++byte)
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t code = byte >> 2 * j & 3U;
      out[byte][j] = static_cast<uint8_t>(code == 3 ? 1 : code);
    }
  return out;
}();

codes_of two_bit_codes(const two_bit_block& b) {
  return [&b](const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
    for (uint64_t done = 0; done < out.size(); done += b.elements) {
      const auto packed = codes_at(from, b, (row * from.k + column + done) / b.elements);
      const uint64_t n = std::min(b.elements, out.size() - done);
      for (uint64_t j = 0; j < n; j += 4)
        std::memcpy(&out[done + j], codes_of_byte[std::to_integer<size_t>(packed[j / 4])].data(),
                    4);
    }
  };
}

// ---- values -1, 0, +1 and +2, converted to Q8_0 -------------------------------------------------

// Each block of 32 gets the scale of its group, bit by bit.
void q8_block(const source& from, const two_bit_block& b, uint64_t index,
              std::span<std::byte, q8_bytes> out) {
  const uint64_t first = index * q8_elements;
  const auto block = from.bytes.subspan(first / b.elements * b.bytes, b.bytes);
  const auto packed = block.subspan(b.codes, b.elements / 4);
  std::memcpy(out.data(), &block[b.scale], 2);
  for (uint64_t j = 0; j < q8_elements; ++j)
    out[2 + j] = static_cast<std::byte>(two_bits_at(packed, first % b.elements + j) - 1);
}

void q8_bytes_of(const source& from, const two_bit_block& b, uint64_t offset,
                 std::span<std::byte> out) {
  std::array<std::byte, q8_bytes> made{};
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t at = (offset + done) % q8_bytes;
    const uint64_t run = std::min(q8_bytes - at, out.size() - done);
    q8_block(from, b, (offset + done) / q8_bytes, made);
    std::memcpy(&out[done], &made[at], run);
    done += run;
  }
}

reading four_valued(const source& from, const two_bit_block& b, std::string_view how) {
  reading to;
  to.format = BITNET_FORMAT_Q8_0;
  to.data_bytes = from.k * from.m / q8_elements * q8_bytes;
  to.bytes = [&b](const source& all, uint64_t offset, std::span<std::byte> out) {
    q8_bytes_of(all, b, offset, out);
  };
  to.how = fmt::format("{}; holds the code 3, which is +2: not ternary, given on as Q8_0", how);
  return to;
}

// ---- all of them --------------------------------------------------------------------------------

result<std::vector<float>> scales_of(const source& from, uint64_t elements, uint64_t bytes,
                                     uint64_t scale) {
  std::vector<float> scales;
  scales.reserve(from.k * from.m / elements);
  for (uint64_t i = 0; i < from.k * from.m / elements; ++i) {
    scales.push_back(from_f16(gguf::load<uint16_t>(from.bytes.subspan(i * bytes + scale))));
    if (!std::isfinite(scales.back()))
      return fail(
          BITNET_BAD_DATA,
          fmt::format("the scale of block {} is not a finite number; the file is damaged", i));
  }
  return scales;
}

result<reading> understand_two_bits(const source& from, const two_bit_block& b, std::string how) {
  if (auto ok = check_blocks(from, b.elements, b.bytes, b.name); !ok)
    return std::unexpected(ok.error());
  auto scales = scales_of(from, b.elements, b.bytes, b.scale);
  if (!scales) return std::unexpected(scales.error());
  for (uint64_t i = 0; b.code_3_is_two && i < scales->size(); ++i)
    if ((*scales)[i] != 0 && has_code_3(codes_at(from, b, i))) return four_valued(from, b, how);
  return ternary_reading(from, two_bit_codes(b), b.elements, std::move(*scales), std::move(how));
}

// ---- STQ1_0: of four weights one is zero --------------------------------------------------------

// Four weights that stand 16 apart share a nibble and a sign. Bits 2 and 3 of the nibble name the
// one that is zero. Of the others the first is +1; the next two are +1 if bits 0 and 1 are clear.
// The sign negates all.
void stq_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const uint64_t first = row * from.k + column;
  const auto block = from.bytes.subspan(first / stq_block * stq_block_bytes, stq_block_bytes);
  for (uint64_t j = 0; j < out.size(); ++j) {
    const uint64_t e = (first + j) % stq_block;
    const uint32_t lane = e % 64 / 16;
    const uint64_t four = e / 64 * 16 + e % 16;
    const uint32_t nibble = std::to_integer<uint32_t>(block[four / 2]) >> 4 * (four % 2) & 15U;
    const uint32_t zero = nibble >> 2;
    const uint32_t turned = std::to_integer<uint32_t>(block[32 + four / 8]) >> four % 8 & 1U;
    const uint32_t place = lane - (lane > zero ? 1 : 0);  // index among the three that are not zero
    const uint32_t minus = (place == 0 ? 0 : nibble >> (place - 1) & 1U) ^ turned;
    out[j] = lane == zero ? 1 : minus != 0 ? 0 : 2;
  }
}

result<reading> understand_stq(const source& from, std::string how) {
  if (auto ok = check_blocks(from, stq_block, stq_block_bytes, "STQ1_0"); !ok)
    return std::unexpected(ok.error());
  auto scales = scales_of(from, stq_block, stq_block_bytes, stq_scale);
  if (!scales) return std::unexpected(scales.error());
  return ternary_reading(from, stq_codes, stq_block, std::move(*scales), std::move(how));
}

}  // namespace

result<reading> understand_q1_0(const source& from) {
  auto scales = scales_of(from, q1_block, q1_bytes, 0);
  if (!scales) return std::unexpected(scales.error());
  return ternary_reading(from, q1_codes, q1_block, std::move(*scales), by_type(from));
}

result<reading> understand_q2_0(const source& from) {
  q2_finding finding = from.q2;
  if (finding.layout == q2_layout::unknown) {
    const q2_tensor alone{.name = {},
                          .k = from.k,
                          .elements = from.k * from.m,
                          .bytes = from.bytes,
                          .alignment = from.alignment};
    const auto found = find_q2_layout({&alone, 1}, false);
    if (!found) return std::unexpected(found.error());
    finding = *found;
  }
  std::string how = fmt::format("{}, recognised {}", q2_layout_name(finding.layout),
                                q2_evidence_name(finding.by));
  switch (finding.layout) {
    case q2_layout::groups_128:
      return understand_two_bits(from, q2_block_128, std::move(how));
    case q2_layout::groups_128_scale_last:
      return understand_two_bits(from, q2_block_128_scale_last, std::move(how));
    case q2_layout::stq1_0:
      return understand_stq(from, std::move(how));
    default:
      return understand_two_bits(from, q2_block_64, std::move(how));
  }
}

result<reading> understand_pq2_0(const source& from) {
  return understand_two_bits(from, pq2_block, by_type(from));
}

result<reading> understand_stq1_0(const source& from) {
  return understand_stq(from, by_type(from));
}

}  // namespace bitnet::formats
