// Every instruction set of variants.hpp against the definition, on shapes that have a reason.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "emulated_form.hpp"
#include "golden.hpp"
#include "guarded_memory.hpp"
#include "ops/ops.hpp"
#include "ops/ternary_tiles.hpp"
#include "room.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {
namespace {

enum class fill { random, plus, minus, zero };

struct ternary_row {
  uint64_t rows, k, tokens;
  fill weights;
  int activation;  // value of every q, or 999 for random ones
  uint64_t scale_group;
  const char* why;
};

constexpr int any = 999;
constexpr ternary_row ternary_rows[] = {
    {1, 128, 1, fill::random, any, 0, "one group"},
    {4, 256, 1, fill::random, any, 0, "a line of two groups, four rows at a time"},
    {3, 384, 1, fill::random, any, 0, "an odd group after a line, rows that fill no tile"},
    {5, 100, 2, fill::random, any, 0, "shorter than a group"},
    {5, 200, 3, fill::random, any, 0, "a group and a part of one"},
    {2, 129, 1, fill::random, any, 0, "one element past a group"},
    {7, 2560, 1, fill::random, any, 0, "the width of BitNet b1.58 2B"},
    {3, 6912, 1, fill::random, any, 0, "its feed-forward width"},
    {2, 4096, 1, fill::plus, 127, 0, "32 groups: twice what an int16 sum has room for"},
    {2, 4096, 1, fill::plus, -128, 0, "the largest negative products"},
    {2, 23040, 1, fill::minus, -128, 0, "the widest model known: the largest int32 sum"},
    {4, 512, 1, fill::zero, -128, 0, "zero weights cancel the offset exactly"},
    {4, 512, 1, fill::random, 0, 0, "zero activations"},
    {17, 256, 2, fill::random, any, 0, "M odd, two tokens"},
    {8, 384, 3, fill::random, any, 0, "three tokens: no tile of four"},
    {9, 256, 4, fill::random, any, 0, "four tokens: one tile, M past it"},
    {6, 256, 5, fill::random, any, 0, "a tile and one more"},
    {4, 640, 6, fill::random, any, 0, "six tokens"},
    {4, 640, 7, fill::random, any, 0, "seven tokens"},
    {2, 128, 8, fill::random, any, 0, "two tiles of tokens"},
    {65, 128, 9, fill::random, any, 0, "more rows than a tile of the driver, nine tokens"},
    {3, 128, 33, fill::random, any, 0, "more tokens than a tile of the driver"},
    {5, 512, 3, fill::random, any, 256, "scale groups as in TQ1_0 and TQ2_0"},
    {5, 512, 3, fill::plus, -128, 128, "a scale for each packed group"},
    {5, 96, 2, fill::random, any, 32, "scale groups within a packed group, a part of one"},
    {37, 2560, 1, fill::random, any, 32, "BitNet32 and Split32, rows that fill no tile"},
    {16, 2560, 6, fill::random, any, 64, "Q2_0, a tile of tokens and more"},
    {19, 6912, 3, fill::random, any, 64, "an odd packed group after a pair"},
    {7, 384, 34, fill::random, any, 96, "groups across packed groups, more tokens than a call"},
    {3, 160, 2, fill::random, any, 160, "one group per row that ends within a packed group"},
    {9, 320, 5, fill::random, any, 160, "two of them"},
    {4, 256, 2, fill::plus, -128, 32, "the largest negative sums"},
    {4, 1024, 2, fill::minus, -128, 256, "the largest sums, of groups over two packed groups"},
    {2, 128, 1, fill::zero, -128, 64, "zero weights cancel the offset exactly"},
    {18, 8448, 2, fill::random, any, 32, "more groups than a call"},
    {3, 33024, 33, fill::random, any, 128, "the same for groups of 128, and more tokens"},
    {5, 240, 2, fill::random, any, 48, "groups that have no vector form"},
    {4, 768, 5, fill::random, any, 768, "one group per row"},
    {37, 384, 19, fill::random, any, 128, "tiles: three passes of six and seven tokens"},
    {37, 256, 26, fill::random, any, 128, "tiles: four passes of six and seven tokens"},
    {37, 256, 31, fill::random, any, 64, "tiles: the most tokens before panels"},
    {33, 2560, 16, fill::random, any, 0, "panels: a row more than the widest has"},
    {70, 2176, 131, fill::random, any, 0, "panels: two blocks of a row, more tokens than a call"},
    {67, 6912, 31, fill::random, any, 6912, "panels: a scale for each row, 8, 4, 2 and 1 tokens"},
    {35, 204, 21, fill::random, any, 0, "panels: a part of a packed group"},
    {40, 202, 21, fill::random, any, 0, "no multiple of four: no panels"},
    {32, 23040, 16, fill::plus, -128, 0, "panels: the largest int32 sum"},
    {1751, 384, 72, fill::random, any, 0, "tables: rows and tokens twice, an odd part"},
    {257, 716, 133, fill::random, any, 716,
     "tables: a scale for each row, a part of a packed group"},
    {261, 1024, 17, fill::random, -128, 0, "tables: a token that fills no entry"},
    {256, 512, 27, fill::minus, -128, 0, "tables: the largest int16 sums, 11 tokens of an entry"},
    {256, 512, 16, fill::plus, -128, 0, "tables: the largest negative ones"},
    {256, 512, 16, fill::minus, -127, 0, "tables: the largest of 256 elements"},
    {300, 640, 60, fill::random, any, 0, "tables: entries of 32 tokens, 28 of the second"},
    {256, 384, 48, fill::random, any, 0, "tables: entries of 32 tokens, then of 16"},
    {256, 512, 32, fill::minus, -128, 0, "tables: the largest int16 sums, 32 tokens"},
    {256, 512, 32, fill::plus, -128, 0, "tables: the largest negative ones, 32 tokens"},
    {48, 8448, 44, fill::random, any, 32, "panels: short groups"},
    {49, 2176, 130, fill::random, any, 128, "panels: a line of tiles more, tokens past a call"},
    {32, 6144, 41, fill::random, any, 1536, "panels: blocks as long as a group"},
    {33, 8192, 32, fill::random, any, 4096, "groups that are longer than a block: no panels"},
    {16, 4352, 38, fill::plus, -128, 256, "panels: the largest sums of groups"},
};

// Tiles that 2 to 17 tokens share, in whose ranges are registers of rows with some lanes, one and
// two with all.
struct few_row {
  uint64_t k, own, given;
  const char* why;
};
constexpr few_row few_rows[] = {
    {256, 128, 32, "units, runs of activations"},
    {384, 128, 128, "units, equally long"},
    {256, 128, 64, "groups of two planes"},
    {288, 32, 32, "runs, a part of a unit"},
    {256, 32, 128, "runs of weights, the shorter ones"},
    {320, 64, 32, "two scales in a unit, a part of one"},
    {512, 256, 32, "groups over two units"},
    {768, 256, 768, "activations with one scale, longer groups"},
    {256, 128, 0, "units of weights alone"},
    {352, 32, 0, "runs of weights alone"},
    {448, 64, 0, "two scales in a unit"},
    {512, 256, 0, "groups of weights alone over two units"},
};
constexpr uint64_t few_rows_m = 69, fewest_few = 2, most_few = 17;
// Every number of tokens that share rows of one scale, in passes of up to four.
constexpr uint64_t most_passing = 33;

class each_isa : public each_form {};
class each_panel : public each_form {};
class each_table : public each_form {};
class each_turn : public each_form {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(each_panel);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(each_table);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(each_turn);

// The form with one of two ways for many tokens; it takes the faster one else.
cpu::isa_form only_panels(cpu::isa_form form) {
  form.tables.run = nullptr;
  return form;
}
cpu::isa_form only_tables(cpu::isa_form form) {
  form.panel = form.tables;
  form.whole_panel = {uint64_t{1} << 22, cpu::tables_tokens};
  return only_panels(form);
}

struct ternary_case {
  explicit ternary_case(const ternary_row& of)
      : row(of),
        random(static_cast<uint32_t>(row.k * 31 + row.rows + 977 * row.tokens)),
        t(row.rows * row.k) {
    for (int8_t& v : t)
      v = static_cast<int8_t>(row.weights == fill::plus    ? 1
                              : row.weights == fill::minus ? -1
                              : row.weights == fill::zero  ? 0
                                                           : static_cast<int>(random() % 3) - 1);
    packed = pack_ternary(t, row.k, row.rows);
    q.resize(row.tokens * row.k);
    for (int8_t& v : q)
      v = static_cast<int8_t>(row.activation == any ? static_cast<int>(random() % 256) - 128
                                                    : row.activation);
    s.resize(row.tokens);
    for (float& v : s) v = 1.0f + static_cast<float>(random() % 1000) / 77.0f;
    scales.resize(row.scale_group == 0 ? 1 : t.size() / row.scale_group);
    for (float& v : scales) v = 0.01f + static_cast<float>(random() % 1000) / 7777.0f;
  }

