#include "formats/writing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/floats.hpp"
#include "formats/dense_blocks.hpp"
#include "formats/q2.hpp"
#include "formats/ternary.hpp"
#include "formats/tl.hpp"
#include "gguf/types.hpp"
#include "text/ascii.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

void put(std::span<std::byte> at, const auto& x) {
  std::memcpy(at.data(), &x, sizeof x);
}

std::byte bits(uint32_t x) {
  return static_cast<std::byte>(x);
}

// Reads the codes of a whole row.
class row_reader {
 public:
  explicit row_reader(const ternary_weights& from) : from_(from), row_(from.k) {}
  std::span<const uint8_t> at(uint64_t r) {
    for (uint64_t c = 0; c < from_.k; c += group)
      from_.codes(r, c, std::span(row_).subspan(c, std::min(group, from_.k - c)));
    return row_;
  }

 private:
  const ternary_weights& from_;
  std::vector<uint8_t> row_;
};

// The name, for messages, of the type with scales for such groups.
std::string_view type_for_scales(const ternary_weights& from) {
  if (from.scale_group == from.k) return "iq2_bn";
  if (from.scale_group % tq_block == 0) return "tq2_0";
  if (from.scale_group % pq2_block.elements == 0) return "pq2_0";
  return from.scale_group % q2_block_64.elements == 0 ? "q2_0" : "f16";
}

// The scale of elements [column, column + n) of a row, ignoring groups of zeros with scale 0;
// nullopt: they have several.
std::optional<float> scale_of(const ternary_weights& from, uint64_t row, uint64_t column,
                              uint64_t n) {
  if (from.scale_group == 0) return from.scales[0];
  const uint64_t first = row * from.k + column;
  float found = 0;
  for (uint64_t g = first / from.scale_group; g * from.scale_group < first + n; ++g) {
    const float s = from.scales[g];
    if (s != 0 && found != 0 && s != found) return std::nullopt;
    if (s != 0) found = s;
  }
  return found;
}

// Checks that each block of so many elements has one scale.
result<void> scales_fit(const ternary_weights& from, uint64_t block, std::string_view name) {
  if (from.scale_group % block == 0) return {};
  for (uint64_t r = 0; r < from.m; ++r)
    for (uint64_t c = 0; c < from.k; c += block)
      if (!scale_of(from, r, c, block))
        return fail(
            BITNET_UNSUPPORTED,
            fmt::format("{} has a scale for {} elements, this tensor one for {}, and they differ "
                        "within {} elements of row {} from column {}; choose {}",
                        name, block, from.scale_group, block, r, c, type_for_scales(from)));
  return {};
}

// Checks that the f16 scales are in range for other programs.
result<void> fits_f16(const ternary_weights& from, std::string_view name) {
  for (const float s : from.scales) {
    const float back = from_f16(to_f16(s));
    if (!std::isfinite(back) || (s != 0 && std::fabs(back - s) > std::fabs(s) * 0x1p-11F))
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("{} keeps scales in 16 bits, which cannot hold {}; choose i2_s, iq2_bn or "
                      "f32",
                      name, s));
  }
  return {};
}

// Checks for one scale that other readers accept: not negative.
result<void> one_scale(const ternary_weights& from, const char* name) {
  if (from.scale_group == 0 && from.scales[0] >= 0) return {};
  if (from.scale_group == 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("{} has no scale below zero, this tensor has {}; choose iq2_bn", name,
                            from.scales[0]));
  return fail(BITNET_UNSUPPORTED,
              fmt::format("{} has one scale for a tensor, this one has {} that differ; choose {}",
                          name, from.scales.size(), type_for_scales(from)));
}

result<void> whole_blocks(uint64_t k, uint64_t block, std::string_view name) {
  if (k % block == 0) return {};
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("{} needs rows of a multiple of {} elements, these have {}; choose another type",
                  name, block, k));
}

// ---- I2_S, layout A -----------------------------------------------------------------------------

result<uint64_t> i2s_bytes(const ternary_weights& from) {
  if (auto ok = one_scale(from, "I2_S"); !ok) return std::unexpected(ok.error());
  if (from.k * from.m % group != 0)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("I2_S needs a multiple of 128 elements, this tensor has {}", from.k * from.m));
  return from.k * from.m / 4 + 32;
}

