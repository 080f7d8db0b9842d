// The emulated tiles against products of int8 and uint8 by hand, and what they reject.

#include "tile_emulator.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "emulated_form.hpp"
#include "room.hpp"

namespace bitnet::parity {
namespace {

// Two rows of three times four elements, and four columns.
cpu::tile_shapes small() {
  cpu::tile_shapes s{};
  s.palette = 1;
  s.rows[0] = 2, s.row_bytes[0] = 16;
  s.rows[1] = 2, s.row_bytes[1] = 12;
  s.rows[2] = 3, s.row_bytes[2] = 16;
  return s;
}

TEST(tile_emulator, multiplies_as_the_manual_says) {
  int8_t a[2][12];
  uint8_t b[3][4][4];
  int32_t c[2][4], expected[2][4];
  for (int m = 0; m < 2; ++m)
    for (int k = 0; k < 12; ++k) a[m][k] = static_cast<int8_t>(k % 2 == 0 ? -128 + m : 100 - k);
  for (int k = 0; k < 12; ++k)
    for (int n = 0; n < 4; ++n) b[k / 4][n][k % 4] = static_cast<uint8_t>(255 - 7 * k - n);
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n) {
      c[m][n] = expected[m][n] = 1000 * m - n;
      for (int k = 0; k < 12; ++k) expected[m][n] += a[m][k] * b[k / 4][n][k % 4];
    }
  emulate_ldtilecfg(small());
  emulate_tileloadd(0, c, sizeof c[0]);
  emulate_tileloadd(1, a, sizeof a[0]);
  emulate_tileloadd(2, b, sizeof b[0]);
  emulate_tdpbsud(0, 1, 2);
  emulate_tilestored(0, c, sizeof c[0]);
  emulate_tilerelease();
  EXPECT_EQ(std::memcmp(c, expected, sizeof c), 0);
}

TEST(tile_emulator, takes_the_second_operand_with_its_sign_too) {
  const int8_t a[2][12] = {{-128, 100}, {3, -1}};
  const int8_t b[3][4][4] = {{{-1, 2}, {2, -128}, {0, 1}, {1, 1}}};
  const int32_t expected[2][4] = {{328, -13056, 100, -28}, {-5, 134, -1, 2}};
  int32_t c[2][4] = {};
  emulate_ldtilecfg(small());
  emulate_tilezero(0);
  emulate_tileloadd(1, a, sizeof a[0]);
  emulate_tileloadd(2, b, sizeof b[0]);
  emulate_tdpbssd(0, 1, 2);
  emulate_tilestored(0, c, sizeof c[0]);
  emulate_tilerelease();
  EXPECT_EQ(std::memcmp(c, expected, sizeof c), 0);
}

TEST(tile_emulator_death, ends_where_the_processor_would_fault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  char bytes[64] = {};
  EXPECT_DEATH(emulate_tileloadd(0, bytes, 4), "none are configured");
  cpu::tile_shapes other = small();
  other.palette = 2;
  EXPECT_DEATH(emulate_ldtilecfg(other), "palette");
  other = small();
  other.rows[3] = 17;
  EXPECT_DEATH(emulate_ldtilecfg(other), "too large");
  emulate_ldtilecfg(small());
  EXPECT_DEATH(emulate_tileloadd(3, bytes, 4), "not configured");
  EXPECT_DEATH(emulate_tdpbsud(0, 2, 1), "other rows");
  emulate_tilerelease();
  EXPECT_DEATH(emulate_tdpbsud(0, 1, 2), "none are configured");
}

// Or the form would be tested while it does all of its work without tiles.
TEST(emulated_form, multiplies_in_tiles_and_leaves_none_behind) {
  if (!emulated_form().supported()) GTEST_SKIP() << "this CPU has no avx512vnni";
  constexpr uint64_t rows = 40;
  const struct {
    uint64_t tokens, k, group;
    uint64_t products;  // of 32 rows: two panels
  } cases[] = {
      {15, 512, 0, 2 * 2 * 8},        // a low tile of them
      {16, 512, 0, 2 * 2 * 8},        // a whole one
      {37, 512, 0, 2 * (4 + 2) * 8},  // two, and a low one
      {63, 512, 0, 2 * (4 + 4) * 8},  // two, one, and a low one
      {32, 2048, 0, 2 * 4 * 32},      // four slices whose sums stay in tiles
      {63, 2048, 0, 2 * 8 * 32},      // whose sums wait in memory
      {32, 2044, 0, 2 * 4 * 31},      // a part of a tile is left
      {32, 256, 64, 2 * 4 * 4},       // one product of each group
      {50, 256, 64, 2 * (4 + 2 + 2) * 4},
      {32, 256, 32, 2 * 4 * 8},  // by half tiles
      {32, 192, 96, 2 * 4 * 6},  // three of them
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.tokens * 10000 + one.k);
    const std::vector<uint8_t> w(rows * 512, 0xff);
    const std::vector<int8_t> q(one.tokens * one.k, 1);
    const std::vector<float> scales(one.tokens * 64, 1.0f);
    std::vector<float> y(one.tokens * rows);
    const float scale = 1;
    cpu::panel_tile tile{};
    tile.room = product_room();
    tile.w = w.data();
    tile.w_stride = 512;
    tile.scales = &scale;
    tile.one_scale = true;
    tile.q = q.data();
    tile.q_stride = tile.k = one.k;
    tile.q_group = one.group;
    tile.q_scales = scales.data();
    tile.q_scales_stride = one.group == 0 ? 1 : one.k / one.group;
    tile.y = y.data();
    tile.y_stride = tile.rows = rows;
    tile.tokens = one.tokens;
    tile.ends = true;
    const uint64_t before = emulated_products();
    emulated_form().panel(tile);
    EXPECT_EQ(emulated_products() - before, one.products);
    EXPECT_FALSE(emulator_is_configured());
    for (const float v : y) ASSERT_EQ(v, 2.0f * static_cast<float>(one.k));
  }
}

}  // namespace
}  // namespace bitnet::parity
