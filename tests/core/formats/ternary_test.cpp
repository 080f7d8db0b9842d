// Ternary types against the golden vectors and against the address formulas of
// docs/reference/weights.md#i2_s, docs/reference/weights.md#tq1_0-and-tq2_0 and what follows there
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "bitnet/bitnet.h"
#include "formats/ternary.hpp"
#include "formats/tl.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"
#include "ternary_tensor.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

// I2_S by the formulas, with rows of any length.
bytes pack_i2s(const std::vector<int>& t, uint64_t k, uint32_t layout, float scale) {
  bytes out(t.size() / 4);
  for (uint64_t i = 0; i < t.size(); ++i) {
    const uint64_t r = i / k;
    const uint64_t c = i % k;
    if (layout == BITNET_I2S_LAYOUT_A)
      set_code(out, i / 128 * 32 + i % 32, 6 - 2 * (i % 128 / 32), t[i]);
    if (layout == BITNET_I2S_LAYOUT_B)
      set_code(out, i / 64 * 16 + i % 16, 6 - 2 * (i % 64 / 16), t[i]);
    if (layout == BITNET_I2S_LAYOUT_C) set_code(out, r / 4 * k + c, 6 - 2 * (r % 4), t[i]);
  }
  tests::put(out, scale);
  out.resize(out.size() + 28, std::byte{0xee});  // writers leave garbage here
  return out;
}

TEST(ternary, golden_vectors_of_all_types_are_one_tensor) {
  const std::vector<int> t = generated(1024);
  const bytes a = golden("i2s_a");
  struct row {
    const char* name;
    uint32_t type;
    uint32_t layout;
    bool verbatim;
  };
  const row rows[] = {{"i2s_a", type::i2_s, BITNET_I2S_LAYOUT_A, true},
                      {"i2s_b", type::i2_s, BITNET_I2S_LAYOUT_B, false},
                      {"i2s_c", type::i2_s, BITNET_I2S_LAYOUT_C, false},
                      {"tq1_0", type::tq1_0, 0, false},
                      {"tq2_0", type::tq2_0, 0, false},
                      {"q2_0_example", type::q2_0, 0, false},
                      {"pq2_0_example", type::pq2_0, 0, false},
                      {"ptq1_0_example", type::ptq1_0, 0, false},
                      {"iq1_bn", type::iq1_bn, 0, false},
                      {"iq2_bn", type::iq2_bn, 0, false},
                      {"iq2_bn_r4", type::iq2_bn_r4, 0, false},
                      {"bitnet32", type::i2_s, 0, false},
                      {"hf_u8", type::hf_packed, 0, false},
                      {"hf_u8", type::hf_packed_inverse, 0, false},
                      {"f16", type::hf_master_f16, 0, false},
                      {"bf16", type::hf_master_bf16, 0, false}};
  for (const row& r : rows) {
    const bytes packed = golden(r.name);
    bytes scale;
    tests::put(scale, r.type == type::hf_packed_inverse ? 4.0F : 0.25F);
    const source from{.type = r.type,
                      .k = 256,
                      .m = 4,
                      .bytes = packed,
                      .i2s_layout = r.layout,
                      .scales = {.type = type::f32, .elements = 1, .bytes = scale}};
    const auto to = understand(from);
    ASSERT_TRUE(to) << r.name << ": " << to.error().message;
    EXPECT_EQ(to->format, BITNET_FORMAT_TERNARY2) << r.name;
    EXPECT_EQ(to->verbatim, r.verbatim) << r.name;
    EXPECT_EQ(to->scale_group, 0U) << r.name;
    const bool master = r.type == type::hf_master_f16 || r.type == type::hf_master_bf16;
    // A master's scale is the mean size: 0.25 times the share of weights that are not 0.
    const float expected = master ? 0.25F * (1024 - 349) / 1024 : 0.25F;
    ASSERT_EQ(to->scales.size(), 1U) << r.name;
    EXPECT_NEAR(to->scales[0], expected, master ? 1e-7 : 0) << r.name;
    EXPECT_FALSE(to->how.empty()) << r.name;
    const bytes form = canonical(from, *to);
    EXPECT_EQ(form, bytes(a.begin(), a.begin() + 256)) << r.name << " in the bytes of layout A";
    for (uint64_t i = 0; i < t.size(); ++i)
      ASSERT_EQ(element(form, 256, i / 256, i % 256), t[i]) << r.name << " element " << i;
  }
}

