#include "formats/writing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "formats/dense_blocks.hpp"
#include "formats/floats.hpp"
#include "formats/ternary.hpp"
#include "formats/tl.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

void put(std::span<std::byte> at, const auto& x) {
  std::memcpy(at.data(), &x, sizeof x);
}

std::byte bits(uint32_t x) {
  return static_cast<std::byte>(x);
}

// The codes of a whole row.
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

float scale_at(const ternary_weights& from, uint64_t row, uint64_t column) {
  if (from.scale_group == 0) return from.scales[0];
  return from.scales[(row * from.k + column) / from.scale_group];
}

// The f16 of a scale that other programs will read.
result<void> fits_f16(const ternary_weights& from, const char* name) {
  for (const float s : from.scales) {
    const float back = from_f16(to_f16(s));
    if (!std::isfinite(back) || (s != 0 && std::fabs(back - s) > std::fabs(s) * 0x1p-11F))
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("{} keeps scales in 16 bits, which cannot hold {}; choose i2_s or iq2_bn",
                      name, std::to_string(s)));
  }
  return {};
}

result<void> one_scale(const ternary_weights& from, const char* name) {
  if (from.scale_group == 0) return {};
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("{} has one scale for a tensor, this one has {} that differ; choose {}", name,
                  from.scales.size(),
                  from.scale_group % 256 == 0 && from.scale_group != from.k ? "tq2_0" : "iq2_bn"));
}

result<void> whole_blocks(uint64_t k, uint64_t block, const char* name) {
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
  if (from.scale_group % tq_block != 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("{} has a scale for 256 elements, this tensor one for {}", name,
                            from.scale_group));
  if (auto ok = fits_f16(from, name); !ok) return std::unexpected(ok.error());
  return from.k / tq_block * from.m * BlockBytes;
}

// `one` packs the codes of a block; the scale follows.
template <uint64_t BlockBytes>
void write_tq(const ternary_weights& from, std::span<std::byte> out,
              void (*one)(std::span<const uint8_t>, std::span<std::byte>)) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    for (uint64_t c = 0; c < from.k; c += tq_block) {
      const auto block = out.subspan((r * from.k + c) / tq_block * BlockBytes, BlockBytes);
      one(codes.subspan(c, tq_block), block.first(BlockBytes - 2));
      put(block.last(2), to_f16(scale_at(from, r, c)));
    }
  }
}

// Five base-3 digits, most significant first, as a fraction of 256 rounded up.
std::byte base3_byte(const std::array<uint32_t, 5>& digits) {
  uint32_t q = 0;
  for (const uint32_t d : digits) q = 3 * q + d;
  return bits((q * 256 + 242) / 243);
}

void tq1_block(std::span<const uint8_t> codes, std::span<std::byte> out) {
  const auto part = [&](uint64_t first, uint64_t width, uint64_t n, uint64_t to) {
    for (uint64_t j = 0; j < width; ++j) {
      std::array<uint32_t, 5> digits{};
      for (uint64_t d = 0; d < n; ++d) digits[d] = codes[first + d * width + j];
      out[to + j] = base3_byte(digits);
    }
  };
  part(0, 32, 5, 0);
  part(160, 16, 5, 32);
  part(240, 4, 4, 48);
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
  if (from.scale_group != 0 && from.scale_group != from.k)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("IQ2_BN has a scale for a row, this tensor one for {} elements; choose tq2_0",
                    from.scale_group));
  return (4 + from.k / 4) * from.m;
}

void write_iq2(const ternary_weights& from, std::span<std::byte> out) {
  row_reader rows(from);
  for (uint64_t r = 0; r < from.m; ++r) {
    const auto codes = rows.at(r);
    const auto row = out.subspan(r * (4 + from.k / 4), 4 + from.k / 4);
    put(row, scale_at(from, r, 0));
    for (uint64_t c = 0; c < from.k; ++c)
      row[4 + c / 64 * 16 + c % 16] |= bits(uint32_t{codes[c]} << 2 * (c % 64 / 16));
  }
}

constexpr std::array all_ternary = {
    ternary_target{type::i2_s, "i2_s", gguf::file_type::i2_s, i2s_bytes, write_i2s},
    ternary_target{type::tl1, "tl1", gguf::file_type::tl1, tl1_size, write_tl1},
    ternary_target{type::tl2, "tl2", gguf::file_type::tl2, tl2_size, write_tl2},
    ternary_target{type::tq1_0, "tq1_0", gguf::file_type::tq1_0, tq_bytes<54>, write_tq1},
    ternary_target{type::tq2_0, "tq2_0", gguf::file_type::tq2_0, tq_bytes<66>, write_tq2},
    ternary_target{type::iq2_bn, "iq2_bn", gguf::file_type::iq2_bn, iq2_bytes, write_iq2},
};

constexpr std::array all_dense = {
    dense_target{type::f32, "f32", gguf::file_type::f32, 1, write_f32},
    dense_target{type::f16, "f16", gguf::file_type::f16, 1, write_f16},
    dense_target{type::bf16, "bf16", gguf::file_type::bf16, 1, write_bf16},
    dense_target{type::q8_0, "q8_0", gguf::file_type::q8_0, 32, write_q8_0},
    dense_target{type::q4_0, "q4_0", gguf::file_type::q4_0, 32, write_q4_0},
    dense_target{type::q6_k, "q6_k", gguf::file_type::q6_k, 256, write_q6_k},
};

}  // namespace

std::span<const ternary_target> ternary_targets() {
  return all_ternary;
}
std::span<const dense_target> dense_targets() {
  return all_dense;
}

namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

const ternary_target* find_ternary_target(std::string_view name) {
  const auto* at = std::ranges::find(all_ternary, lower_case(name), &ternary_target::name);
  return at == all_ternary.end() ? nullptr : at;
}
const dense_target* find_dense_target(std::string_view name) {
  const auto* at = std::ranges::find(all_dense, lower_case(name), &dense_target::name);
  return at == all_dense.end() ? nullptr : at;
}

}  // namespace bitnet::formats