  sdk::weight weight(const uint8_t* bytes) const {
    return {BITNET_FORMAT_TERNARY2,   row.k,         row.rows,       bytes,
            packed.size() / row.rows, scales.data(), row.scale_group};
  }

  // y by the definition of the op, from the weights as they were before packing. The plugin has a
  // function for this too and runs it for some shapes, so that takes no part here.
  std::vector<float> by_definition() const {
    std::vector<float> y;
    for (uint64_t token = 0; token < row.tokens; ++token)
      for (uint64_t m = 0; m < row.rows; ++m) y.push_back(number(token, m));
    return y;
  }

  // The same of LINEAR_TERNARY_GROUPED: activations have a factor for every `given`.
  std::vector<float> by_definition_of_groups(const std::vector<float>& d, uint64_t given) const {
    std::vector<float> y;
    const uint64_t own = row.scale_group == 0 ? row.k : row.scale_group;
    for (uint64_t token = 0; token < row.tokens; ++token)
      for (uint64_t m = 0; m < row.rows; ++m) {
        float outer = 0, inner = 0;
        for (uint64_t i = 0, sum = 0; i < row.k; ++i) {
          sum += static_cast<uint64_t>(int64_t{t[m * row.k + i]} * q[token * row.k + i]);
          if ((i + 1) % std::min(own, given) != 0) continue;
          const float of_q = d[(token * row.k + i) / given];
          const float of_w = scales[row.scale_group == 0 ? 0 : (m * row.k + i) / own];
          inner += static_cast<float>(static_cast<int64_t>(sum)) * (given <= own ? of_q : of_w);
          sum = 0;
          if ((i + 1) % std::max(own, given) != 0) continue;
          outer += inner * (given <= own ? of_w : of_q);
          inner = 0;
        }
        y.push_back(outer);
      }
    return y;
  }

