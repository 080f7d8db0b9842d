// Rows with five weights in a byte: how they are written, and that products with them have the bits
// of the definition.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "bitnet/sdk/interpreter/row_copies.hpp"
#include "forms.hpp"
#include "guarded_memory.hpp"
#include "ops/ops.hpp"
#include "ops/tuning.hpp"
#include "room.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {
namespace {

struct way {
  const char* name;
  void (*multiply)(const cpu::ternary_tile&);
  bool (*code)(const cpu::fives_rows&);
};

// The definition, and what the forms of this CPU have.
std::vector<way> all_ways() {
  std::vector<way> out = {{"scalar", cpu::linear_fives_scalar, cpu::code_fives_scalar}};
  for (const cpu::isa_form* form : all_forms())
    if (cpu::has_fives(*form)) out.push_back({form->name, form->fives.run, form->fives.code});
  return out;
}

struct case_of_rows {
  uint64_t rows, k, tokens;
  int weight, activation;  // of all, or 999 for random ones
  const char* why;
};
constexpr int any = 999;
constexpr case_of_rows cases[] = {
    {1, 64, 1, any, any, "a plane"},
    {3, 192, 1, any, any, "a part of a line, an odd half of a packed group"},
    {5, 320, 1, any, any, "a line"},
    {4, 384, 2, any, any, "a line and a plane of the next"},
    {9, 640, 3, any, any, "two lines, three tokens"},
    {7, 2560, 1, any, any, "the width of BitNet b1.58 2B"},
    {6, 6912, 4, any, any, "its feed-forward width, four tokens"},
    {5, 7680, 1, any, any, "as many lines as are arranged at once"},
    {5, 7744, 7, any, any, "and one more, tokens that fill no tile"},
    {2, 23040, 1, 1, -128, "the largest negative sum"},
    {2, 23040, 2, -1, -128, "the largest sum"},
    {4, 1280, 1, 0, -128, "zeros"},
};

// Rows of the file's packing, activations, and sums by the definition.
struct product_of_rows {
  explicit product_of_rows(const case_of_rows& c) : t(c.rows * c.k), q(c.tokens * c.k) {
    std::mt19937 random(static_cast<uint32_t>(c.k + c.rows));
    for (int8_t& v : t)
      v = static_cast<int8_t>(c.weight == any ? static_cast<int>(random() % 3) - 1 : c.weight);
    for (int8_t& v : q)
      v = static_cast<int8_t>(c.activation == any ? static_cast<int>(random() % 256) - 128
                                                  : c.activation);
    packed = pack_ternary(t, c.k, c.rows);
    for (uint64_t token = 0; token < c.tokens; ++token)
      for (uint64_t r = 0; r < c.rows; ++r) {
        int32_t sum = 0;
        for (uint64_t i = 0; i < c.k; ++i) sum += t[r * c.k + i] * q[token * c.k + i];
        sums.push_back(sum);
      }
  }
  std::vector<int8_t> t, q;
  std::vector<uint8_t> packed;
  std::vector<int32_t> sums;  // (tokens, rows)
};

TEST(fives, rows_are_written_as_they_are_defined) {
  for (const case_of_rows& c : cases) {
    SCOPED_TRACE(c.why);
    const product_of_rows p(c);
    const uint64_t bytes = cpu::fives_row_bytes(c.k);
    guarded_memory<uint8_t> from(p.packed);
    for (const way& w : all_ways()) {
      SCOPED_TRACE(w.name);
      guarded_memory<uint8_t> to(c.rows * bytes);
      ASSERT_TRUE(w.code({from.data(), p.packed.size() / c.rows, to.data(), c.k, c.rows}));
      for (uint64_t r = 0; r < c.rows; ++r)
        for (uint64_t at = 0; at < bytes; ++at) {
          int expected = 0;
          for (uint64_t plane = 0, power = 1; plane < 5; ++plane, power *= 3)
            if (const uint64_t e = at / 64 * 320 + 64 * plane + at % 64; e < c.k)
              expected += static_cast<int>(power) * (p.t[r * c.k + e] + 1);
          ASSERT_EQ(to[r * bytes + at], expected) << r << ' ' << at;
        }
    }
  }
}

TEST(fives, products_are_those_of_the_definition) {
  for (const case_of_rows& c : cases) {
    SCOPED_TRACE(c.why);
    const product_of_rows p(c);
    const uint64_t stride = cpu::fives_row_bytes(c.k);
    guarded_memory<uint8_t> coded(c.rows * stride);
    guarded_memory<int8_t> q(p.q);
    ASSERT_TRUE(cpu::code_fives_scalar(
        {p.packed.data(), p.packed.size() / c.rows, coded.data(), c.k, c.rows}));
    for (const way& w : all_ways()) {
      SCOPED_TRACE(w.name);
      std::vector<int32_t> sums(c.tokens * c.rows, 12345);
      w.multiply(
          {coded.data(), stride, q.data(), c.k, sums.data(), c.rows, c.k, c.rows, c.tokens, 0});
      EXPECT_EQ(sums, p.sums);
    }
  }
}

TEST(fives, a_code_that_is_no_weight_is_rejected) {
  for (const way& w : all_ways())
    for (const uint64_t at : {0u, 31u, 100u, 159u}) {  // of two rows of 320, in both halves
      std::vector<uint8_t> rows(2 * 96, 0x55), to(2 * 64);
      ASSERT_TRUE(w.code({rows.data(), 96, to.data(), 320, 2})) << w.name;
      rows[at] |= 3u << (at % 4 * 2);
      EXPECT_FALSE(w.code({rows.data(), 96, to.data(), 320, 2})) << w.name << ' ' << at;
    }
}

// What is behind the row in its last packed group is no weight, whatever it is.
TEST(fives, what_is_behind_a_row_does_not_count) {
  for (const way& w : all_ways()) {
    std::vector<uint8_t> rows(32, 0x50), to(64);  // elements 64 to 127 are not the row's
    for (uint8_t& byte : rows) byte |= 0x0f;
    EXPECT_TRUE(w.code({rows.data(), 32, to.data(), 64, 1})) << w.name;
    EXPECT_TRUE(std::ranges::all_of(to, [](uint8_t b) { return b == 1; })) << w.name;
  }
}

bool always(uint64_t) {
  return true;
}

// Copies of rows that lie elsewhere, made while these are read.
class copied_fives : public testing::Test {
 protected:
  void SetUp() override {
    const auto at = std::ranges::find_if(forms_, [](const auto* f) { return cpu::has_fives(*f); });
    if (at == forms_.end()) GTEST_SKIP() << "this CPU has no AVX-512 VBMI";
    form_ = *at;
    ASSERT_TRUE(cpu::adopt_tuning("ahead=3072 tile_rows=64 fives=1"));
  }
  void TearDown() override { cpu::adopt_tuning("ahead=3072 tile_rows=64"); }