void write_i2s(const ternary_weights& from, std::span<std::byte> out) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; ++c) {
      const uint64_t i = r * from.k + c;
      out[i / 128 * 32 + i % 32] |= bits(uint32_t{codes[c]} << (6 - 2 * (i % 128 / 32)));
    }
  }
  put(out.subspan(from.k * from.m / 4), from.scales[0]);
}

// ---- TL1, TL2 -----------------------------------------------------------------------------------

result<uint64_t> tl1_size(const ternary_weights& from) {
  if (auto ok = one_scale(from, "TL1"); !ok) return std::unexpected(ok.error());
  const auto tile = find_tl1_tile(tl1_tiles::generated, from.k, from.m);
  if (!tile) return std::unexpected(tile.error());
  return tl1_bytes(from.k, from.m);
}

void write_tl1(const ternary_weights& from, std::span<std::byte> out) {
  const auto tile = find_tl1_tile(tl1_tiles::generated, from.k, from.m);
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; c += 2) {
      const nibble at = tl1_pair(*tile, from.k, r, c);
      out[at.byte] |= bits((3U * codes[c] + codes[c + 1]) << at.shift);
    }
  }
  put(out.subspan(from.k * from.m / 4), from.scales[0]);
}

result<uint64_t> tl2_size(const ternary_weights& from) {
  if (auto ok = one_scale(from, "TL2"); !ok) return std::unexpected(ok.error());
  const auto tile = find_tl2_tile(from.k, from.m);
  if (!tile) return std::unexpected(tile.error());
  return tl2_parts_of(*tile, from.k, from.m).bytes;
}

void write_tl2(const ternary_weights& from, std::span<std::byte> out) {
  const auto tile = find_tl2_tile(from.k, from.m);
  const tl2_parts parts = tl2_parts_of(*tile, from.k, from.m);
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < parts.k3; c += 3) {
      const int v = 9 * codes[c] + 3 * codes[c + 1] + codes[c + 2] - 13;
      const nibble at = tl2_triple(*tile, parts, r, c);
      out[at.byte] |= bits(static_cast<uint32_t>(std::abs(v)) << at.shift);
      const nibble sign = tl2_sign(*tile, parts, r, c);
      if (v < 0) out[sign.byte] |= bits(1U << sign.shift);
    }
    for (uint64_t c = parts.k3; c < from.k; c += 2) {
      const nibble at = tl2_pair(*tile, parts, from.k, r, c);
      out[at.byte] |= bits((3U * codes[c] + codes[c + 1]) << at.shift);
    }
  }
  put(out.subspan(parts.scale), from.scales[0]);
}

// ---- TQ1_0, TQ2_0 -------------------------------------------------------------------------------

template <uint64_t BlockBytes>
result<uint64_t> tq_bytes(const ternary_weights& from) {
  const char* name = BlockBytes == 54 ? "TQ1_0" : "TQ2_0";
  if (auto ok = whole_blocks(from.k, tq_block, name); !ok) return std::unexpected(ok.error());
  if (auto ok = scales_fit(from, tq_block, name); !ok) return std::unexpected(ok.error());
  if (auto ok = fits_f16(from, name); !ok) return std::unexpected(ok.error());
  return from.k / tq_block * from.m * BlockBytes;
}

// `one` packs the codes of a block; the scale is appended.
template <uint64_t BlockBytes>
void write_tq(const ternary_weights& from, std::span<std::byte> out,
              void (*one)(std::span<const uint8_t>, std::span<std::byte>)) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; c += tq_block) {
      const auto block = out.subspan((r * from.k + c) / tq_block * BlockBytes, BlockBytes);
      one(codes.subspan(c, tq_block), block.first(BlockBytes - 2));
      put(block.last(2), to_f16(scale_of(from, r, c, tq_block).value_or(0)));
    }
  }
}

// Packs five base-3 digits, most significant first, as a fraction of 256 rounded up.
std::byte base3_byte(const std::array<uint32_t, 5>& digits) {
  uint32_t q = 0;
  for (const uint32_t d : digits) q = 3 * q + d;
  return bits((q * 256 + 242) / 243);
}

// Writes `width` bytes of n digits each; codes of the same digit are adjacent, from codes[first]
// on.
void base3_part(std::span<const uint8_t> codes, uint64_t first, uint64_t width, uint64_t n,
                std::span<std::byte> out) {
  for (uint64_t j = 0; j < width; ++j) {
    std::array<uint32_t, 5> digits{};
    for (uint64_t d = 0; d < n; ++d) digits[d] = codes[first + d * width + j];
    out[j] = base3_byte(digits);
  }
}