  ternary_row row;
  std::mt19937 random;
  std::vector<int8_t> t;  // (rows, k): -1, 0 or 1
  std::vector<uint8_t> packed;
  std::vector<int8_t> q;
  std::vector<float> s, scales;

 private:
  float number(uint64_t token, uint64_t m) const {
    const uint64_t group = row.scale_group == 0 ? row.k : row.scale_group;
    float scaled = 0;
    for (uint64_t begin = 0; begin < row.k; begin += group) {
      int64_t sum = 0;
      for (uint64_t i = begin; i < begin + group; ++i)
        sum += int64_t{t[m * row.k + i]} * q[token * row.k + i];
      const auto exact = static_cast<float>(sum);  // below 2^24
      if (row.scale_group == 0) return exact / s[token] * scales[0];
      scaled += exact * scales[(m * row.k + begin) / group];
    }
    return scaled / s[token];
  }
};

// A weight in tiles, in memory that ends where they do. The rows are not there.
class tiles {
 public:
  explicit tiles(const sdk::weight& rows)
      : packing_(cpu::in_tiles()),
        made_(packing_.bytes(rows)),
        memory_((pack(rows, packing_, made_), made_)) {
    form_.how = &packing_;
    form_.bytes = memory_.size();
    form_.data = memory_.data();
    weight_ = rows;
    weight_.data = nullptr;
    weight_.packed = &form_;
  }
  static bool can_hold(const sdk::weight& w) { return cpu::unit_bytes(w) != 0; }
  const sdk::weight& weight() const { return weight_; }

