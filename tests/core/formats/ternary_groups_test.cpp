// Ternary types whose groups have scales of their own, and how layouts of type 42 are recognised
// (docs/reference/weights.md).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "bitnet/bitnet.h"
#include "formats/ternary.hpp"
#include "gguf/types.hpp"
#include "ternary_tensor.hpp"

namespace bitnet::formats {
namespace {

namespace type = gguf::type;

bytes repeated(const bytes& once, uint64_t times) {
  bytes out;
  for (uint64_t i = 0; i < times; ++i)
    for (const std::byte b : once) out.push_back(b);
  return out;
}

TEST(ternary_groups, one_and_two_bit_blocks) {
  const std::vector<int> t = generated(1024);
  bytes q1, q2;
  for (size_t i = 0; i < 1024; ++i) {
    if (i % 128 == 0) tests::put(q1, f16_bits(i == 512 ? 0.0F : 0.5F));
    if (i % 8 == 0) q1.push_back(std::byte{0});
    q1.back() |= static_cast<std::byte>((t[i] > 0 ? 1 : 0) << i % 8);
    if (i % 64 == 0) tests::put(q2, f16_bits(i == 0 ? 4.0F : 0.5F));
    if (i % 4 == 0) q2.push_back(std::byte{0});
    q2.back() |= static_cast<std::byte>((t[i] + 1) << 2 * (i % 4));
  }
  const source one{.type = type::q1_0, .k = 256, .m = 4, .bytes = q1};
  auto to = understand(one);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->scales, std::vector<float>{0.5F});
  bytes form = canonical(one, *to);
  for (uint64_t i = 0; i < 1024; ++i)
    ASSERT_EQ(element(form, 256, i / 256, i % 256), i / 128 == 4 ? 0 : t[i] > 0 ? 1 : -1) << i;

  const source two{.type = type::q2_0, .k = 256, .m = 4, .bytes = q2};
  to = understand(two);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->scale_group, 64U);
  form = canonical(two, *to);
  for (uint64_t i = 0; i < 1024; ++i) ASSERT_EQ(element(form, 256, i / 256, i % 256), t[i]) << i;
}

TEST(ternary_groups, golden_vectors_of_types_with_groups) {
  struct row {
    const char* name;
    uint32_t type;
    q2_layout layout;
    const char* how;
  };
  const row rows[] = {
      {"q1_0", type::q1_0, {}, "Q1_0, by its type"},
      {"q2_0_64", type::q2_0, q2_layout::groups_64, "Q2_0 in groups of 64, the scale first"},
      {"q2_0_128", type::q2_0, q2_layout::groups_128, "Q2_0 in groups of 128, the scale first"},
      {"q2_0_128", type::pq2_0, {}, "PQ2_0, by its type"},
      {"q2_0_128_last", type::q2_0, q2_layout::groups_128_scale_last, "128, the scale last"},
      {"ptq1_0", type::ptq1_0, {}, "PTQ1_0, by its type"},
      {"stq1_0", type::q2_0, q2_layout::stq1_0, "STQ1_0 under the type of Q2_0"},
      {"stq1_0", type::stq1_0, {}, "STQ1_0, by its type"},
  };
  for (const row& r : rows)
    for (const uint64_t rows_of_it : {1U, 3U}) {  // the same again in each row
      const bytes packed = repeated(golden(r.name), rows_of_it);
      const source from{
          .type = r.type, .k = 256, .m = rows_of_it, .bytes = packed, .q2 = {.layout = r.layout}};
      const auto to = understand(from);
      ASSERT_TRUE(to) << r.name << ": " << to.error().message;
      EXPECT_NE(to->how.find(r.how), std::string::npos) << to->how;
      EXPECT_EQ(to->scales, std::vector<float>{0.5F}) << r.name;
      const bytes form = canonical(from, *to);
      const std::vector<int> t = golden_ints(std::string(r.name) + "_ternary");
      for (uint64_t i = 0; i < 256 * rows_of_it; ++i)
        ASSERT_EQ(element(form, 256, i / 256, i % 256), t[i % 256]) << r.name << " element " << i;
    }
}