void tq1_block(std::span<const uint8_t> codes, std::span<std::byte> out) {
  base3_part(codes, 0, 32, 5, out);
  base3_part(codes, 160, 16, 5, out.subspan(32));
  base3_part(codes, 240, 4, 4, out.subspan(48));
}

void tq2_block(std::span<const uint8_t> codes, std::span<std::byte> out) {
  for (uint64_t e = 0; e < tq_block; ++e)
    out[e / 128 * 32 + e % 32] |= bits(uint32_t{codes[e]} << 2 * (e % 128 / 32));
}

void write_tq1(const ternary_weights& from, std::span<std::byte> out) {
  write_tq<54>(from, out, tq1_block);
}
void write_tq2(const ternary_weights& from, std::span<std::byte> out) {
  write_tq<66>(from, out, tq2_block);
}

// ---- IQ2_BN -------------------------------------------------------------------------------------

result<uint64_t> iq2_bytes(const ternary_weights& from) {
  if (auto ok = whole_blocks(from.k, 64, "IQ2_BN"); !ok) return std::unexpected(ok.error());
  if (auto ok = scales_fit(from, from.k, "IQ2_BN"); !ok) return std::unexpected(ok.error());
  return (4 + from.k / 4) * from.m;
}

void write_iq2(const ternary_weights& from, std::span<std::byte> out) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    const auto row = out.subspan(r * (4 + from.k / 4), 4 + from.k / 4);
    put(row, scale_of(from, r, 0, from.k).value_or(0));
    for (uint64_t c = 0; c < from.k; ++c)
      row[4 + c / 64 * 16 + c % 16] |= bits(uint32_t{codes[c]} << 2 * (c % 64 / 16));
  }
}

// ---- Q1_0, Q2_0, PQ2_0, PTQ1_0 ------------------------------------------------------------------

constexpr uint64_t group_of_128 = 128;  // elements per block
constexpr uint64_t q1_block_bytes = 18;
constexpr uint64_t ptq1_block_bytes = 28;

result<uint64_t> block_bytes(const ternary_weights& from, uint64_t elements, uint64_t bytes,
                             std::string_view name) {
  if (auto ok = whole_blocks(from.k, elements, name); !ok) return std::unexpected(ok.error());
  if (auto ok = scales_fit(from, elements, name); !ok) return std::unexpected(ok.error());
  if (auto ok = fits_f16(from, name); !ok) return std::unexpected(ok.error());
  return from.k / elements * from.m * bytes;
}

// Calls one(codes, scale, block) for each block of the tensor.
void write_blocks(const ternary_weights& from, std::span<std::byte> out, uint64_t elements,
                  uint64_t bytes, const auto& one) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; c += elements)
      one(codes.subspan(c, elements), to_f16(scale_of(from, r, c, elements).value_or(0)),
          out.subspan((r * from.k + c) / elements * bytes, bytes));
  }
}

template <const two_bit_block& B>
result<uint64_t> two_bit_size(const ternary_weights& from) {
  return block_bytes(from, B.elements, B.bytes, B.name);
}

template <const two_bit_block& B>
void write_two_bits(const ternary_weights& from, std::span<std::byte> out) {
  write_blocks(from, out, B.elements, B.bytes,
               [](std::span<const uint8_t> codes, uint16_t scale, std::span<std::byte> block) {
                 put(block.subspan(B.scale), scale);
                 for (uint64_t j = 0; j < codes.size(); ++j)
                   block[B.codes + j / 4] |= bits(uint32_t{codes[j]} << 2 * (j % 4));
               });
}

result<uint64_t> ptq1_size(const ternary_weights& from) {
  return block_bytes(from, group_of_128, ptq1_block_bytes, "PTQ1_0");
}

void write_ptq1(const ternary_weights& from, std::span<std::byte> out) {
  write_blocks(from, out, group_of_128, ptq1_block_bytes,
               [](std::span<const uint8_t> codes, uint16_t scale, std::span<std::byte> block) {
                 base3_part(codes, 0, 16, 5, block);
                 base3_part(codes, 80, 8, 5, block.subspan(16));
                 base3_part(codes, 120, 2, 4, block.subspan(24));
                 put(block.subspan(26), scale);
               });
}