 private:
  static void pack(const sdk::weight& rows, const sdk::packing& how, std::vector<uint8_t>& out) {
    how.pack(rows, nullptr, 0, rows.m, out.data());
  }
  sdk::packing packing_;
  std::vector<uint8_t> made_;
  guarded_memory<uint8_t> memory_;
  sdk::packed_form form_;
  sdk::weight weight_{};
};

void expect_bits(guarded_memory<float>& y, const std::vector<float>& expected) {
  for (uint64_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(y.data()[i]), std::bit_cast<uint32_t>(expected[i]))
        << "y[" << i << "] = " << y.data()[i] << ", expected " << expected[i];
}

// The definition knows of no form, and takes longer than any of them: it is worked out for the
// first one that asks.
struct defined_case : ternary_case {
  using ternary_case::ternary_case;
  std::vector<float> d;  // of groups of activations
  std::vector<float> expected;
};

const std::vector<defined_case>& defined_cases() {
  static const std::vector<defined_case> cases = [] {
    std::vector<defined_case> out;
    const auto add = [&](const ternary_row& row) {
      defined_case& c = out.emplace_back(row);
      c.expected = c.by_definition();
    };
    for (const ternary_row& row : ternary_rows) add(row);
    for (uint64_t n = 1; n <= most_passing; ++n)
      add({21, 396, n, fill::random, any, 0, "a row past tiles of rows, a part of a group"});
    for (const few_row& few : few_rows)
      for (uint64_t n = fewest_few; few.given == 0 && n <= most_few; ++n)
        add({few_rows_m, few.k, n, fill::random, any, few.own, few.why});
    return out;
  }();
  return cases;
}

TEST_P(each_isa, ternary_equals_the_definition_bit_for_bit) {
  for (const defined_case& c : defined_cases()) {
    const ternary_row& row = c.row;
    SCOPED_TRACE(row.why);
    guarded_memory<uint8_t> w(c.packed);
    guarded_memory<int8_t> q(c.q);
    guarded_memory<float> y(row.tokens * row.rows);
    const auto run = [&](const sdk::weight& weight) {
      cpu::linear_ternary(*GetParam(), weight, q.data(), c.s.data(),
                          {.tokens = row.tokens, .first = 0, .last = row.rows, .y = y.data()},
                          product_room());
    };
    run(c.weight(w.data()));
    expect_bits(y, c.expected);
    if (GetParam()->tables.run != nullptr && row.scale_group % row.k == 0) {
      for (const cpu::isa_form& way : {only_panels(*GetParam()), only_tables(*GetParam())}) {
        std::fill_n(y.data(), y.size(), -1.5f);
        cpu::linear_ternary(way, c.weight(w.data()), q.data(), c.s.data(),
                            {.tokens = row.tokens, .first = 0, .last = row.rows, .y = y.data()},
                            product_room());
        expect_bits(y, c.expected);
      }
    }
    if (!tiles::can_hold(c.weight(w.data()))) continue;
    const tiles packed(c.weight(w.data()));
    std::fill_n(y.data(), y.size(), -1.5f);
    run(packed.weight());
    expect_bits(y, c.expected);
  }
}

struct grouped_row {
  uint64_t rows, k, tokens, own, given;
  const char* why;
  bool nearly_lost = false;  // factors of activations are almost too small for f32
};
constexpr grouped_row grouped_rows[] = {
    {1, 128, 1, 128, 32, "one packed group"},
    {37, 2560, 1, 128, 32, "rows that fill no tile, one token"},
    {37, 640, 9, 128, 32, "and nine"},
    {16, 1024, 8, 128, 128, "equally long"},
    {19, 768, 3, 64, 128, "groups of weights are the shorter ones"},
    {5, 96, 6, 32, 32, "a part of a packed group"},
    {21, 224, 7, 32, 32, "a packed group and a part"},
    {18, 512, 16, 256, 64, "groups over two packed groups"},
    {17, 1024, 33, 1024, 32, "one scale for a row, more tokens than a call"},
    {9, 512, 5, 0, 64, "one scale for all"},
    {7, 8448, 2, 32, 32, "more groups than a call"},
    {6, 9216, 3, 96, 32, "the same for groups that are cut at no packed group"},
    {3, 16384, 2, 8192, 32, "the longest groups"},
    {53, 2560, 32, 128, 32, "panels: one cut within a tile"},
    {40, 6912, 131, 128, 32, "panels: blocks of a row, more tokens than a call"},
    {35, 4352, 44, 64, 128, "panels: groups of weights are the shorter ones"},
    {34, 2176, 63, 128, 128, "panels: equally long, 8, 4, 2 and 1 tokens"},
    {21, 2208, 41, 32, 32, "panels: a part of a packed group"},
    {37, 6912, 46, 6912, 32, "panels: one scale for a row"},
    {64, 4096, 40, 0, 1024, "panels: one scale for all"},
    {69, 33280, 5, 128, 32, "tiles that a few tokens share: more elements than a call"},
    {69, 8448, 12, 128, 32, "the same of more tokens"},
    {35, 32896, 8, 128, 128, "the same, equally long"},
    {69, 384, 7, 128, 32, "factors that no division by 64 is exact for", true},
};

const std::vector<std::pair<grouped_row, defined_case>>& defined_cases_of_groups() {
  static const std::vector<std::pair<grouped_row, defined_case>> cases = [] {
    std::vector<std::pair<grouped_row, defined_case>> out;
    const auto add = [&](const grouped_row& one) {
      const ternary_row row{one.rows, one.k, one.tokens, fill::random, any, one.own, one.why};
      defined_case& c = out.emplace_back(one, defined_case(row)).second;
      c.d.resize(one.tokens * one.k / one.given);
      for (float& v : c.d)
        v = (0.001f + static_cast<float>(c.random() % 1000) / 77777.0f) *
            (one.nearly_lost ? 0x1p-120f : 1.0f);
      c.expected = c.by_definition_of_groups(c.d, one.given);
    };
    for (const grouped_row& one : grouped_rows) add(one);
    for (const few_row& few : few_rows)
      for (uint64_t n = fewest_few; few.given != 0 && n <= most_few; ++n)
        add({few_rows_m, few.k, n, few.own, few.given, few.why});
    return out;
  }();
  return cases;
}

// The same with groups of activations: those of the row and of the case, and any range of rows.
TEST_P(each_isa, grouped_ternary_equals_the_definition_bit_for_bit) {
  for (const auto& both : defined_cases_of_groups()) {
    const grouped_row& one = both.first;
    const defined_case& c = both.second;
    SCOPED_TRACE(one.why);
    guarded_memory<uint8_t> w(c.packed);
    guarded_memory<int8_t> q(c.q);
    guarded_memory<float> y(one.tokens * one.rows);
    const auto run = [&](const sdk::weight& weight) {
      std::fill_n(y.data(), y.size(), -1.5f);
      const uint64_t cut = one.rows / 3;
      const auto part = [&](uint64_t first, uint64_t last) {
        cpu::linear_ternary_grouped(
            *GetParam(), weight, q.data(), c.d.data(), one.k / one.given,
            {.tokens = one.tokens, .first = first, .last = last, .y = y.data()}, product_room());
      };
      part(cut, one.rows);
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_TRUE(i % one.rows >= cut || y.data()[i] == -1.5f) << "row " << i % one.rows;
      part(0, cut);
    };
    run(c.weight(w.data()));
    expect_bits(y, c.expected);
    if (!tiles::can_hold(c.weight(w.data()))) continue;
    run(tiles(c.weight(w.data())).weight());
    expect_bits(y, c.expected);
  }
}

TEST(ternary_tiles, a_row_is_found_again) {
  for (const uint64_t group : {32u, 64u, 128u, 256u}) {
    ternary_case c({21, group == 32 ? 96u : 512u, 1, fill::random, any, group, ""});
    const tiles packed(c.weight(c.packed.data()));
    std::vector<float> y(c.row.k);
    for (uint64_t r = 0; r < c.row.rows; ++r) {
      cpu::embed_row(packed.weight(), r, y.data());
      for (uint64_t i = 0; i < c.row.k; ++i) {
        const uint64_t at = r * c.row.k + i;
        ASSERT_EQ(y[i], static_cast<float>(c.t[at]) * c.scales[at / group]) << r << ' ' << i;
      }
    }
  }
}

TEST_P(each_isa, ternary_sums_do_not_overflow_whatever_the_bytes_are) {
  // Codes of 3 break the format: each product is 3 * -128, half more than any right one.
  for (const uint64_t k : {128u, 1280u, 2560u, 6912u, 8100u})
    for (const int activation : {-128, 127}) {
      const uint64_t rows = 9, tokens = 5, stride = (k + 127) / 128 * 32;
      const std::vector<uint8_t> w(rows * stride, 0xff);
      const std::vector<int8_t> q(tokens * k, static_cast<int8_t>(activation));
      std::vector<int32_t> sums(rows * tokens);
      GetParam()->ternary({w.data(), stride, q.data(), k, sums.data(), rows, k, rows, tokens});
      for (const int32_t sum : sums) ASSERT_EQ(sum, 2 * activation * static_cast<int>(k)) << k;
    }
}

TEST_P(each_isa, grouped_sums_do_not_overflow_whatever_the_bytes_are) {
  for (const uint64_t group : {32u, 96u, 128u, 4096u})
    for (const int activation : {-128, 127}) {
      const uint64_t rows = 17, tokens = 5, groups = 3, k = groups * group;
      const uint64_t stride = (k + 127) / 128 * 32;
      const std::vector<uint8_t> w(rows * stride, 0xff);
      const std::vector<int8_t> q(tokens * k, static_cast<int8_t>(activation));
      const std::vector<float> scales(rows * groups, 0.5f);
      std::vector<float> y(rows * tokens, 1.0f);
      GetParam()->grouped({w.data(), stride, q.data(), k, scales.data(), groups, y.data(), rows,
                           group, groups, rows, tokens, true});
      for (const float sum : y)
        ASSERT_EQ(sum, 1.0f + static_cast<float>(activation * static_cast<int>(k))) << group;
    }
}

void expect_sums_without_overflow(const cpu::tile_kernel<cpu::panel_tile>& multiply) {
  const float one = 1;
  for (const uint64_t k : {32u, 1280u, 2048u})
    for (const auto& [activation, rows, tokens] :
         {std::tuple{-128, 33u, 9u}, {127, 33u, 9u}, {127, 260u, 16u}}) {
      const uint64_t stride = (k + 127) / 128 * 32;
      const std::vector<uint8_t> w(rows * stride, 0xff);
      const std::vector<int8_t> q(tokens * k, static_cast<int8_t>(activation));
      const std::vector<float> scales(tokens, 1.0f);
      std::vector<float> y(rows * tokens, -1.5f);
      cpu::panel_tile tile{};
      tile.room = product_room();
      tile.w = w.data();
      tile.w_stride = stride;
      tile.scales = &one;
      tile.one_scale = true;
      tile.q = q.data();
      tile.q_stride = tile.k = k;
      tile.q_scales = scales.data();
      tile.q_scales_stride = 1;
      tile.y = y.data();
      tile.y_stride = tile.rows = rows;
      tile.tokens = tokens;
      tile.ends = true;
      multiply(tile);
      for (const float sum : y) ASSERT_EQ(sum, static_cast<float>(2 * activation) * k) << k;
    }
}

TEST_P(each_panel, sums_do_not_overflow_whatever_the_bytes_are) {
  expect_sums_without_overflow(GetParam()->panel);
}

TEST_P(each_table, sums_do_not_overflow_whatever_the_bytes_are) {
  expect_sums_without_overflow(GetParam()->tables);
}

TEST_P(each_table, one_code_that_is_no_weight_counts_wherever_it_lies) {
  const float one = 1;
  constexpr uint64_t k = 512, rows = 260, tokens = 16, row = 131;
  const std::vector<int8_t> q(tokens * k, 1);
  const std::vector<float> scales(tokens, 1.0f);
  cpu::panel_tile tile{};
  tile.room = product_room();
  tile.w_stride = k / 4;
  tile.scales = &one;
  tile.one_scale = tile.ends = true;
  tile.q = q.data();
  tile.q_stride = tile.k = k;
  tile.q_scales = scales.data();
  tile.q_scales_stride = 1;
  tile.y_stride = tile.rows = rows;
  tile.tokens = tokens;
  for (const uint64_t element : {0u, 31u, 96u, 127u, 128u, 200u, 255u, 256u, 511u}) {
    std::vector<uint8_t> w(rows * k / 4, 0x55);  // zeros
    w[row * k / 4 + element / 128 * 32 + element % 32] |=
        static_cast<uint8_t>(3 << (6 - 2 * (element % 128 / 32)));
    std::vector<float> y(rows * tokens, -1.5f);
    tile.w = w.data();
    tile.y = y.data();
    GetParam()->tables(tile);
    for (uint64_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], i % rows == row ? 2.0f : 0.0f) << element << ' ' << i;
  }
}

TEST_P(each_isa, grouped_rows_begin_anew_or_go_on) {
  const ternary_row row{21, 512, 5, fill::random, any, 64, ""};
  ternary_case c(row);
  const uint64_t groups = row.k / row.scale_group;
  const auto run = [&](uint64_t first, uint64_t last, bool goes_on, std::vector<float>& y) {
    GetParam()->grouped({c.packed.data() + first * 64 / 4, row.k / 4, c.q.data() + first * 64,
                         row.k, c.scales.data() + first, groups, y.data(), row.rows, 64,
                         last - first, row.rows, row.tokens, goes_on});
  };
  std::vector<float> whole(row.tokens * row.rows, 7.0f), cut(whole);
  run(0, groups, false, whole);
  run(0, 2, false, cut);
  run(2, groups, true, cut);
  EXPECT_EQ(cut, whole);
}

TEST_P(each_isa, ternary_writes_only_its_columns) {
  for (const uint64_t group : {0u, 32u}) {
    const ternary_row row{40, 256, 5, fill::random, any, group, ""};
    ternary_case c(row);
    const std::vector<float> expected = c.by_definition();
    std::vector<float> y(expected.size(), -1.5f);
    const auto run = [&](const sdk::weight& weight, uint64_t first, uint64_t last) {
      std::fill(y.begin(), y.end(), -1.5f);
      cpu::linear_ternary(*GetParam(), weight, c.q.data(), c.s.data(),
                          {.tokens = row.tokens, .first = first, .last = last, .y = y.data()},
                          product_room());
      for (uint64_t i = 0; i < y.size(); ++i) {
        const uint64_t column = i % row.rows;
        ASSERT_EQ(y[i], column >= first && column < last ? expected[i] : -1.5f) << i;
      }
    };
    run(c.weight(c.packed.data()), 7, 30);
    if (group == 0) continue;
    const tiles packed(c.weight(c.packed.data()));
    for (const auto& [first, last] : {std::pair{7u, 30u}, {0u, 16u}, {17u, 18u}, {5u, 6u}})
      run(packed.weight(), first, last);
  }
}

TEST_P(each_isa, golden_matrix_times_golden_vector) {
  const auto t = golden_as<int8_t>("ternary");
  const auto q = golden_as<int8_t>("matvec_q");
  const std::vector<int8_t> all127(256, 127);
  const std::vector<uint8_t> packed = pack_ternary(t, 256, 4);
  const struct {
    const std::vector<int8_t>& q;
    const char* expected;
  } rows[] = {{q, "matvec_sum_tq"}, {all127, "matvec_all127"}};
  for (const auto& row : rows) {
    std::vector<int32_t> sums(4);
    GetParam()->ternary({packed.data(), 64, row.q.data(), 256, sums.data(), 4, 256, 4, 1});
    EXPECT_EQ(sums, golden_as<int32_t>(row.expected)) << row.expected;
  }
}

struct dense_row {
  uint64_t rows, k, tokens;
  const char* why;
};
constexpr dense_row dense_rows[] = {
    {1, 32, 1, "one block of Q8_0"},
    {5, 64, 3, "rows and tokens past a tile"},
    {4, 2560, 1, "a head of BitNet b1.58 2B"},
    {9, 256, 9, "more tokens than the scalar form shares"},
    {4, 100, 2, "a tail of four"},
    {3, 15, 1, "nothing but a tail"},
    {2, 47, 2, "a tail of fifteen"},
};

TEST_P(each_isa, dense_equals_the_scalar_form_bit_for_bit) {
  for (const uint32_t format : {BITNET_FORMAT_F32, BITNET_FORMAT_F16, BITNET_FORMAT_BF16,
                                BITNET_FORMAT_Q8_0, BITNET_FORMAT_Q4_0}) {
    const sdk::format& f = *sdk::find_format(format);
    for (const dense_row& row : dense_rows) {
      if (row.k % f.block != 0) continue;
      SCOPED_TRACE(std::string(f.name) + ": " + row.why);
      std::mt19937 random(static_cast<uint32_t>(row.k));
      const uint64_t stride = sdk::row_bytes(f, row.k);
      guarded_memory<uint8_t> w(stride * row.rows);
      for (uint64_t i = 0; i < w.size(); ++i) w[i] = static_cast<uint8_t>(random());
      for (uint64_t at = 0; at < w.size(); at += f.block_bytes)  // no exponent of all ones
        w[at + (format == BITNET_FORMAT_F32 ? 3 : 1)] &= 0xbb;
      guarded_memory<float> x(row.k * row.tokens), y(row.rows * row.tokens);
      for (uint64_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 333.0f;
      std::vector<float> expected(y.size());
      cpu::dense_tile tile{format,          w.data(), stride, x.data(), row.k,
                           expected.data(), row.rows, row.k,  row.rows, row.tokens};
      cpu::linear_dense_scalar(tile);
      tile.y = y.data();
      GetParam()->dense(tile);
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    }
  }
}

TEST_P(each_isa, long_dense_rows_equal_the_scalar_form_bit_for_bit) {
  for (const sdk::format& f : sdk::formats) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    for (const uint64_t k : {4096u, 4352u, 16384u, 16640u, 20736u}) {
      SCOPED_TRACE(std::string(f.name) + " " + std::to_string(k));
      std::mt19937 random(static_cast<uint32_t>(k));
      const uint64_t rows = 6, tokens = k == 4352 ? 67 : 3, stride = sdk::row_bytes(f, k);
      guarded_memory<uint8_t> w(stride * rows);
      for (uint64_t i = 0; i < w.size(); ++i) w[i] = static_cast<uint8_t>(random() & 0xbb);
      std::vector<float> x(k * tokens), y(rows * tokens), expected(y.size());
      for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 333.0f;
      const sdk::weight weight{f.id, k, rows, w.data(), stride, nullptr, 0};
      cpu::linear_dense_scalar(
          {f.id, w.data(), stride, x.data(), k, expected.data(), rows, k, rows, tokens});
      cpu::linear_dense(*GetParam(), weight, x.data(),
                        {.tokens = tokens, .first = 0, .last = rows, .y = y.data()},
                        product_room());
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    }
  }
}

// Some forms widen f16 for many tokens only; what is asked for early ends with the rows.
TEST_P(each_isa, f16_rows_give_the_same_bits_for_any_number_of_tokens) {
  for (const uint64_t k : {15u, 100u, 512u, 4112u})
    for (const uint64_t tokens : {1u, 4u, 15u, 16u, 21u}) {
      SCOPED_TRACE(std::to_string(k) + " by " + std::to_string(tokens));
      constexpr uint64_t rows = 11, first = 1, last = 10;
      std::mt19937 random(static_cast<uint32_t>(k));
      guarded_memory<uint8_t> w(2 * k * rows);
      for (uint64_t i = 0; i < w.size(); ++i) w[i] = static_cast<uint8_t>(random() & 0xbb);
      guarded_memory<float> x(k * tokens);
      for (uint64_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 333.0f;
      std::vector<float> y(rows * tokens), expected(y.size());
      cpu::linear_dense_scalar({BITNET_FORMAT_F16, w.data() + 2 * k * first, 2 * k, x.data(), k,
                                expected.data() + first, rows, k, last - first, tokens});
      const sdk::weight weight{BITNET_FORMAT_F16, k, rows, w.data(), 2 * k, nullptr, 0};
      cpu::linear_dense(*GetParam(), weight, x.data(),
                        {.tokens = tokens, .first = first, .last = last, .y = y.data()},
                        product_room());
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    }
}

TEST_P(each_isa, every_half_decodes_to_the_same_float) {
  // Denormals, infinities and NaNs too: each half is the only element that is not zero.
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float one = 1.0f;
    float y = 0;
    GetParam()->dense(
        {BITNET_FORMAT_F16, reinterpret_cast<const uint8_t*>(&half), 2, &one, 1, &y, 1, 1, 1, 1});
    const float expected = sdk::f16_to_f32(half) + 0.0f;
    ASSERT_EQ(std::isnan(y), std::isnan(expected)) << bits;
    if (std::isnan(y)) continue;
    ASSERT_EQ(y, expected) << bits;
  }
}

// What pools of this backend keep: of each type that the device reports.
std::vector<cpu::kv_format> kept_formats() {
  std::vector<cpu::kv_format> out;
  for (uint32_t dtype = 0; dtype < 32; ++dtype)
    if ((cpu::kv_dtypes >> dtype & 1) != 0) out.push_back(cpu::kv_format_of(dtype));
  return out;
}

TEST(kv_formats, a_type_has_a_format_exactly_where_the_device_reports_it) {
  EXPECT_EQ(cpu::kv_format_of(BITNET_DTYPE_F16), cpu::kv_format::f16);
  for (uint32_t dtype = 0; dtype < 40; ++dtype) {
    const bool reported = dtype < 32 && (cpu::kv_dtypes >> dtype & 1) != 0;
    EXPECT_EQ(cpu::kv_format_of(dtype) != cpu::kv_format::none, reported) << dtype;
    const uint64_t bytes = sdk::kv_head_bytes(dtype, 64);
    const auto* format = sdk::find_format(static_cast<uint32_t>(cpu::kv_format_of(dtype)));
    if (!reported) continue;
    ASSERT_NE(format, nullptr) << dtype;
    EXPECT_EQ(sdk::row_bytes(*format, 64), bytes) << dtype;
  }
}

TEST(kv_formats, a_pool_of_a_type_that_is_not_reported_is_rejected) {
  for (uint32_t dtype = 0; dtype < 40; ++dtype) {
    bitnet_kv_config config{};
    config.struct_size = sizeof config;
    config.n_layers = config.n_kv_heads = config.n_blocks = 1;
    config.head_dim_k = config.head_dim_v = config.block_tokens = 32;
    config.dtype_k = BITNET_DTYPE_F32;
    config.dtype_v = dtype;
    sdk::kv_storage storage{};
    uint64_t bytes = 0;
    const bitnet_status status =
        sdk::describe(&config, cpu::kv_dtypes, storage, bytes, sdk::reporter(nullptr, "test"));
    const bool known = cpu::kv_format_of(dtype) != cpu::kv_format::none;
    EXPECT_EQ(status, known ? BITNET_OK : BITNET_UNSUPPORTED) << dtype;
  }
}

TEST_P(each_isa, rows_without_a_format_are_not_read) {
  const std::vector<uint8_t> row(64, 0x3c);  // 1.06 as halves
  const float p = 1.0f;
  std::vector<float> y(16, 0.25f);
  GetParam()->weighted_sum(
      {cpu::kv_format::none, row.data(), row.size(), &p, 1, y.data(), 16, 1, 16, 1, nullptr});
  EXPECT_EQ(y, std::vector<float>(16, 0.25f));
}

TEST_P(each_turn, rows_without_a_format_are_not_read) {
  const std::vector<uint8_t> row(64, 0x3c);  // 1.06 as halves
  std::vector<float> turned(16 * cpu::keys_at_once, 0.25f);
  cpu::keys_tile keys{cpu::kv_format::none, {}, 16, turned.data()};
  std::fill_n(keys.rows, cpu::keys_at_once, row.data());
  GetParam()->attention.turn_keys(keys);
  EXPECT_EQ(turned, std::vector<float>(turned.size(), 0.25f));
}

TEST_P(each_isa, weighted_sum_equals_the_scalar_form_bit_for_bit) {
  const struct {
    uint64_t rows, width, heads;
    const char* why;
  } rows[] = {{64, 128, 4, "a block of BitNet b1.58 2B"},
              {1, 8, 1, "one row"},
              {3, 100, 5, "a tail, and a head past a tile of heads"},
              {5, 7, 3, "nothing but a tail"},
              {0, 64, 2, "no rows"},
              {2, 40, 9, "a short vector"},
              {7, 96, 3, "three blocks"},
              {9, 32, 5, "one block"}};
  for (const cpu::kv_format format : kept_formats()) {
    for (const auto& row : rows) {
      SCOPED_TRACE(row.why);
      const uint64_t row_bytes =
          sdk::row_bytes(*sdk::find_format(static_cast<uint32_t>(format)), row.width);
      if (row_bytes == 0) continue;  // no whole number of blocks
      std::mt19937 random(3);
      guarded_memory<uint8_t> v(row.rows * row_bytes);
      for (uint64_t i = 0; i < v.size(); ++i) v[i] = static_cast<uint8_t>(random() & 0xbb);
      guarded_memory<float> p(row.rows * row.heads), y(row.width * row.heads);
      for (uint64_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>(random() % 100) / 99.0f;
      for (uint64_t i = 0; i < y.size(); ++i) y[i] = 0.25f;
      std::vector<float> expected(y.size(), 0.25f);
      cpu::weighted_rows a{format,    v.data(), row_bytes, p.data(),  row.rows, expected.data(),
                           row.width, row.rows, row.width, row.heads, v.data()};
      cpu::weighted_sum_scalar(a);
      a.y = y.data();
      GetParam()->weighted_sum(a);
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(variants, each_isa, testing::ValuesIn(real_and_emulated_forms()),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, each_panel,
                         testing::ValuesIn(those_with(has_panel, real_and_emulated_forms())),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, each_table,
                         testing::ValuesIn(those_with(has_tables, real_and_emulated_forms())),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, each_turn,
                         testing::ValuesIn(those_with(has_scores, all_forms())), form_name);

}  // namespace
}  // namespace bitnet::parity
