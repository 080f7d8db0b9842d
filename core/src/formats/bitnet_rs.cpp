// Type 36 as written by BitNet-rs: four 2-bit codes per byte, the first element lowest.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/floats.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t rs_block = 32;      // elements
constexpr uint64_t code_bytes = 8;     // of a block
constexpr uint64_t inline_bytes = 10;  // the codes and an f16 scale behind them

uint32_t field(std::byte packed, uint64_t index) {
  return std::to_integer<uint32_t>(packed) >> 2 * (index % 4) & 3U;
}

// The value is code - 2; 0 would be -2.
template <uint64_t BlockBytes>
void block_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const uint64_t first = row * from.k + column;
  for (uint64_t j = 0; j < out.size(); ++j) {
    const uint64_t i = first + j;
    const std::byte packed = from.bytes[i / rs_block * BlockBytes + i % rs_block / 4];
    const uint32_t code = field(packed, i);
    out[j] = static_cast<uint8_t>(code == 0 ? 1 : code - 1);  // 0: only if the scale is 0
  }
}

bool has_code_0(std::span<const std::byte> packed) {
  return std::ranges::any_of(packed, [](std::byte b) {
    const auto bits = std::to_integer<uint32_t>(b);
    return ((bits | bits >> 1) & 0x55U) != 0x55U;
  });
}

template <class ScaleAt>
result<reading> understand_blocks(const source& from, uint64_t block_bytes, const char* name,
                                  codes_of codes, std::string how, const ScaleAt& scale_at) {
  if (from.k % rs_block != 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("I2_S of the flavour {} with rows of {}, no multiple of {}: scales "
                            "that straddle rows are not supported",
                            name, from.k, rs_block));
  std::vector<float> scales;
  for (uint64_t i = 0; i < from.k * from.m / rs_block; ++i) {
    const float d = scale_at(i);
    if (!std::isfinite(d))
      return fail(
          BITNET_BAD_DATA,
          fmt::format("the scale of block {} is not a finite number; the file is damaged", i));
    if (d != 0 && has_code_0(from.bytes.subspan(i * block_bytes, code_bytes)))
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("block {} of the flavour {} holds the code 0, which stands for -2: "
                              "the weights are not ternary",
                              i, name));
    scales.push_back(d);
  }
  return ternary_reading(from, std::move(codes), rs_block, std::move(scales), std::move(how));
}

// ---- QK256: values -2, -1, +1, +2 and no scale. Given on as Q4_0 with the scale 1. --------------

constexpr uint64_t q4_block_bytes = 18;
constexpr std::array<uint8_t, 4> q4_of_code = {6, 7, 9, 10};  // value + 8
constexpr uint16_t f16_one = 0x3c00;

void q4_block(const source& from, uint64_t index, std::span<std::byte, q4_block_bytes> out) {
  const uint64_t row = index / (from.k / rs_block);
  const uint64_t column = index % (from.k / rs_block) * rs_block;
  const auto packed =
      from.bytes.subspan(row * ((from.k + 255) / 256 * 64) + column / 4, code_bytes);
  std::memcpy(out.data(), &f16_one, sizeof f16_one);
  for (uint64_t j = 0; j < 16; ++j) {
    const uint8_t low = q4_of_code[field(packed[j / 4], j)];
    const uint8_t high = q4_of_code[field(packed[(j + 16) / 4], j)];
    out[2 + j] = static_cast<std::byte>(low | high << 4);
  }
}

void q4_bytes(const source& from, uint64_t offset, std::span<std::byte> out) {
  std::array<std::byte, q4_block_bytes> made{};
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t at = (offset + done) % q4_block_bytes;
    const uint64_t run = std::min(q4_block_bytes - at, out.size() - done);
    q4_block(from, (offset + done) / q4_block_bytes, made);
    std::memcpy(&out[done], &made[at], run);
    done += run;
  }
}

}  // namespace

result<reading> understand_bitnet32(const source& from) {
  const auto scale_at = [&](uint64_t i) {
    return from_f16(gguf::load<uint16_t>(from.bytes.subspan(i * inline_bytes + code_bytes)));
  };
  return understand_blocks(
      from, inline_bytes, "BitNet32-F16", block_codes<inline_bytes>,
      "BitNet32-F16 of BitNet-rs: type 36 with room for ten bytes for each 32 elements", scale_at);
}

result<reading> understand_split32(const source& from) {
  const companion& c = from.scales;
  const uint64_t blocks = (from.k * from.m + rs_block - 1) / rs_block;
  const bool real =
      c.type == gguf::type::f32 || c.type == gguf::type::f16 || c.type == gguf::type::bf16;
  if (!real || c.elements != blocks)
    return fail(BITNET_UNSUPPORTED, fmt::format("I2_S of the flavour Split32 needs {} scales of "
                                                "F32, F16 or BF16 beside it, found {} of type {}",
                                                blocks, c.elements, gguf::type_name(c.type)));
  return understand_blocks(
      from, code_bytes, "Split32", block_codes<code_bytes>,
      "Split32 of BitNet-rs: type 36 with room for eight bytes for each 32 elements, and a tensor "
      "of scales beside it",
      [&](uint64_t i) { return real_element(c.type, c.bytes, i); });
}

result<reading> understand_qk256(const source& from) {
  if (from.k % rs_block != 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("QK256 with rows of {}, no multiple of {}", from.k, rs_block));
  reading to;
  to.format = BITNET_FORMAT_Q4_0;
  to.data_bytes = from.k / rs_block * q4_block_bytes * from.m;
  to.bytes = q4_bytes;
  to.how = "QK256 of BitNet-rs, because it was asked for: values -2, -1, +1 and +2 without a scale";
  return to;
}

}  // namespace bitnet::formats
