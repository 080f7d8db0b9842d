#include "formats/tl.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/wording.hpp"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

struct tl1_row {
  uint64_t m, k;
  tl1_tile generated, pretuned;
};
// Parameters that bitnet.cpp's setup script passes to its code generator for the models it knows,
// and those in its folder preset_kernels. docs/reference/weights.md#tl1
constexpr tl1_row tl1_table[] = {
    {1536, 4096, {256, 128, 32}, {256, 128, 32}},  {1536, 1536, {128, 64, 64}, {128, 64, 64}},
    {4096, 1536, {256, 128, 32}, {256, 128, 32}},  {3200, 8640, {160, 64, 32}, {160, 64, 32}},
    {3200, 3200, {320, 128, 64}, {320, 128, 64}},  {8640, 3200, {320, 64, 32}, {320, 64, 32}},
    {14336, 4096, {256, 128, 32}, {256, 128, 64}}, {4096, 14336, {128, 64, 64}, {256, 128, 32}},
    {1024, 4096, {256, 128, 32}, {128, 64, 64}},   {4096, 4096, {128, 64, 64}, {128, 64, 32}},
};

struct tl2_row {
  uint64_t m, k;
  tl2_tile tile;
};
// docs/reference/weights.md#tl2
constexpr tl2_row tl2_table[] = {
    {1536, 4096, {256, 96}},  {1536, 1536, {128, 192}}, {4096, 1536, {256, 96}},
    {3200, 8640, {160, 96}},  {3200, 3200, {320, 96}},  {8640, 3200, {320, 96}},
    {14336, 4096, {256, 96}}, {4096, 14336, {128, 96}}, {1024, 4096, {256, 96}},
    {4096, 4096, {128, 96}},
};

bool same(const tl1_tile& a, const tl1_tile& b) {
  return a.bm == b.bm && a.bk == b.bk && a.rows == b.rows;
}

template <class Row>
const Row* row_of(std::span<const Row> table, uint64_t k, uint64_t m) {
  const auto at = std::ranges::find_if(table, [&](const Row& r) { return r.k == k && r.m == m; });
  return at == table.end() ? nullptr : &*at;
}

std::unexpected<failure> no_tile(const char* name, uint64_t k, uint64_t m) {
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format(
          "{} of {} rows and {} columns: its layout depends on tile sizes that are not in the "
          "file, and none were published for this shape; use the I2_S file of this model",
          name, m, k));
}

// Octets of rows are interleaved for the byte shuffles of AVX2.
uint64_t position(uint64_t r) {
  constexpr uint64_t octets[] = {0, 2, 1, 3};
  return octets[r % 32 / 8] * 8 + r % 8;
}

// The block of `width` columns that holds (r, c), counted over the whole tensor.
uint64_t block_of(const tl2_tile& t, uint64_t k3, uint64_t width, uint64_t r, uint64_t c) {
  const uint64_t tiles = r / t.bm * (k3 / t.bk) + c / t.bk;
  return (tiles * (t.bm / 32) + r % t.bm / 32) * (t.bk / width) + c % t.bk / width;
}

uint32_t field(const source& from, const nibble& at) {
  return std::to_integer<uint32_t>(from.bytes[at.byte]) >> at.shift & 15U;
}

void put_pair(uint32_t index, uint64_t j, std::span<uint8_t> out) {
  out[j] = static_cast<uint8_t>(index / 3);
  if (j + 1 < out.size()) out[j + 1] = static_cast<uint8_t>(index % 3);
}

void tl1_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const tl1_tile tile = find_tl1_tile(from.tiles, from.k, from.m).value();
  for (uint64_t j = 0; j < out.size(); j += 2)
    put_pair(field(from, tl1_pair(tile, from.k, row, column + j)), j, out);
}

void tl2_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const tl2_tile tile = find_tl2_tile(from.k, from.m).value();
  const tl2_parts parts = tl2_parts_of(tile, from.k, from.m);
  const uint64_t triples_end = std::clamp(parts.k3, column, column + out.size());
  for (uint64_t c = column / 3 * 3; c < triples_end; c += 3) {
    const auto size = static_cast<int32_t>(field(from, tl2_triple(tile, parts, row, c)));
    const nibble sign = tl2_sign(tile, parts, row, c);
    const int32_t v = (field(from, sign) & 1U) != 0 ? 13 - size : 13 + size;  // 9a + 3b + c, codes
    const int32_t digits[] = {v / 9, v / 3 % 3, v % 3};
    for (uint64_t j = 0; j < 3; ++j)
      if (c + j >= column && c + j < triples_end)
        out[c + j - column] = static_cast<uint8_t>(digits[j]);
  }
  for (uint64_t c = triples_end; c < column + out.size(); c += 2)
    put_pair(field(from, tl2_pair(tile, parts, from.k, row, c)), c - column, out);
}

bool has_index_above(std::span<const std::byte> packed, uint32_t most) {
  return std::ranges::any_of(packed, [&](std::byte b) {
    const auto bits = std::to_integer<uint32_t>(b);
    return bits >> 4 > most || (bits & 15U) > most;
  });
}

std::unexpected<failure> bad_index(const char* name) {
  return fail(
      BITNET_BAD_DATA,
      fmt::format("{} holds an index that stands for no ternary values; the file is damaged",
                  name));
}

result<reading> understand_tl(const source& from, codes_of codes, uint64_t scale_at,
                              const char* name, std::string how) {
  const auto scale = gguf::load<float>(from.bytes.subspan(scale_at));
  if (!std::isfinite(scale) || scale < 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("the {} scale is negative or not finite; the file is damaged", name));
  return ternary_reading(from, std::move(codes), 0, {scale}, std::move(how));
}

}  // namespace