TEST(ternary, golden_model_file_holds_the_first_values) {
  const bytes file = golden("minimal_gguf");
  const auto data = std::span(file).subspan(128);
  const source from{.type = type::i2_s, .k = 128, .m = 1, .bytes = data};
  const auto to = understand(from);
  ASSERT_TRUE(to) << to.error().message;
  const bytes form = canonical(from, *to);
  const std::vector<int> t = generated(128);
  for (uint64_t c = 0; c < 128; ++c) EXPECT_EQ(element(form, 128, 0, c), t[c]);
}

TEST(ternary, i2s_rows_of_any_length) {
  struct row {
    uint64_t k, m;
    const char* why;
  };
  const row rows[] = {{128, 4, "the plain case"},
                      {384, 8, "several groups"},
                      {192, 4, "groups of 128 straddle rows"},
                      {96, 4, "rows shorter than a group"},
                      {32, 4, "four rows in a group"},
                      {8, 16, "rows of 8"},
                      {1, 128, "rows of one element"},
                      {100, 32, "the head size of the 3B model"}};
  for (const row& r : rows)
    for (const uint32_t layout : {BITNET_I2S_LAYOUT_A, BITNET_I2S_LAYOUT_B, BITNET_I2S_LAYOUT_C}) {
      const std::vector<int> t = generated(r.k * r.m);
      const bytes packed = pack_i2s(t, r.k, layout, 0.5F);
      const source from{
          .type = type::i2_s, .k = r.k, .m = r.m, .bytes = packed, .i2s_layout = layout};
      const auto to = understand(from);
      ASSERT_TRUE(to) << r.why << ": " << to.error().message;
      EXPECT_EQ(to->verbatim, layout == BITNET_I2S_LAYOUT_A && r.k % 128 == 0) << r.why;
      const bytes form = canonical(from, *to);
      ASSERT_EQ(form.size(), (r.k + 127) / 128 * 32 * r.m) << r.why;
      for (uint64_t i = 0; i < t.size(); ++i)
        ASSERT_EQ(element(form, r.k, i / r.k, i % r.k), t[i])
            << r.why << ", layout " << layout << ", " << i;
      for (uint64_t row = 0; row < r.m; ++row)
        for (uint64_t c = r.k; c < (r.k + 127) / 128 * 128; ++c)
          ASSERT_EQ(element(form, r.k, row, c), 0) << r.why << ": padding is code 1";
    }
}

TEST(ternary, pieces_are_the_whole) {
  const std::vector<int> t = generated(192 * 8);
  const bytes packed = pack_i2s(t, 192, BITNET_I2S_LAYOUT_B, 1);
  const source from{
      .type = type::i2_s, .k = 192, .m = 8, .bytes = packed, .i2s_layout = BITNET_I2S_LAYOUT_B};
  const auto to = understand(from);
  ASSERT_TRUE(to);
  const bytes whole = canonical(from, *to);
  for (const uint64_t size : {32U, 96U, 256U}) {
    bytes joined(whole.size());
    for (uint64_t at = 0; at < whole.size(); at += size)
      convert(from, *to, at,
              std::span(joined).subspan(at, std::min<size_t>(size, whole.size() - at)));
    EXPECT_EQ(joined, whole) << "pieces of " << size;
  }
}

