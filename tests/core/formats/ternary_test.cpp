// Ternary types against the golden vectors and against the address formulas of formats.md 2.3, 5.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "../gguf/gguf_builder.hpp"
#include "bitnet/abi/tensor.h"
#include "bitnet/bitnet.h"
#include "formats/reading.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

using tests::bytes;
namespace type = gguf::type;

// The vector generator of formats.md 11.
std::vector<int> generated(size_t n) {
  std::vector<int> out;
  uint32_t x = 1;
  for (size_t i = 0; i < n; ++i) {
    x = 1664525 * x + 1013904223;
    out.push_back(static_cast<int>((x >> 16) % 3) - 1);
  }
  return out;
}

// A "bytes NAME SIZE CRC32 HEX" line of tests/golden/vectors.txt.
bytes golden(const std::string& name) {
  const char* root = std::getenv("BITNET_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + "/tests/golden/vectors.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string kind, label, crc, hex;
    size_t size = 0;
    if (!(fields >> kind >> label) || kind != "bytes" || label != name) continue;
    fields >> size >> crc >> hex;
    bytes out;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      out.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    EXPECT_EQ(out.size(), size);
    return out;
  }
  ADD_FAILURE() << "no golden vector " << name << "; run from ctest, which sets BITNET_SOURCE_DIR";
  return {};
}

bytes canonical(const source& from, const reading& to) {
  if (to.verbatim)
    return {from.bytes.begin(), from.bytes.begin() + static_cast<ptrdiff_t>(to.data_bytes)};
  bytes out(to.data_bytes);
  convert(from, to, 0, out);
  return out;
}

// Element (r, c) of the canonical form by its definition in bitnet/abi/tensor.h.
int element(const bytes& form, uint64_t k, uint64_t r, uint64_t c) {
  const uint64_t row_bytes = (k + 127) / 128 * 32;
  const auto byte = std::to_integer<int>(form[r * row_bytes + c / 128 * 32 + c % 32]);
  return (byte >> (6 - 2 * (c % 128 / 32)) & 3) - 1;
}

float scale_at(const reading& to, uint64_t k, uint64_t r, uint64_t c) {
  return to.scales[to.scale_group == 0 ? 0 : (r * k + c) / to.scale_group];
}

void set_code(bytes& packed, uint64_t byte, uint64_t shift, int t) {
  packed[byte] |= static_cast<std::byte>((t + 1) << shift);
}

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
                      {"tq2_0", type::tq2_0, 0, false}};
  for (const row& r : rows) {
    const bytes packed = golden(r.name);
    const source from{.type = r.type, .k = 256, .m = 4, .bytes = packed, .i2s_layout = r.layout};
    const auto to = understand(from);
    ASSERT_TRUE(to) << r.name << ": " << to.error().message;
    EXPECT_EQ(to->format, BITNET_FORMAT_TERNARY2) << r.name;
    EXPECT_EQ(to->verbatim, r.verbatim) << r.name;
    EXPECT_EQ(to->scale_group, 0U) << r.name;
    EXPECT_EQ(to->scales, std::vector<float>{0.25F}) << r.name;
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

uint16_t f16_bits(float x) {  // of the few numbers below, exactly
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return 0x7c00;
  if (x == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(x), &exponent);
  return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                               static_cast<int>(fraction * 2048 - 1024));
}

bytes tq2(const std::vector<float>& scales, std::byte codes) {
  bytes out;
  for (const float d : scales) {
    out.insert(out.end(), 64, codes);
    tests::put(out, f16_bits(d));
  }
  return out;
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

struct refused {
  const char* why;
  source from;
  const char* says;
  bitnet_status status;
};

TEST(ternary, refuses_what_is_not_what_it_says) {
  const std::vector<bytes> keep = {pack_i2s(std::vector<int>(1024, 1), 256, 0, NAN),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, INFINITY),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, -1),
                                   tq2({0.5F, NAN}, std::byte{0xaa}),
                                   tq2({INFINITY, 1}, std::byte{0xaa}),
                                   tq2({1, 1}, std::byte{0xab}),
                                   pack_i2s(std::vector<int>(1024, 1), 256, 0, 1),
                                   bytes(16384)};
  const auto i2s = [&](size_t which, uint64_t k, uint64_t m, size_t size, uint32_t layout = 0,
                       bool sibling = false) {
    return source{.type = type::i2_s,
                  .k = k,
                  .m = m,
                  .bytes = std::span(keep[which]).first(size),
                  .i2s_layout = layout,
                  .scale_sibling = sibling};
  };
  const auto tq = [&](size_t which) {
    return source{.type = type::tq2_0, .k = 256, .m = 2, .bytes = keep[which]};
  };
  const refused rows[] = {
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
      {"the flavour with a scale per 32", i2s(7, 1024, 4, 1280), "BitNet32-F16",
       BITNET_UNSUPPORTED},
      {"the flavour with scales beside", i2s(7, 1024, 4, 1024, 0, true), "Split32",
       BITNET_UNSUPPORTED},
      {"the flavour without scales", i2s(7, 1024, 4, 1024), "QK256", BITNET_UNSUPPORTED},
      {"a size that nobody writes", i2s(7, 1024, 4, 4096), "reserves 4096", BITNET_BAD_DATA},
      {"layout C with rows in threes", i2s(7, 128, 3, 128, BITNET_I2S_LAYOUT_C),
       "multiple of 4 rows", BITNET_BAD_DATA},
      {"layout A with half a group", i2s(7, 64, 1, 48), "multiple of 128", BITNET_BAD_DATA},
      {"layout B with half a group", i2s(7, 32, 1, 40, BITNET_I2S_LAYOUT_B), "multiple of 64",
       BITNET_BAD_DATA},
  };
  for (const refused& r : rows) {
    const auto to = understand(r.from);
    ASSERT_FALSE(to) << r.why;
    EXPECT_NE(to.error().message.find(r.says), std::string::npos)
        << r.why << ": " << to.error().message;
    EXPECT_EQ(to.error().status, r.status) << r.why << ": " << to.error().message;
  }
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

}  // namespace
}  // namespace bitnet::formats