nibble tl1_pair(const tl1_tile& t, uint64_t k, uint64_t r, uint64_t c) {
  const uint64_t by = 256 / t.rows;
  const uint64_t row_tile = r / t.bm, block_row = r % t.bm / t.rows, row = r % t.rows;
  const uint64_t column_tile = c / t.bk, block_column = c % t.bk / by, pair = c % by / 2;
  uint64_t at = row_tile * (k / t.bk) + column_tile;
  at = at * (t.bm / t.rows) + block_row;
  at = at * (t.bk / by) + block_column;
  at = at * (t.rows / 16) + row / 16;
  at = at * (by / 4) + pair / 2;
  return {at * 16 + row % 16, pair % 2 == 0 ? 4U : 0U};
}

tl2_parts tl2_parts_of(const tl2_tile& t, uint64_t k, uint64_t m) {
  tl2_parts p{};
  p.k3 = k - k % t.bk;
  p.signs = m * p.k3 / 6;
  p.pairs = p.signs + m * p.k3 / 24;
  p.end = p.pairs + m * (k - p.k3) / 4;
  // The size that the writer allocates, even if it needs less; divisions from left to right as
  // there.
  const uint64_t allocated = (k - 256) * m / 3 * 5 / 8 + 256 * m / 2 * 4 / 8;
  p.scale = (allocated + 31) / 32 * 32;
  p.bytes = p.scale + 32;
  return p;
}

nibble tl2_triple(const tl2_tile& t, const tl2_parts& p, uint64_t r, uint64_t c) {
  return {block_of(t, p.k3, 6, r, c) * 32 + position(r), c % 6 < 3 ? 4U : 0U};
}

nibble tl2_sign(const tl2_tile& t, const tl2_parts& p, uint64_t r, uint64_t c) {
  const uint64_t word = block_of(t, p.k3, 24, r, c) * 16 + r % 16;
  const uint64_t bit = 15 - (2 * (c % 24 / 3) + r % 32 / 16);
  return {p.signs + 2 * word + bit / 8, static_cast<uint32_t>(bit % 8)};
}

nibble tl2_pair(const tl2_tile& t, const tl2_parts& p, uint64_t k, uint64_t r, uint64_t c) {
  const uint64_t k2 = k - p.k3, at = c - p.k3;
  const uint64_t tile = r / t.bm * (k2 / 32) + at / 32;
  const uint64_t block = (tile * (t.bm / 32) + r % t.bm / 32) * 8 + at % 32 / 4;
  return {p.pairs + block * 32 + position(r), at % 4 < 2 ? 4U : 0U};
}

result<tl1_tile> find_tl1_tile(tl1_tiles which, uint64_t k, uint64_t m) {
  const tl1_row* row = row_of<tl1_row>(tl1_table, k, m);
  if (row == nullptr) return no_tile("TL1", k, m);
  return which == tl1_tiles::pretuned ? row->pretuned : row->generated;
}

result<tl2_tile> find_tl2_tile(uint64_t k, uint64_t m) {
  const tl2_row* row = row_of<tl2_row>(tl2_table, k, m);
  if (row == nullptr) return no_tile("TL2", k, m);
  return row->tile;
}

bool is_tl1_ambiguous(uint64_t k, uint64_t m) {
  const tl1_row* row = row_of<tl1_row>(tl1_table, k, m);
  return row != nullptr && !same(row->generated, row->pretuned);
}

result<reading> understand_tl1(const source& from) {
  const auto tile = find_tl1_tile(from.tiles, from.k, from.m);
  if (!tile) return std::unexpected(tile.error());
  if (auto ok = check_bytes(from, tl1_bytes(from.k, from.m), "TL1"); !ok)
    return std::unexpected(ok.error());
  const uint64_t payload = from.k * from.m / 4;
  if (has_index_above(from.bytes.first(payload), 8)) return bad_index("TL1");
  return understand_tl(
      from, tl1_codes, payload, "TL1",
      fmt::format(
          "TL1 of bitnet.cpp in tiles of {} x {}, blocks of {} rows, the {} kernels' tiles for "
          "this shape{}",
          tile->bm, tile->bk, tile->rows,
          from.tiles == tl1_tiles::pretuned ? "preset" : "generated",
          is_tl1_ambiguous(from.k, from.m)
              ? "; files with other tiles exist, see " + say(word::tl1_tiles)
              : ""));
}

// In newer llama.cpp files id 39 is MXFP4. docs/reference/weights.md#type-ids
result<reading> understand_tl2(const source& from) {
  if (from.file_type != gguf::file_type::tl2)
    return fail(BITNET_UNSUPPORTED,
                "has type 39, which is MXFP4 unless general.file_type is 39, TL2; this program "
                "does not read MXFP4");
  const auto tile = find_tl2_tile(from.k, from.m);
  if (!tile) return std::unexpected(tile.error());
  const tl2_parts parts = tl2_parts_of(*tile, from.k, from.m);
  if (auto ok = check_bytes(from, parts.bytes, "TL2"); !ok) return std::unexpected(ok.error());
  if (has_index_above(from.bytes.first(parts.signs), 13) ||
      has_index_above(from.bytes.subspan(parts.pairs, parts.end - parts.pairs), 8))
    return bad_index("TL2");
  return understand_tl(
      from, tl2_codes, parts.scale, "TL2",
      fmt::format(
          "TL2 of bitnet.cpp in tiles of {} x {}: type 39, general.file_type 39, and {} bytes",
          tile->bm, tile->bk, parts.bytes));
}

}  // namespace bitnet::formats