TEST(ternary, code_3_is_zero) {
  for (const size_t at : {0U, 7U, 31U}) {
    bytes packed = pack_i2s(std::vector<int>(128, 1), 128, BITNET_I2S_LAYOUT_A, 1);
    packed[at] |= std::byte{0xc0};
    const source from{.type = type::i2_s, .k = 128, .m = 1, .bytes = packed};
    const auto to = understand(from);
    ASSERT_TRUE(to);
    EXPECT_FALSE(to->verbatim) << "code 3 may not reach a plugin";
    const bytes form = canonical(from, *to);
    for (uint64_t c = 0; c < 128; ++c) EXPECT_EQ(element(form, 128, 0, c), c == at ? 0 : 1);
  }
}

bytes tq2(const std::vector<float>& scales, std::byte codes) {
  bytes out;
  for (const float d : scales) {
    out.insert(out.end(), 64, codes);
    tests::put(out, f16_bits(d));
  }
  return out;
}

TEST(ternary, a_scale_of_zero_makes_all_weights_zero) {
  const bytes packed = pack_i2s(std::vector<int>(128, 1), 128, BITNET_I2S_LAYOUT_B, 0);
  const source from{
      .type = type::i2_s, .k = 128, .m = 1, .bytes = packed, .i2s_layout = BITNET_I2S_LAYOUT_B};
  const auto to = understand(from);
  ASSERT_TRUE(to);
  const bytes form = canonical(from, *to);
  for (uint64_t c = 0; c < 128; ++c) ASSERT_EQ(element(form, 128, 0, c), 0) << c;
}

TEST(ternary, tq_scales_are_joined_when_equal) {
  struct row {
    const char* why;
    std::vector<float> scales;
    uint64_t scale_group;
    std::vector<float> expected;
  };
  const row rows[] = {
      {"all equal", {0.5F, 0.5F, 0.5F, 0.5F}, 0, {0.5F}},
      {"equal where not zero", {0, 0.5F, 0, 0.5F}, 0, {0.5F}},
      {"nothing but zeros", {0, 0, 0, 0}, 0, {0}},
      {"one differs", {0.5F, 0.5F, 0.25F, 0.5F}, 256, {0.5F, 0.5F, 0.25F, 0.5F}},
      {"the sign differs", {0.5F, -0.5F, 0.5F, 0.5F}, 256, {0.5F, -0.5F, 0.5F, 0.5F}},
      {"zero among others", {0, 0.5F, 0.25F, 0.5F}, 256, {0, 0.5F, 0.25F, 0.5F}},
  };
  for (const row& r : rows) {
    const bytes packed = tq2(r.scales, std::byte{0xaa});  // all +1
    const source from{.type = type::tq2_0, .k = 512, .m = 2, .bytes = packed};
    const auto to = understand(from);
    ASSERT_TRUE(to) << r.why;
    EXPECT_EQ(to->scale_group, r.scale_group) << r.why;
    EXPECT_EQ(to->scales, r.expected) << r.why;
    const bytes form = canonical(from, *to);
    for (uint64_t i = 0; i < 1024; ++i) {
      const float value = static_cast<float>(element(form, 512, i / 512, i % 512)) *
                          scale_at(*to, 512, i / 512, i % 512);
      ASSERT_EQ(value, r.scales[i / 256]) << r.why << ", element " << i;
    }
  }
}

