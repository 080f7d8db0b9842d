// Written bytes against the golden vectors, and against what the readers make of them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/floats.hpp"
#include "bitnet/bitnet.h"
#include "formats/dense_blocks.hpp"
#include "formats/reading.hpp"
#include "formats/ternary.hpp"
#include "formats/writing.hpp"
#include "gguf/types.hpp"
#include "ternary_tensor.hpp"

namespace bitnet::formats {
namespace {

using tests::bytes;
namespace type = gguf::type;

ternary_weights weights(const std::vector<int>& t, uint64_t k, std::vector<float> scales,
                        uint64_t scale_group = 0) {
  return {.k = k,
          .m = t.size() / k,
          .codes =
              [&t, k](uint64_t row, uint64_t column, std::span<uint8_t> out) {
                for (size_t j = 0; j < out.size(); ++j)
                  out[j] = static_cast<uint8_t>(t[row * k + column + j] + 1);
              },
          .scale_group = scale_group,
          .scales = std::move(scales)};
}

bytes written(const ternary_target& to, const ternary_weights& from) {
  const auto size = to.bytes(from);
  if (!size) {
    ADD_FAILURE() << to.name << ": " << size.error().message;
    return {};
  }
  bytes out(*size);
  to.write(from, out);
  return out;
}

TEST(writing, ternary_forms_are_the_golden_vectors) {
  const std::vector<int> t = generated(1024);
  for (const auto& [target, vector] : {std::pair{"i2_s", "i2s_a"},
                                       {"tq1_0", "tq1_0"},
                                       {"tq2_0", "tq2_0"},
                                       {"iq2_bn", "iq2_bn"},
                                       {"q2_0", "q2_0_example"},
                                       {"pq2_0", "pq2_0_example"},
                                       {"ptq1_0", "ptq1_0_example"}})
    EXPECT_EQ(written(*find_ternary_target(target), weights(t, 256, {0.25F})), golden(vector))
        << target;
}

TEST(writing, types_with_groups_are_the_golden_vectors) {
  for (const auto& [target, vector] : {std::pair{"q1_0", "q1_0"},
                                       {"q2_0", "q2_0_64"},
                                       {"pq2_0", "q2_0_128"},
                                       {"ptq1_0", "ptq1_0"}}) {
    const std::vector<int> t = golden_ints(std::string(vector) + "_ternary");
    for (const auto& [scales, group] :
         {std::pair{std::vector<float>{0.5F}, uint64_t{0}}, {std::vector<float>(8, 0.5F), 32}})
      EXPECT_EQ(written(*find_ternary_target(target), weights(t, 256, scales, group)),
                golden(vector))
          << target << ", scales for " << group;
  }
}

// Groups of the form: `scales` for so many elements each, as every element has it after reading.
TEST(writing, scales_of_groups_are_kept) {
  std::vector<int> t = generated(1024);
  std::fill(t.begin() + 256, t.begin() + 384, 0);
  std::vector<int> signs = t;
  for (int& v : signs) v = v == 0 ? 1 : v;
  std::fill(signs.begin() + 256, signs.begin() + 384, 0);
  struct row {
    const char* why;
    const char* target;
    uint64_t group;
    std::vector<float> scales;
  };
  const row rows[] = {
      {"its own groups", "q2_0", 64, {1, 2, 3, 4, 0, 0, 7, 8, 1, 2, 3, 4, 5, 6, 7, -8}},
      {"its own groups", "pq2_0", 128, {1, -2, 0, 4, 5, 6, 7, 8}},
      {"its own groups", "ptq1_0", 128, {1, -2, 0, 4, 5, 6, 7, 8}},
      {"its own groups", "q1_0", 128, {1, -2, 0, 4, 5, 6, 7, 8}},
      {"larger groups are repeated", "q2_0", 256, {1, 2, 3, 4}},
      {"larger groups are repeated", "pq2_0", 512, {1, 2}},
      {"rows", "ptq1_0", 512, {1, 2}},
      {"smaller ones that agree are joined", "tq2_0", 128, {1, 0, 0, 3, 5, 5, 7, 7}},
      {"smaller ones that agree are joined",
       "tq1_0",
       64,
       {1, 1, 1, 1, 0, 0, 7, 7, 2, 2, 2, 2, 3, 3, 3, 3}},
      {"smaller ones that agree are joined", "iq2_bn", 256, {1, 1, 3, 3}},
  };
  for (const row& r : rows) {
    const ternary_target& to = *find_ternary_target(r.target);
    const std::vector<int>& values = std::string_view(r.target) == "q1_0" ? signs : t;
    std::vector<int> kept = values;  // what stands under a scale of 0 is 0
    for (size_t i = 0; i < kept.size(); ++i)
      if (r.scales[i / r.group] == 0) kept[i] = 0;
    const bytes packed = written(to, weights(kept, 512, r.scales, r.group));
    const source again{
        .type = to.type, .k = 512, .m = 2, .bytes = packed, .q2 = {.layout = q2_layout::groups_64}};
    const auto reading = understand(again);
    ASSERT_TRUE(reading) << r.target << ": " << reading.error().message;
    std::array<uint8_t, 128> codes{};
    for (uint64_t i = 0; i < 1024; i += 128) {
      read_codes(again, *reading, i / 512, i % 512, codes);
      for (uint64_t j = 0; j < 128; ++j) {
        const float d =
            reading->scales[reading->scale_group == 0 ? 0 : (i + j) / reading->scale_group];
        ASSERT_EQ((codes[j] - 1) * d, static_cast<float>(kept[i + j]) * r.scales[(i + j) / r.group])
            << r.why << ", " << r.target << " element " << i + j;
      }
    }
  }
}

TEST(writing, floats_become_ternary_by_groups) {
  // Of 128: 64 times 0.3, 32 times -0.1, 32 zeros; mean size 0.175. Then one that is ternary.
  std::vector<float> w;
  for (int i = 0; i < 128; ++i) w.push_back(i < 64 ? 0.3F : i < 96 ? -0.1F : 0);
  for (int i = 0; i < 128; ++i) w.push_back(i % 3 == 0 ? 0 : i % 3 == 1 ? 0.375F : -0.375F);
  for (int i = 0; i < 128; ++i) w.push_back(i < 64 ? 1e-9F : -2e-9F);  // nothing in 16 bits
  bytes f32;
  for (const float x : w) tests::put(f32, x);
  const source from{.type = type::f32, .k = 384, .m = 1, .bytes = f32};
  auto to = ternarise_groups(from, 128);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->scale_group, 128U);
  EXPECT_EQ(to->how, "floating-point weights, made ternary by the mean size of each 128");
  EXPECT_EQ(to->scales, (std::vector<float>{from_f16(to_f16(0.175F)), 0.375F, 0}));
  std::vector<uint8_t> codes(384);
  for (uint64_t c = 0; c < 384; c += 128)
    read_codes(from, *to, 0, c, std::span(codes).subspan(c, 128));
  for (uint64_t i = 0; i < 384; ++i)
    ASSERT_EQ(codes[i] - 1, i < 64    ? 1
                            : i < 96  ? -1
                            : i < 128 ? 0
                            : i < 256 ? (w[i] > 0) - (w[i] < 0)
                                      : 0)
        << i;
  to = ternarise_groups(from, 64);
  ASSERT_TRUE(to);
  EXPECT_EQ(to->scales[0], 0.3F) << "ternary already";
  EXPECT_EQ(to->scales[1], 0.1F) << "ternary already";
  bytes one;
  for (int i = 0; i < 128; ++i) tests::put(one, i % 2 == 0 ? 1e-6F : 0.0F);
  to = ternarise_groups({.type = type::f32, .k = 128, .m = 1, .bytes = one}, 64);
  ASSERT_TRUE(to);
  EXPECT_EQ(to->scales, std::vector<float>{1e-6F}) << "all of one size: that is the scale";
  EXPECT_FALSE(ternarise_groups({.type = type::f32, .k = 96, .m = 4, .bytes = f32}, 64));
  tests::put(one, INFINITY);
  EXPECT_FALSE(ternarise_groups(
      {.type = type::f32, .k = 64, .m = 1, .bytes = std::span(one).last(256)}, 64));
}

TEST(writing, every_ternary_form_reads_back) {
  std::vector<int> any = generated(uint64_t{1024} * 4096);
  std::vector<int> signs = any;
  for (int& v : signs) v = v == 0 ? -1 : v;
  for (const ternary_target& to : ternary_targets()) {
    const std::vector<int>& t = to.type == type::q1_0 ? signs : any;
    const ternary_weights from = weights(t, 4096, {0.25F});
    const bytes packed = written(to, from);
    const source again{
        .type = to.type, .k = 4096, .m = 1024, .bytes = packed, .file_type = to.file_type};
    const auto reading = understand(again);
    ASSERT_TRUE(reading) << to.name << ": " << reading.error().message;
    EXPECT_EQ(reading->scales, std::vector<float>{0.25F}) << to.name;
    std::array<uint8_t, 128> codes{};
    for (uint64_t i = 0; i < t.size(); i += 128) {
      read_codes(again, *reading, i / 4096, i % 4096, codes);
      for (uint64_t j = 0; j < 128; ++j) ASSERT_EQ(codes[j] - 1, t[i + j]) << to.name << i + j;
    }
  }
}

TEST(writing, table_forms_of_pairs_only_and_triples_only) {
  for (const auto& [name, m, k] :
       {std::tuple{"tl1", 3200, 8640}, {"tl2", 3200, 8640}, {"tl2", 1536, 1536}}) {
    const auto n = static_cast<uint64_t>(m) * static_cast<uint64_t>(k);
    const std::vector<int> t = generated(n);
    const ternary_target& to = *find_ternary_target(name);
    const bytes packed = written(to, weights(t, static_cast<uint64_t>(k), {0.25F}));
    const source again{.type = to.type,
                       .k = static_cast<uint64_t>(k),
                       .m = static_cast<uint64_t>(m),
                       .bytes = packed,
                       .file_type = to.file_type};
    const auto reading = understand(again);
    ASSERT_TRUE(reading) << name << ": " << reading.error().message;
    std::array<uint8_t, 128> codes{};
    for (uint64_t r = 0; r < again.m; r += 31)
      for (uint64_t c = 0; c < again.k; c += 128) {
        const auto out = std::span(codes).first(std::min<uint64_t>(128, again.k - c));
        read_codes(again, *reading, r, c, out);
        for (uint64_t j = 0; j < out.size(); ++j)
          ASSERT_EQ(out[j] - 1, t[r * again.k + c + j]) << name << " " << r << " " << c + j;
      }
  }
}

TEST(writing, rejects_what_a_form_cannot_hold) {
  const std::vector<int> t = generated(1024);
  std::vector<float> scales_of_64(16, 1);
  scales_of_64[11] = 2;
  std::vector<float> scales_of_32(32, 1);
  scales_of_32[31] = 2;
  struct row {
    const char* why;
    const char* target;
    ternary_weights from;
    const char* says;
  };
  const row rows[] = {
      {"two scales", "i2_s", weights(t, 512, {1, 2}, 512), "choose iq2_bn"},
      {"a scale per block", "i2_s", weights(t, 512, {1, 2, 3, 4}, 256), "choose tq2_0"},
      {"a scale per block", "iq2_bn", weights(t, 512, {1, 2, 3, 4}, 256), "choose tq2_0"},
      {"rows of 64", "tq1_0", weights(t, 64, {1}), "multiple of 256"},
      {"rows of 32", "iq2_bn", weights(t, 32, {1}), "multiple of 64"},
      {"rows of 96", "q2_0", weights(t, 96, {1}), "multiple of 64"},
      {"rows of 64", "ptq1_0", weights(t, 64, {1}), "multiple of 128"},
      {"scales that differ in a block", "pq2_0", weights(t, 256, scales_of_64, 64),
       "differ within 128 elements of row 2 from column 128; choose q2_0"},
      {"scales that differ in a block", "tq2_0", weights(t, 256, scales_of_64, 64), "choose q2_0"},
      {"scales that differ in a block", "q2_0", weights(t, 256, scales_of_32, 32), "choose f16"},
      {"scales for 128", "i2_s", weights(t, 512, {1, 2, 3, 4, 5, 6, 7, 8}, 128), "choose pq2_0"},
      {"a scale below zero", "i2_s", weights(t, 512, {-1}), "choose iq2_bn"},
      {"zeros among others", "q1_0", weights(t, 256, {1}), "row 0 has some from column 0"},
      {"scales that are too large", "pq2_0", weights(t, 256, {1e6F}), "16 bits"},
      {"scales that are too small", "tq2_0", weights(t, 256, {1e-7F}), "16 bits"},
      {"scales that are too large", "tq2_0", weights(t, 256, {1e6F}), "16 bits"},
      {"a shape without tiles", "tl1", weights(t, 256, {1}), "tile sizes"},
      {"a shape without tiles", "tl2", weights(t, 256, {1}), "tile sizes"},
  };
  for (const row& r : rows) {
    const auto size = find_ternary_target(r.target)->bytes(r.from);
    ASSERT_FALSE(size) << r.why;
    EXPECT_NE(size.error().message.find(r.says), std::string::npos) << size.error().message;
  }
}

TEST(writing, dense_types_are_the_golden_vectors) {
  const std::vector<int> t = generated(1024);
  std::vector<float> w;
  for (const int v : t) w.push_back(0.25F * static_cast<float>(v));
  for (const char* name : {"q8_0", "q4_0", "f16", "bf16"}) {
    const bytes expected = golden(name);
    bytes out(expected.size());
    find_dense_target(name)->write(w, out);
    EXPECT_EQ(out, expected) << name;
    std::vector<float> back(w.size());
    read_dense(find_dense_target(name)->type, out, 0, back);
    for (size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(back[i], w[i], 0.25 / (name == std::string("q4_0") ? 8 : 127)) << name << i;
  }
}

TEST(writing, halves_round_to_even) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = from_f16(static_cast<uint16_t>(bits));
    const float high = bits + 1 == 0x7c00 ? 65536.0F : from_f16(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: one more bit
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(to_f16(low), bits);
    ASSERT_EQ(to_f16(middle), even) << bits;
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0F)), bits) << bits;
    ASSERT_EQ(to_f16(std::nextafter(middle, INFINITY)), bits + 1) << bits;
    ASSERT_EQ(to_f16(-middle), 0x8000U | even) << bits;
  }
  EXPECT_EQ(to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(to_f16(1e30F), 0x7c00);
  EXPECT_TRUE(std::isnan(from_f16(to_f16(NAN))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(NAN))));
  EXPECT_EQ(to_bf16(1.00390625F), 0x3f80) << "half goes to even";
  EXPECT_EQ(to_bf16(1.01171875F), 0x3f82);
}

TEST(writing, q6_k_is_close) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> w(256 * 64);
  for (float& x : w) x = normal(random);
  std::fill(w.begin() + 256, w.begin() + 512, 0.0F);  // a block of zeros
  w[512] = 1;                                         // an outlier
  bytes out(w.size() / 256 * 210);
  write_q6_k(w, out);
  std::vector<float> back(w.size());
  read_dense(type::q6_k, out, 0, back);
  for (size_t b = 0; b < w.size(); b += 16) {
    float most = 0;
    for (size_t i = b; i < b + 16; ++i) most = std::max(most, std::fabs(w[i]));
    // A step is most / 32; the scale of scales adds half of a 256th of the block's largest.
    float block_most = 0;
    for (size_t i = b / 256 * 256; i < b / 256 * 256 + 256; ++i)
      block_most = std::max(block_most, std::fabs(w[i]));
    for (size_t i = b; i < b + 16; ++i)
      ASSERT_LE(std::fabs(back[i] - w[i]), most / 24 + block_most / 200) << i;
  }
}

}  // namespace
}  // namespace bitnet::formats