// Blocks of 2-bit codes by the definition of the page, a scale of its own for each.
bytes pack_two_bits(const std::vector<int>& t, uint64_t elements, bool scale_last,
                    const std::vector<float>& scales) {
  bytes out;
  for (uint64_t b = 0; b < t.size() / elements; ++b) {
    bytes codes(elements / 4);
    for (uint64_t j = 0; j < elements; ++j)
      set_code(codes, j / 4, 2 * (j % 4), t[b * elements + j]);
    if (!scale_last) tests::put(out, f16_bits(scales[b % scales.size()]));
    out.insert(out.end(), codes.begin(), codes.end());
    if (scale_last) tests::put(out, f16_bits(scales[b % scales.size()]));
  }
  return out;
}

bytes padded(bytes content, size_t alignment) {
  content.resize((content.size() + alignment - 1) / alignment * alignment);
  return content;
}

// Tensors of type 42 in every layout.
struct type_42 {
  std::vector<int> t = generated(uint64_t{512} * 8), few = generated(1024);
  bytes g64 = pack_two_bits(t, 64, false, {0.5F, 0.375F});
  bytes first = pack_two_bits(t, 128, false, {0.5F, 0.375F});
  bytes last = pack_two_bits(t, 128, true, {0.5F, 0.375F});
  bytes sherry = repeated(golden("stq1_0"), 16);
  bytes few64 = padded(pack_two_bits(few, 64, false, {0.5F}), 32);
  bytes few_first = padded(pack_two_bits(few, 128, false, {0.5F}), 32);
  bytes negative = pack_two_bits(t, 128, false, {-0.5F});
  bytes zeros = bytes(544 * 2), zeros_few = bytes(288);
};

q2_tensor of(const bytes& content, const char* name = "a", uint64_t k = 512, uint64_t m = 8) {
  return {.name = name, .k = k, .elements = k * m, .bytes = content};
}

q2_tensor small(const bytes& content) {
  return of(content, "small", 256, 4);
}

TEST(ternary_groups, type_42_is_recognised_by_what_a_file_has) {
  const type_42 f;
  const struct {
    const char* why;
    std::vector<q2_tensor> all;
    bool key;
    q2_layout layout;
    q2_evidence by;
  } rows[] = {
      {"groups of 64", {of(f.g64)}, false, q2_layout::groups_64, q2_evidence::size},
      {"groups of 64 in a file that was converted",
       {of(f.g64)},
       true,
       q2_layout::groups_64,
       q2_evidence::size},
      {"STQ1_0", {of(f.sherry)}, false, q2_layout::stq1_0, q2_evidence::size},
      {"scale first", {of(f.first)}, false, q2_layout::groups_128, q2_evidence::blocks},
      {"scale last", {of(f.last)}, false, q2_layout::groups_128_scale_last, q2_evidence::blocks},
      {"a key", {of(f.last)}, true, q2_layout::groups_128_scale_last, q2_evidence::key},
      {"a key beside blocks of an unrecognisable layout",
       {of(f.zeros)},
       true,
       q2_layout::groups_128_scale_last,
       q2_evidence::key},
      {"a key beside blocks that are as wrong either way",
       {of(f.negative)},
       true,
       q2_layout::groups_128_scale_last,
       q2_evidence::key},
      {"a small one, recognised by a large one",
       {small(f.zeros_few), of(f.g64)},
       false,
       q2_layout::groups_64,
       q2_evidence::size},
      {"small, of 64", {small(f.few64)}, false, q2_layout::groups_64, q2_evidence::blocks},
      {"small, of 128", {small(f.few_first)}, false, q2_layout::groups_128, q2_evidence::blocks},
  };
  for (const auto& r : rows) {
    const auto layout = find_q2_layout(r.all, r.key);
    ASSERT_TRUE(layout) << r.why << ": " << layout.error().message;
    EXPECT_EQ(layout->layout, r.layout) << r.why;
    EXPECT_EQ(layout->by, r.by) << r.why;
  }
}