TEST(ternary, rejects_tensors_whose_content_contradicts_the_header) {
  const std::vector<bytes> keep = {pack_i2s(std::vector<int>(1024, 1), 256, 0, NAN),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, INFINITY),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, -1),
                                   tq2({0.5F, NAN}, std::byte{0xaa}),
                                   tq2({INFINITY, 1}, std::byte{0xaa}),
                                   tq2({1, 1}, std::byte{0xab}),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, 1),
                                   bytes(16384),
                                   bytes(16384, std::byte{0x3c})};
  const auto i2s = [&](size_t which, uint64_t k, uint64_t m, size_t size, uint32_t layout = 0,
                       companion scales = {}) {
    return source{.type = type::i2_s,
                  .k = k,
                  .m = m,
                  .bytes = std::span(keep[which]).first(size),
                  .i2s_layout = layout,
                  .scales = scales};
  };
  const auto tq = [&](size_t which) {
    return source{.type = type::tq2_0, .k = 256, .m = 2, .bytes = keep[which]};
  };
  const rejected rows[] = {
      {"scale NaN", i2s(0, 256, 4, 288), "the I2_S scale is negative or not finite",
       BITNET_BAD_DATA},
      {"scale infinite", i2s(1, 256, 4, 288), "the I2_S scale", BITNET_BAD_DATA},
      {"scale negative", i2s(2, 256, 4, 288), "the I2_S scale", BITNET_BAD_DATA},
      {"block scale NaN", tq(3), "scale of block 1", BITNET_BAD_DATA},
      {"block scale infinite", tq(4), "scale of block 0", BITNET_BAD_DATA},
      {"code 3 in TQ2_0", tq(5), "code 3", BITNET_BAD_DATA},
      {"cut off before the scale", i2s(6, 256, 4, 256), "or cut off where the scale",
       BITNET_UNSUPPORTED},
      {"cut off before the end of the codes", i2s(6, 256, 4, 200),
       "needs 288 bytes, the file has 200", BITNET_BAD_DATA},
      {"a scale per 32, and a code that means -2", i2s(8, 1024, 4, 1280), "BitNet32-F16 holds",
       BITNET_UNSUPPORTED},
      {"a scale per 32, and rows that share one", i2s(8, 48, 32, 480), "straddle rows",
       BITNET_UNSUPPORTED},
      {"too few scales beside", i2s(7, 1024, 4, 1024, 0, {type::f16, 64, keep[7]}), "Split32 needs",
       BITNET_UNSUPPORTED},
      {"the flavour without scales", i2s(7, 1024, 4, 1024), "QK256", BITNET_UNSUPPORTED},
      {"bitnet.cpp's own, taken for QK256", i2s(6, 256, 4, 288, BITNET_I2S_LAYOUT_QK256),
       "it is of another i2s_layout", BITNET_BAD_DATA},
      {"a size that no writer makes", i2s(7, 1024, 4, 4096), "reserves 4096", BITNET_BAD_DATA},
      {"layout C with rows in threes", i2s(7, 128, 3, 128, BITNET_I2S_LAYOUT_C),
       "multiple of 4 rows", BITNET_BAD_DATA},
      {"layout A with half a group", i2s(7, 64, 1, 48), "multiple of 128", BITNET_BAD_DATA},
      {"layout B with half a group", i2s(7, 32, 1, 40, BITNET_I2S_LAYOUT_B), "multiple of 64",
       BITNET_BAD_DATA},
  };
  expect_rejected(rows);
}

TEST(ternary, accepts_the_padding_behind_a_tensor) {
  const bytes packed = pack_i2s(generated(1024), 256, 0, 1);
  bytes padded = packed;
  padded.resize(320);
  EXPECT_TRUE(understand({.type = type::i2_s, .k = 256, .m = 4, .bytes = packed, .alignment = 64}))
      << "at the end of a file nothing follows";
  EXPECT_TRUE(understand({.type = type::i2_s, .k = 256, .m = 4, .bytes = padded, .alignment = 64}));
  EXPECT_FALSE(understand({.type = type::i2_s, .k = 256, .m = 4, .bytes = padded, .alignment = 32}))
      << "BitNet32-F16 has this size";
  bytes tiny = pack_i2s(generated(512), 512, 0, 1);
  EXPECT_TRUE(understand({.type = type::i2_s, .k = 512, .m = 1, .bytes = tiny}))
      << "n = 512: BitNet32-F16 has the same size and loses";
}