  std::vector<float> run(const sdk::weight& w, const std::vector<int8_t>& q, uint64_t tokens) {
    std::vector<float> y(tokens * w.m);
    const std::vector<float> s(tokens, 3.0f);
    cpu::linear_ternary(*form_, w, q.data(), s.data(),
                        {.tokens = tokens, .first = 0, .last = w.m, .y = y.data()}, product_room());
    return y;
  }

  const std::vector<const cpu::isa_form*> forms_ = all_forms();
  const cpu::isa_form* form_ = nullptr;
  static constexpr uint64_t steps = sdk::row_copy::patience + sdk::row_copy::parts;
};

TEST_F(copied_fives, are_read_by_a_token_by_itself) {
  const product_of_rows p({40, 640, 5, any, any, ""});
  for (const bool of_rows : {false, true}) {  // a scale for each
    std::vector<float> scales(40, 0.5f);
    std::vector<uint8_t> packed = p.packed;
    sdk::weight w{BITNET_FORMAT_TERNARY2, 640, 40, packed.data(), 160, scales.data(),
                  of_rows ? 640u : 0u};
    const sdk::copy_code code = cpu::fives_code(*form_);
    ASSERT_EQ(code.row_bytes(w), 128u);
    sdk::copy_room room(nullptr, always);
    sdk::row_copy copy(room, w, code, form_);
    EXPECT_TRUE(copy.coded());
    const auto expected = run(w, p.q, 1), of_two = run(w, p.q, 2);
    w.copy = &copy;
    for (uint64_t i = 0; i < steps; ++i) EXPECT_EQ(run(w, p.q, 1), expected);
    ASSERT_NE(copy.data(), nullptr);
    EXPECT_EQ(copy.take_spared(), 40u * (160 - 128)) << "by the last, which made it whole";
    std::ranges::fill(packed, uint8_t{0});
    EXPECT_EQ(run(w, p.q, 1), expected) << "from the copy";
    EXPECT_EQ(copy.take_spared(), 40u * (160 - 128));
    EXPECT_EQ(copy.take_spared(), 0u);
    packed = p.packed;
    EXPECT_EQ(run(w, p.q, 2), of_two) << "from the rows";
    EXPECT_EQ(copy.take_spared(), 0u);
  }
}

TEST_F(copied_fives, are_not_made_of_codes_that_are_no_weights) {
  const product_of_rows p({40, 640, 1, any, any, ""});
  std::vector<uint8_t> packed = p.packed;
  packed[17 * 160] |= 3;
  const float scale = 0.5f;
  sdk::weight w{BITNET_FORMAT_TERNARY2, 640, 40, packed.data(), 160, &scale, 0};
  sdk::copy_room room(nullptr, always);
  sdk::row_copy copy(room, w, cpu::fives_code(*form_), form_);
  const auto expected = run(w, p.q, 1);
  w.copy = &copy;
  for (uint64_t i = 0; i < 2 * steps; ++i) EXPECT_EQ(run(w, p.q, 1), expected);
  EXPECT_EQ(copy.data(), nullptr);
}

TEST_F(copied_fives, are_for_rows_that_gain_by_them) {
  const auto bytes = [&](uint64_t k, uint64_t group) {
    const sdk::weight w{BITNET_FORMAT_TERNARY2, k,       4,    nullptr,
                        (k + 127) / 128 * 32,   nullptr, group};
    return cpu::fives_code(*form_).row_bytes(w);
  };
  EXPECT_EQ(bytes(2560, 0), 512u);
  EXPECT_EQ(bytes(6912, 6912), 1408u);
  EXPECT_EQ(bytes(2560, 128), 0u) << "groups have scales";
  EXPECT_EQ(bytes(2592, 0), 0u) << "no multiple of 64";
  EXPECT_EQ(bytes(384, 0), 0u) << "128 bytes for 96";
  ASSERT_TRUE(cpu::adopt_tuning("ahead=3072 tile_rows=64"));
  EXPECT_EQ(bytes(2560, 0), 0u) << "found slower";
  EXPECT_EQ(cpu::fives_code(cpu::scalar_form).write, nullptr);
}

}  // namespace
}  // namespace bitnet::parity