TEST(ternary_groups, type_42_of_an_unknown_layout_is_rejected) {
  const type_42 f;
  const struct {
    const char* why;
    std::vector<q2_tensor> all;
    bool key;
    const char* says;
  } rows[] = {
      {"a key that the blocks contradict",
       {of(f.first)},
       true,
       "a key says that the scales of type 42 stand last (oxibonsai.quant_format, or"},
      {"zeros", {of(f.zeros)}, false, "neither sizes nor blocks show"},
      {"small zeros", {small(f.zeros_few)}, false, "neither sizes nor blocks show"},
      {"no scale is right either way", {of(f.negative)}, false, "say so by the text TQ2_0_G128"},
      {"two layouts",
       {of(f.g64, "b"), of(f.first, "c")},
       false,
       "tensor 'c' fits Q2_0 in groups of 128, the scale first or"},
      {"no layout",
       {of(f.g64), of(f.zeros_few, "b")},
       false,
       "tensor 'b' is of type 42 and has rows of 512 elements, 4096 in all, in 288 bytes; expected "
       "1152 (Q2_0 in groups of 64), 1088 (in groups of 128) or 672 (STQ1_0), up to padding"},
      {"rows of no whole group", {of(f.g64, "b", 32, 128)}, false, "rows of 32 elements"},
  };
  for (const auto& r : rows) {
    const auto layout = find_q2_layout(r.all, r.key);
    ASSERT_FALSE(layout) << r.why;
    EXPECT_EQ(layout.error().status, BITNET_UNSUPPORTED) << r.why;
    EXPECT_NE(layout.error().message.find(r.says), std::string::npos) << layout.error().message;
  }
}

// One block that only one reading breaks counts against it only where the other is seldom right.
TEST(ternary_groups, type_42_may_have_a_block_that_is_broken) {
  std::vector<int> many = generated(uint64_t{512} * 256);
  many[7] = 2;
  const bytes one_in_many = pack_two_bits(many, 128, false, {0.5F, 0.375F});
  const q2_tensor large = of(one_in_many, "large", 512, 256);
  const auto layout = find_q2_layout({&large, 1}, false);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->layout, q2_layout::groups_128);
  std::vector<int> with_two = generated(uint64_t{512} * 8);
  with_two[7] = 2;
  const bytes mostly = pack_two_bits(with_two, 128, false, {0.5F, 0.375F});
  const q2_tensor little = of(mostly);
  EXPECT_FALSE(find_q2_layout({&little, 1}, false)) << "too few blocks to be sure";
}

TEST(ternary_groups, type_42_says_how_it_was_recognised) {
  const std::vector<int> t = generated(uint64_t{512} * 8);
  const bytes packed = pack_two_bits(t, 128, true, {0.5F, 0.375F, -2.0F, 0.0F});
  const source from{.type = type::q2_0,
                    .k = 512,
                    .m = 8,
                    .bytes = packed,
                    .q2 = {q2_layout::groups_128_scale_last, q2_evidence::key}};
  const auto to = understand(from);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->how, "Q2_0 in groups of 128, the scale last, recognised by a key");
  EXPECT_EQ(to->scale_group, 128U);
  const bytes form = canonical(from, *to);
  const float scales[] = {0.5F, 0.375F, -2.0F, 0.0F};
  for (uint64_t i = 0; i < t.size(); ++i) {
    const float d = scales[i / 128 % 4];
    ASSERT_EQ(scale_at(*to, 512, i / 512, i % 512), d) << i;
    ASSERT_EQ(element(form, 512, i / 512, i % 512), d == 0 ? 0 : t[i]) << i;
  }
}