TEST(ternary, tiles_have_the_published_addresses) {
  struct row {
    const char* name;
    uint64_t m, k;
    tl1_tile tile;
  };
  const row rows[] = {{"tl1_128x128", 128, 128, {64, 64, 32}},
                      {"tl1_128x256", 128, 256, {128, 64, 64}}};
  for (const row& r : rows) {
    const bytes packed = golden(r.name);
    const std::vector<int> t = generated(r.m * r.k);
    for (uint64_t i = 0; i < t.size(); i += 2) {
      const nibble at = tl1_pair(r.tile, r.k, i / r.k, i % r.k);
      ASSERT_EQ(std::to_integer<int>(packed[at.byte]) >> at.shift & 15, 3 * t[i] + t[i + 1] + 4)
          << r.name << " element " << i;
    }
  }
}

TEST(ternary, triples_have_the_published_addresses) {
  struct row {
    const char* name;
    uint64_t m, k;
    tl2_tile tile;
  };
  const row rows[] = {{"tl2_128x352", 128, 352, {64, 96}}, {"tl2_64x288", 64, 288, {32, 96}}};
  for (const row& r : rows) {
    const bytes packed = golden(r.name);
    const std::vector<int> t = generated(r.m * r.k);
    const tl2_parts parts = tl2_parts_of(r.tile, r.k, r.m);
    EXPECT_EQ(parts.bytes, packed.size()) << r.name;
    const auto field = [&](const nibble& at) {
      return std::to_integer<int>(packed[at.byte]) >> at.shift & 15;
    };
    for (uint64_t row = 0; row < r.m; ++row) {
      const int* x = &t[row * r.k];
      for (uint64_t c = 0; c < parts.k3; c += 3) {
        const int v = 9 * x[c] + 3 * x[c + 1] + x[c + 2];
        ASSERT_EQ(field(tl2_triple(r.tile, parts, row, c)), std::abs(v)) << r.name << " " << c;
        ASSERT_EQ(field(tl2_sign(r.tile, parts, row, c)) & 1, v < 0 ? 1 : 0) << r.name << " " << c;
      }
      for (uint64_t c = parts.k3; c < r.k; c += 2)
        ASSERT_EQ(field(tl2_pair(r.tile, parts, r.k, row, c)), 3 * x[c] + x[c + 1] + 4)
            << r.name << " " << c;
    }
  }
}

TEST(ternary, table_forms_are_rejected_without_known_tiles) {
  const bytes some(4096);
  const auto tl1 = understand({.type = type::tl1, .k = 2560, .m = 6912, .bytes = some});
  ASSERT_FALSE(tl1);
  EXPECT_NE(tl1.error().message.find("tile sizes that are not in the file"), std::string::npos);
  const auto mxfp4 = understand({.type = type::tl2, .k = 4096, .m = 1024, .bytes = some});
  ASSERT_FALSE(mxfp4);
  EXPECT_NE(mxfp4.error().message.find("MXFP4"), std::string::npos);
  const auto cut =
      understand({.type = type::tl2, .k = 4096, .m = 1024, .bytes = some, .file_type = 39});
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("takes 884768 bytes"), std::string::npos)
      << cut.error().message;
}

TEST(ternary, hidden_scales_of_blocks_hold) {
  // BitNet-rs, a scale for 32 elements, some of them 0: what stands there means nothing.
  const std::vector<int> t = generated(1024);
  bytes inlined, split, scales;
  for (size_t b = 0; b < 32; ++b) {
    const float d = b % 3 == 0 ? 0.0F : b % 3 == 1 ? 0.5F : -2.0F;
    for (bytes* out : {&inlined, &split})
      for (size_t i = 0; i < 32; i += 4) {
        int byte = 0;
        for (size_t j = 0; j < 4; ++j) byte |= (t[32 * b + i + j] + 2) << 2 * j;
        out->push_back(static_cast<std::byte>(byte));
      }
    tests::put(inlined, f16_bits(d));
    tests::put(scales, f16_bits(d));
  }
  const source rows[] = {
      {.type = type::i2_s, .k = 256, .m = 4, .bytes = inlined},
      {.type = type::i2_s, .k = 256, .m = 4, .bytes = split, .scales = {type::f16, 32, scales}}};
  for (const source& from : rows) {
    const auto to = understand(from);
    ASSERT_TRUE(to) << to.error().message;
    EXPECT_EQ(to->scale_group, 32U);
    const bytes form = canonical(from, *to);
    for (uint64_t i = 0; i < 1024; ++i) {
      const float d = i / 32 % 3 == 0 ? 0.0F : i / 32 % 3 == 1 ? 0.5F : -2.0F;
      ASSERT_EQ(scale_at(*to, 256, i / 256, i % 256), d);
      ASSERT_EQ(element(form, 256, i / 256, i % 256), d == 0 ? 0 : t[i]) << i;
    }
  }
}