bool is_all_zero(std::span<const uint8_t> codes) {
  return std::ranges::all_of(codes, [](uint8_t code) { return code == 1; });
}

result<uint64_t> q1_size(const ternary_weights& from) {
  const auto size = block_bytes(from, group_of_128, q1_block_bytes, "Q1_0");
  if (!size) return size;
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; c += group_of_128) {
      const auto block = codes.subspan(c, group_of_128);
      if (is_all_zero(block) || std::ranges::find(block, 1) == block.end()) continue;
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("Q1_0 knows no zeros among other weights, and row {} has some from "
                              "column {}; choose ptq1_0 or q2_0",
                              r, c));
    }
  }
  return size;
}

void write_q1(const ternary_weights& from, std::span<std::byte> out) {
  write_blocks(from, out, group_of_128, q1_block_bytes,
               [](std::span<const uint8_t> codes, uint16_t scale, std::span<std::byte> block) {
                 if (is_all_zero(codes)) return;  // a scale of 0
                 put(block, scale);
                 for (uint64_t j = 0; j < codes.size(); ++j)
                   if (codes[j] == 2) block[2 + j / 8] |= bits(1U << j % 8);
               });
}

constexpr std::array all_ternary = {
    ternary_target{type::i2_s, "i2_s", gguf::file_type::i2_s, 0, i2s_bytes, write_i2s},
    ternary_target{type::tl1, "tl1", gguf::file_type::tl1, 0, tl1_size, write_tl1},
    ternary_target{type::tl2, "tl2", gguf::file_type::tl2, 0, tl2_size, write_tl2},
    ternary_target{type::tq1_0, "tq1_0", gguf::file_type::tq1_0, 0, tq_bytes<54>, write_tq1},
    ternary_target{type::tq2_0, "tq2_0", gguf::file_type::tq2_0, 0, tq_bytes<66>, write_tq2},
    ternary_target{type::iq2_bn, "iq2_bn", gguf::file_type::iq2_bn, 0, iq2_bytes, write_iq2},
    ternary_target{type::q1_0, "q1_0", gguf::file_type::q1_0, group_of_128, q1_size, write_q1},
    ternary_target{type::q2_0, "q2_0", gguf::file_type::q2_0, q2_block_64.elements,
                   two_bit_size<q2_block_64>, write_two_bits<q2_block_64>},
    ternary_target{type::pq2_0, "pq2_0", gguf::file_type::pq2_0, pq2_block.elements,
                   two_bit_size<pq2_block>, write_two_bits<pq2_block>},
    ternary_target{type::ptq1_0, "ptq1_0", gguf::file_type::ptq1_0, group_of_128, ptq1_size,
                   write_ptq1},
};

// Block types: the error of Q4_0 is 0.09 for Gaussian weights, 0.12 for weights of equal magnitude.
constexpr double block_error = 0.15;
constexpr std::array all_dense = {
    dense_target{type::f32, "f32", gguf::file_type::f32, 1, 0, write_f32},
    dense_target{type::f16, "f16", gguf::file_type::f16, 1, 0x1p-10, write_f16},
    dense_target{type::bf16, "bf16", gguf::file_type::bf16, 1, 0x1p-8, write_bf16},
    dense_target{type::q8_0, "q8_0", gguf::file_type::q8_0, 32, block_error, write_q8_0},
    dense_target{type::q4_0, "q4_0", gguf::file_type::q4_0, 32, block_error, write_q4_0},
    dense_target{type::q6_k, "q6_k", gguf::file_type::q6_k, 256, block_error, write_q6_k},
};

}  // namespace

std::span<const ternary_target> ternary_targets() {
  return all_ternary;
}
std::span<const dense_target> dense_targets() {
  return all_dense;
}

const ternary_target* find_ternary_target(std::string_view name) {
  const auto* at =
      std::ranges::find(all_ternary, lower_ascii(std::string(name)), &ternary_target::name);
  return at == all_ternary.end() ? nullptr : at;
}
const dense_target* find_dense_target(std::string_view name) {
  const auto* at =
      std::ranges::find(all_dense, lower_ascii(std::string(name)), &dense_target::name);
  return at == all_dense.end() ? nullptr : at;
}

}  // namespace bitnet::formats