TEST(ternary_groups, code_3_of_two_bits_is_plus_two_and_goes_on_as_q8_0) {
  std::vector<int> t = generated(1024);
  t[0] = t[130] = t[1023] = 2;
  const std::vector<float> scales = {0.5F, -0.25F, 0.375F};
  for (const auto& [type, layout, elements] :
       {std::tuple{type::q2_0, q2_layout::groups_64, uint64_t{64}},
        {type::q2_0, q2_layout::groups_128, 128},
        {type::pq2_0, q2_layout::unknown, 128}}) {
    const bytes packed = pack_two_bits(t, elements, false, scales);
    const source from{.type = type, .k = 256, .m = 4, .bytes = packed, .q2 = {.layout = layout}};
    const auto to = understand(from);
    ASSERT_TRUE(to) << to.error().message;
    EXPECT_NE(to->how.find("holds the code 3, which is +2"), std::string::npos) << to->how;
    ASSERT_EQ(to->format, BITNET_FORMAT_Q8_0);
    ASSERT_EQ(to->data_bytes, 1024U / 32 * 34);
    bytes form(to->data_bytes);
    convert(from, *to, 0, form);
    for (uint64_t i = 0; i < t.size(); ++i) {
      const std::byte* block = &form[i / 32 * 34];
      const auto d = static_cast<uint16_t>(std::to_integer<int>(block[1]) << 8 |
                                           std::to_integer<int>(block[0]));
      ASSERT_EQ(d, f16_bits(scales[i / elements % 3])) << i;
      ASSERT_EQ(static_cast<int8_t>(block[2 + i % 32]), t[i]) << i;
    }
    bytes piecewise(form.size());
    for (size_t at = 0; at < form.size(); at += 32)
      convert(from, *to, at,
              std::span(piecewise).subspan(at, std::min<size_t>(32, form.size() - at)));
    EXPECT_EQ(piecewise, form);
  }
  const bytes packed = pack_two_bits(t, 128, true, {0.5F});
  const source last{.type = type::q2_0,
                    .k = 256,
                    .m = 4,
                    .bytes = packed,
                    .q2 = {.layout = q2_layout::groups_128_scale_last}};
  const auto to = understand(last);
  ASSERT_TRUE(to) << to.error().message;
  ASSERT_EQ(to->format, BITNET_FORMAT_TERNARY2);
  const bytes form = canonical(last, *to);
  for (uint64_t i = 0; i < t.size(); ++i)
    ASSERT_EQ(element(form, 256, i / 256, i % 256), t[i] == 2 ? 0 : t[i])
        << "their only writer means zero by it";
  const bytes hidden = pack_two_bits(t, 128, false, {0.0F});
  const auto none = understand({.type = type::pq2_0, .k = 256, .m = 4, .bytes = hidden});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->format, BITNET_FORMAT_TERNARY2) << "two times nothing is nothing";
}

TEST(ternary_groups, types_with_groups_reject_what_they_cannot_be) {
  const std::vector<int> t = generated(1024);
  const bytes right = pack_two_bits(t, 128, false, {0.5F});
  const bytes bad = pack_two_bits(t, 128, false, {0.5F, NAN});
  bytes ptq = padded(golden("ptq1_0"), 32);
  bytes bad_ptq = golden("ptq1_0");
  bad_ptq[27] = std::byte{0x7c};
  bytes bad_stq = golden("stq1_0");
  bad_stq[41] = std::byte{0x7e};
  const std::span<const std::byte> short_by_one = std::span(right).first(right.size() - 1);
  const bytes ik(4 * (4 + 256 / 4) + 64);
  const rejected rows[] = {
      {"NaN",
       {.type = type::pq2_0, .k = 256, .m = 4, .bytes = bad},
       "scale of block 1",
       BITNET_BAD_DATA},
      {"infinity",
       {.type = type::ptq1_0, .k = 256, .m = 1, .bytes = bad_ptq},
       "scale of block 0",
       BITNET_BAD_DATA},
      {"NaN",
       {.type = type::stq1_0, .k = 256, .m = 1, .bytes = bad_stq},
       "scale of block 0",
       BITNET_BAD_DATA},
      {"cut off",
       {.type = type::pq2_0, .k = 256, .m = 4, .bytes = short_by_one},
       "PQ2_0 of 4 rows and 256 columns takes 272 bytes, but the file reserves 271",
       BITNET_BAD_DATA},
      {"another type under its id",
       {.type = type::pq2_0, .k = 256, .m = 4, .bytes = ik},
       "as no known writer does",
       BITNET_BAD_DATA},
      {"another type under its id",
       {.type = type::ptq1_0, .k = 256, .m = 4, .bytes = ik},
       "as no known writer does",
       BITNET_BAD_DATA},
      {"rows of 64",
       {.type = type::ptq1_0, .k = 64, .m = 4, .bytes = ptq},
       "multiple of 128",
       BITNET_BAD_DATA},
      {"rows of 128",
       {.type = type::stq1_0, .k = 128, .m = 2, .bytes = bad_stq},
       "multiple of 256",
       BITNET_BAD_DATA},
      {"what id 40 was",
       {.type = 40, .k = 256, .m = 1, .bytes = ptq},
       "has type NVFP4 or an old Q1_0 (40); this program reads",
       BITNET_UNSUPPORTED},
  };
  expect_rejected(rows);
  EXPECT_TRUE(understand({.type = type::ptq1_0, .k = 256, .m = 1, .bytes = ptq}))
      << "padding behind it";
}

}  // namespace
}  // namespace bitnet::formats