TEST(ternary, qk256_is_read_when_asked_for) {
  bytes packed;
  for (int i = 0; i < 2 * 128; ++i) packed.push_back(static_cast<std::byte>(i * 37));
  const source from{
      .type = type::i2_s, .k = 288, .m = 2, .bytes = packed, .i2s_layout = BITNET_I2S_LAYOUT_QK256};
  const auto to = understand(from);
  ASSERT_TRUE(to) << to.error().message;
  ASSERT_EQ(to->format, BITNET_FORMAT_Q4_0);
  bytes form(to->data_bytes);
  convert(from, *to, 0, form);
  bytes piecewise(form.size());
  for (size_t at = 0; at < form.size(); at += 32)
    convert(from, *to, at,
            std::span(piecewise).subspan(at, std::min<size_t>(32, form.size() - at)));
  EXPECT_EQ(piecewise, form);
  for (uint64_t i = 0; i < 2 * 288; ++i) {
    const uint64_t r = i / 288, c = i % 288;  // rows are padded to 512 columns
    const int code = std::to_integer<int>(packed[r * 128 + c / 4]) >> 2 * (c % 4) & 3;
    const std::byte* block = &form[i / 32 * 18];
    const int both = std::to_integer<int>(block[2 + i % 16]);
    const int value = (i % 32 < 16 ? both & 15 : both >> 4) - 8;
    const int lut[] = {-2, -1, 1, 2};
    ASSERT_EQ(value, lut[code]) << i;
    ASSERT_EQ(std::to_integer<int>(block[1]) << 8 | std::to_integer<int>(block[0]), 0x3c00);
  }
}

TEST(ternary, rows_with_scales_of_their_own) {
  const std::vector<int> t = generated(4 * 192);
  bytes packed;  // IQ2_BN: a row's f32 scale, then byte j of 16 holds j, j + 16, j + 32, j + 48
  const float scales[] = {0.5F, 0, 2, 0.5F};
  for (size_t r = 0; r < 4; ++r) {
    tests::put(packed, scales[r]);
    for (size_t b = 0; b < 192; b += 64)
      for (size_t j = 0; j < 16; ++j) {
        int byte = 0;
        for (size_t l = 0; l < 4; ++l) byte |= (t[192 * r + b + 16 * l + j] + 1) << 2 * l;
        packed.push_back(static_cast<std::byte>(byte));
      }
  }
  const source from{.type = type::iq2_bn, .k = 192, .m = 4, .bytes = packed};
  const auto to = understand(from);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->scale_group, 192U);
  EXPECT_EQ(to->scales, std::vector<float>(scales, scales + 4));
  const bytes form = canonical(from, *to);
  for (uint64_t i = 0; i < t.size(); ++i)
    ASSERT_EQ(element(form, 192, i / 192, i % 192), i / 192 == 1 ? 0 : t[i]) << i;

  bytes wrong = packed;
  wrong[5] |= std::byte{0xc0};
  wrong[5] |= std::byte{0x30};
  EXPECT_FALSE(understand({.type = type::iq2_bn, .k = 192, .m = 4, .bytes = wrong}));
  EXPECT_FALSE(
      understand({.type = type::iq2_bn, .k = 192, .m = 4, .bytes = std::span(packed).first(200)}));
  EXPECT_FALSE(understand({.type = type::iq2_bn, .k = 96, .m = 8, .bytes = packed}));
  EXPECT_FALSE(understand({.type = type::iq2_bn_r4, .k = 192, .m = 3, .bytes = packed}));
}

TEST(ternary, rotated_rows_are_reordered) {
  // qk_permutation of tests/golden/vectors.txt: two heads of size 4
  const uint64_t expected[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (uint64_t row = 0; row < 8; ++row)
    EXPECT_EQ(stored_row({.m = 8, .rotated_heads = 2}, row), expected[row]);
  // Packed, four rows to a byte, and plain: row r holds the value or code that says r.
  bytes packed(8), plain, scale;
  for (uint64_t r = 0; r < 8; ++r)
    for (uint64_t c = 0; c < 4; ++c)
      packed[r % 2 * 4 + c] |= static_cast<std::byte>((r + c) % 3 << 2 * (r / 2));
  for (uint16_t r = 0; r < 8; ++r)
    for (int c = 0; c < 4; ++c) tests::put(plain, r);
  tests::put(scale, 1.0F);
  const source p{.type = type::hf_packed,
                 .k = 4,
                 .m = 8,
                 .bytes = packed,
                 .scales = {type::f32, 1, scale},
                 .rotated_heads = 2};
  const auto ternary = understand(p);
  ASSERT_TRUE(ternary) << ternary.error().message;
  const bytes form = canonical(p, *ternary);
  const source d{.type = type::f16, .k = 4, .m = 8, .bytes = plain, .rotated_heads = 2};
  const auto dense = understand(d);
  ASSERT_TRUE(dense);
  EXPECT_FALSE(dense->verbatim);
  const bytes rows = canonical(d, *dense);
  for (uint64_t r = 0; r < 8; ++r) {
    EXPECT_EQ(std::to_integer<uint64_t>(rows[8 * r]), expected[r]);
    for (uint64_t c = 0; c < 4; ++c)
      EXPECT_EQ(element(form, 4, r, c), static_cast<int>((expected[r] + c) % 3) - 1);
  }
}

TEST(ternary, heads_of_groups_are_reordered) {
  // Three groups of two heads, two rows each, behind one that stays.
  const gguf::head_reordering head_order{.groups = 3, .in_group = 2, .width = 2, .first = 1};
  const uint64_t stored[] = {0, 1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12};
  bytes plain;
  for (uint16_t r = 0; r < 13; ++r)
    for (uint16_t c = 0; c < 4; ++c) tests::put(plain, static_cast<uint16_t>(100 * r + c));
  const source rows{.type = type::f16, .k = 4, .m = 13, .bytes = plain, .head_order = head_order};
  const auto by_rows = understand(rows);
  ASSERT_TRUE(by_rows);
  EXPECT_FALSE(by_rows->verbatim);
  const bytes reordered = canonical(rows, *by_rows);
  for (uint64_t r = 0; r < 13; ++r)
    for (uint64_t c = 0; c < 4; ++c)
      EXPECT_EQ(gguf::load<uint16_t>(std::span(reordered).subspan(2 * (4 * r + c))),
                100 * stored[r] + c);

  // The same of columns, of values that are ternary already.
  bytes sizes;
  for (uint64_t r = 0; r < 8; ++r)
    for (uint64_t c = 0; c < 13; ++c)
      tests::put(sizes, 0.5F * static_cast<float>(static_cast<int>((r + c * c) % 3) - 1));
  source columns{.type = type::f32, .k = 13, .m = 8, .bytes = sizes, .head_order = head_order};
  columns.head_order.columns = true;
  const auto dense = understand(columns);
  ASSERT_TRUE(dense);
  EXPECT_FALSE(dense->verbatim);
  bytes floats(sizes.size());
  for (uint64_t at = 0; at < floats.size(); at += 32)  // pieces that end within a head
    convert(columns, *dense, at,
            std::span(floats).subspan(at, std::min<uint64_t>(32, floats.size() - at)));
  const auto ternary = ternarise(columns, rounding::exact_or_absmean);
  ASSERT_TRUE(ternary) << ternary.error().message;
  EXPECT_EQ(ternary->scales, std::vector<float>{0.5F});
  for (uint64_t r = 0; r < 8; ++r) {
    std::array<uint8_t, 13> codes{};
    ternary->codes(columns, r, 0, codes);
    for (uint64_t c = 0; c < 13; ++c) {
      const int t = static_cast<int>((r + stored[c] * stored[c]) % 3) - 1;
      EXPECT_EQ(codes[c], t + 1);
      EXPECT_EQ(gguf::load<float>(std::span(floats).subspan(4 * (13 * r + c))),
                0.5F * static_cast<float>(t));
    }
  }
}

TEST(ternary, packed_scales_of_the_other_convention_are_noticed) {
  const bytes packed = golden("hf_u8");
  for (const bool inverse : {false, true}) {
    bytes scale;
    tests::put(scale, inverse ? 0.02F : 50.0F);
    const auto to = understand({.type = inverse ? type::hf_packed_inverse : type::hf_packed,
                                .k = 256,
                                .m = 4,
                                .bytes = packed,
                                .scales = {type::f32, 1, scale}});
    ASSERT_FALSE(to);
    EXPECT_NE(to.error().message.find("the other linear_class"), std::string::npos);
  }
}

TEST(ternary, packed_scales_that_multiply_nothing_are_rejected) {
  const bytes packed = golden("hf_u8");
  const struct {
    const char* why;
    float scale;
    bool inverse;
    const char* found;
  } rows[] = {
      {"all products would be 0", 0, false, "weight_scale is 0;"},
      {"its inverse is infinite", 0, true, "weight_scale is 0;"},
      {"the signs of all weights would turn", -0.5F, false, "weight_scale is -0.5;"},
      {"products with it are no numbers", std::numeric_limits<float>::quiet_NaN(), false,
       "weight_scale is nan;"},
      {"products with it are infinite", std::numeric_limits<float>::infinity(), false,
       "weight_scale is inf;"},
      {"its inverse is 0", std::numeric_limits<float>::infinity(), true, "weight_scale is inf;"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    bytes scale;
    tests::put(scale, row.scale);
    const auto to = understand({.type = row.inverse ? type::hf_packed_inverse : type::hf_packed,
                                .k = 256,
                                .m = 4,
                                .bytes = packed,
                                .scales = {type::f32, 1, scale}});
    ASSERT_FALSE(to);
    EXPECT_NE(to.error().message.find(row.found), std::string::npos) << to.error().message;
  }
}

TEST(ternary, a_code_of_3_is_found_wherever_it_is) {
  for (const size_t size : {0U, 1U, 7U, 8U, 1000U, 3U << 18, (5U << 18) + 3}) {
    bytes packed(size, std::byte{0b10100100});
    EXPECT_FALSE(has_code_3(packed)) << size;
    for (const size_t at : {size_t{0}, size / 2, (size_t{1} << 19) - 1, size_t{1} << 19, size - 1})
      for (const uint8_t code : {0b11, 0b1100, 0b110000, 0b11000000}) {
        if (at >= size) continue;
        const std::byte before = packed[at];
        packed[at] = std::byte{code};
        EXPECT_TRUE(has_code_3(packed)) << at << " of " << size;
        packed[at] = before;
      }
  }
}

TEST(ternary, master_weights_round_by_their_mean) {
  bytes packed;  // mean |w| = 0.5: 0.25 is exactly half of it and goes to 0
  for (const float w : {0.25F, -0.25F, 0.2500001F, -1.0F, 1.0F, -0.25F, 0.75F, 0.2499999F})
    tests::put(packed, w);
  const source from{.type = type::f32, .k = 8, .m = 1, .bytes = packed};
  const auto to = ternarise(from, rounding::exact_or_absmean);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->scales, std::vector<float>{0.5F});
  const int expected[] = {0, 0, 1, -1, 1, 0, 1, 0};
  const bytes form = canonical(from, *to);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(element(form, 8, 0, i), expected[i]) << i;
}

}  // namespace
}  // namespace bitnet::formats
