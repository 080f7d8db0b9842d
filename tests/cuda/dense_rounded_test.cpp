// Dense products of rounded activations against sums in double: every format, few tokens and many,
// as gpu-common asks for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/sdk/formats.hpp"
#include "gpu-common/plan/plan.hpp"
#include "kernel_bench.hpp"
#include "kernel_table.hpp"

namespace bitnet::cuda::test {
namespace {

constexpr uint32_t untouched = 0xcdcdcdcdu, guard = 64;  // words on both sides of y
constexpr uint32_t first_row = 3, whole_more = 5;        // of a matrix that a binding has a part of

struct shape {
  const char* why;
  uint32_t k, m;
};

uint16_t bits_of(uint32_t format, float x) {
  if (format == BITNET_FORMAT_F16) return sdk::f32_to_f16(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);  // cut off: any number of the format will do
}
float value_of(uint32_t format, uint16_t bits) {
  if (format == BITNET_FORMAT_F16) return sdk::f16_to_f32(bits);
  const uint32_t wide = uint32_t{bits} << 16;
  float out = 0;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

// Half a unit in the last place, as ops.h has it.
double unit_of(uint32_t format) {
  return std::ldexp(1.0, format == BITNET_FORMAT_F16 ? -11 : -8);
}

struct product {
  uint32_t format, k, m, tokens;
  std::vector<uint16_t> weights;  // (m, k)
  std::vector<float> x;           // (tokens, k)

  // Weights and activations as large as these.
  product(uint32_t of, const shape& s, uint32_t n, float weight = 1, float activation = 1)
      : format(of), k(s.k), m(s.m), tokens(n) {
    std::mt19937 random(k * 131 + m + n);
    const auto uniform = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
    for (uint64_t i = 0; i < uint64_t{m} * k; ++i)
      weights.push_back(bits_of(format, uniform() * weight));
    for (uint64_t i = 0; i < uint64_t{tokens} * k; ++i) x.push_back(uniform() * activation);
  }

  // Rows of whole words, as gpu-common uploads them.
  std::vector<uint32_t> matrix() const {
    const uint64_t words = gpu::row_words(format, k);
    std::vector<uint16_t> halves(2 * words * m, 0);
    for (uint64_t r = 0; r < m; ++r) std::copy_n(&weights[r * k], k, &halves[2 * words * r]);
    std::vector<uint32_t> out(words * m);
    std::memcpy(out.data(), halves.data(), halves.size() * 2);
    return out;
  }

  struct wanted {
    double sum = 0, most_off = 0;
  };
  // What is off: the factor that is rounded by a unit, as ops.h has it, each of the k / 16 tiles
  // and what comes behind them by one of f32, by half a step of the smallest f16 of the row what
  // that has no normal number for, and by a step of the smallest f32.
  wanted expected(uint32_t t, uint32_t r) const {
    wanted out;
    double sizes = 0, all_weights = 0, largest = 0;
    for (uint32_t i = 0; i < k; ++i) {
      const double w = value_of(format, weights[uint64_t{r} * k + i]), a = x[uint64_t{t} * k + i];
      out.sum += w * a;
      sizes += std::fabs(w * a);
      all_weights += std::fabs(w);
      if (std::isfinite(a)) largest = std::max(largest, std::fabs(a));
    }
    const double unit = unit_of(format);
    const double of_sums = (k / 16.0 + 3) * std::ldexp(1.0, -24);
    EXPECT_LE(of_sums * (1 + unit), unit) << "ops.h permits twice the unit, and this is more";
    out.most_off = (unit + of_sums * (1 + unit)) * sizes + std::ldexp(1.0, -149);
    if (format == BITNET_FORMAT_F16) out.most_off += all_weights * std::ldexp(largest, -39);
    return out;
  }
};

gpu::kernel_spec spec_of(gpu::kernel_id id, uint32_t format) {
  return {id, {group_threads, 32, gpu::most_tokens, format}};
}
uint32_t share(uint32_t n, uint32_t of) {
  return (n + of - 1) / of;
}

class dense_rounded : public testing::Test {
 protected:
  void SetUp() override {
    bench_.open();
    // sm_75 has no tiles of bf16, which a device would say; here the driver runs as one.
    const char* stand_in = std::getenv("BITNET_STAND_IN");
    if (!stand_in || std::string_view(stand_in).find("code=75") == std::string_view::npos)
      formats_.push_back(BITNET_FORMAT_BF16);
  }

  // y (tokens, m + whole_more), in a recording that was made for `most` tokens, with groups for
  // `at_once`; 0: for all of them.
  std::vector<float> compute(const product& of, uint32_t most, uint32_t at_once = 0) {
    const uint32_t whole_m = of.m + whole_more;
    const gpu::binding all =
        bench_.put(std::vector<uint32_t>(uint64_t{most} * whole_m + 2 * guard, untouched));
    const gpu::binding header = bench_.put<uint32_t>({of.tokens, 0, 0, 0});
    // Of NaN, so that what is read and was not written shows.
    const gpu::binding rounded =
        bench_.put(std::vector<uint32_t>(most * gpu::rounded_row_words(of.k), 0x7fff7fffu));
    bench_.add(spec_of(gpu::kernel_id::round_rows, of.format), {header, bench_.put(of.x), rounded},
               gpu::round_rows_params{0, of.k}, 1, most);
    const gpu::kernel_spec spec = spec_of(gpu::kernel_id::linear_dense_rounded, of.format);
    bench_.add(spec,
               {header, rounded, bench_.put(of.matrix()),
                gpu::binding{all.memory, uint64_t{4} * guard, all.bytes - uint64_t{4} * guard}},
               gpu::linear_dense_rounded_params{
                   0, of.k, whole_m, static_cast<uint32_t>(gpu::row_words(of.format, of.k)),
                   first_row, of.m},
               share(of.m, gpu::rows_of_group(spec)),
               share(at_once == 0 ? most : at_once, spec.constants[2]));
    bench_.run();
    const std::vector<uint32_t> words = bench_.get<uint32_t>(all);
    bench_.clear();
    for (uint64_t i = 0; i < words.size(); ++i) {
      const uint64_t at = i - guard, t = at / whole_m, r = at % whole_m;
      const bool ours = i >= guard && t < of.tokens && r >= first_row && r < first_row + of.m;
      EXPECT_TRUE(ours || words[i] == untouched) << "word " << i << " belongs to no row";
    }
    std::vector<float> y(words.size() - guard);
    std::memcpy(y.data(), words.data() + guard, y.size() * 4);
    return y;
  }
  static float at(const product& of, const std::vector<float>& y, uint32_t t, uint32_t r) {
    return y[uint64_t{t} * (of.m + whole_more) + first_row + r];
  }

  void expect_close(const product& of, uint32_t most, uint32_t at_once = 0) {
    SCOPED_TRACE(std::to_string(of.tokens) + " of " + std::to_string(most));
    const std::vector<float> y = compute(of, most, at_once);
    for (uint32_t t = 0; t < of.tokens; ++t)
      for (uint32_t r = 0; r < of.m; ++r) {
        const product::wanted w = of.expected(t, r);
        ASSERT_NEAR(at(of, y, t, r), w.sum, w.most_off) << "token " << t << " row " << r;
      }
  }

  std::vector<uint32_t> formats_{BITNET_FORMAT_F16};
  kernel_bench bench_;
};

TEST_F(dense_rounded, rows_and_elements_that_end_within_a_tile) {
  const shape rows[] = {
      {"one element", 1, 1},
      {"less than a load, fewer rows than a tile", 5, 15},
      {"a load and one element, one row past a tile", 9, 17},
      {"rows that no load of 16 bytes is aligned to", 62, 20},
      {"one stage, rows of a warp", 64, 16},
      {"an odd row of a stage and one element", 65, 33},
      {"an odd number of stages, rows of a group and one", 192, 129},
      {"two stages and a half", 160, 64},
      {"a width that ends in an odd word", 1003, 31},
      {"width of BitNet b1.58 2B", 2560, 66},
  };
  for (const uint32_t format : formats_)
    for (const shape& s : rows)
      for (const uint32_t tokens : {5u, 8u, 13u, 16u, 17u, 67u}) {
        SCOPED_TRACE(std::string(s.why) + ", format " + std::to_string(format));
        expect_close(product(format, s, tokens), tokens);
      }
}

TEST_F(dense_rounded, steps_of_fewer_tokens_than_recorded) {
  for (const uint32_t format : formats_)
    for (const uint32_t tokens : {1u, 7u, 9u, 16u, 17u, 64u, 65u})
      for (const uint32_t most : {16u, 64u, 128u})
        if (tokens <= most) expect_close(product(format, {"", 96, 70}, tokens), most);
}

// What a group has shared is overwritten when all have read it: an odd number of stages ends where
// the next tokens begin.
TEST_F(dense_rounded, groups_take_several_tiles_in_turn) {
  for (const uint32_t format : formats_)
    for (const uint32_t k : {64u, 160u}) {
      expect_close(product(format, {"", k, 70}, 45), 45, 4);
      expect_close(product(format, {"", k, 140}, 140), 140, 20);
    }
}

// f16 ends at 65504, f32 at 3.4e38, and below 2^-14 f16 has fewer bits.
TEST_F(dense_rounded, activations_of_every_size_stay_numbers) {
  for (const uint32_t format : formats_)
    for (const float size : {1e-44f, 1e-38f, 1e-30f, 1e-6f, 6e4f, 7e4f, 1e30f, 3.4e38f}) {
      SCOPED_TRACE(size);
      expect_close(product(format, {"", 130, 20}, 9, 1e-4f, size), 9);
    }
}

TEST_F(dense_rounded, each_row_has_a_power_of_its_own) {
  for (const uint32_t format : formats_) {
    product of(format, {"", 100, 20}, 18);
    for (uint32_t t = 0; t < of.tokens; ++t)
      for (uint32_t i = 0; i < of.k; ++i)
        of.x[t * of.k + i] = std::ldexp(of.x[t * of.k + i], static_cast<int>(t * 12) - 100);
    expect_close(of, of.tokens);
  }
}

// Numbers that both formats have, and sums that f32 has: the power is undone exactly.
TEST_F(dense_rounded, exactly_representable_products_are_exact) {
  for (const uint32_t format : formats_)
    for (const int power : {-120, -20, 0, 20, 100}) {
      SCOPED_TRACE(power);
      product of(format, {"", 200, 40}, 20);
      std::mt19937 random(5);
      for (uint16_t& w : of.weights)
        w = bits_of(format, static_cast<float>(static_cast<int>(random() % 17) - 8));
      for (float& a : of.x)
        a = std::ldexp(static_cast<float>(static_cast<int>(random() % 201) - 100), power);
      const std::vector<float> y = compute(of, of.tokens);
      for (uint32_t t = 0; t < of.tokens; ++t)
        for (uint32_t r = 0; r < of.m; ++r)
          ASSERT_EQ(double{at(of, y, t, r)}, of.expected(t, r).sum) << t << ", " << r;
    }
}

TEST_F(dense_rounded, nan_and_infinity_stay_in_their_row) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const uint32_t format : formats_) {
    product of(format, {"", 70, 20}, 9, 1, 1e6f);
    of.x[2 * of.k + 69] = infinity;
    of.x[4 * of.k] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> y = compute(of, of.tokens);
    for (uint32_t t = 0; t < of.tokens; ++t)
      for (uint32_t r = 0; r < of.m; ++r) {
        const float found = at(of, y, t, r), w = value_of(format, of.weights[r * of.k + 69]);
        ASSERT_EQ(std::isnan(found), t == 4) << t << ", " << r;
        ASSERT_EQ(std::isinf(found), t == 2) << "beside it all are finite: " << t << ", " << r;
        ASSERT_TRUE(t != 2 || (found > 0) == (w > 0)) << r;
      }
  }
}

// For few tokens and for many, alone and beside others.
TEST_F(dense_rounded, a_row_has_the_same_bits_in_every_step) {
  for (const uint32_t format : formats_) {
    const product whole(format, {"", 300, 140}, 70);
    const std::vector<float> all = compute(whole, whole.tokens);
    for (const uint32_t tokens : {1u, 16u, 17u}) {
      product some = whole;
      some.tokens = tokens;
      some.x.resize(uint64_t{tokens} * some.k);
      const std::vector<float> y = compute(some, tokens);
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t r = 0; r < some.m; ++r)
          ASSERT_EQ(at(some, y, t, r), at(whole, all, t, r)) << tokens << ": " << t << ", " << r;
    }
  }
}

// Which kernel runs, and how many groups of it.
TEST(dense_rounded_table, kernel_for_each_number_of_tokens) {
  const struct {
    uint32_t format, m, most;
    const char* function;
    uint32_t x, y;
    forms off = {};
  } rows[] = {
      {BITNET_FORMAT_F16, 128256, 5, "linear_dense_rounded_f16_few", 2004, 1},
      {BITNET_FORMAT_F16, 65, 16, "linear_dense_rounded_f16_few", 2, 1},
      {BITNET_FORMAT_F16, 129, 17, "linear_dense_rounded_f16_many", 2, 1},
      {BITNET_FORMAT_BF16, 128256, 512, "linear_dense_rounded_bf16_many", 1002, 8},
      {BITNET_FORMAT_BF16, 1, 8, "linear_dense_rounded_bf16_few", 1, 1},
      // Either does the other's work.
      {BITNET_FORMAT_F16,
       129,
       5,
       "linear_dense_rounded_f16_many",
       2,
       1,
       {"linear_dense_rounded_f16_few"}},
      {BITNET_FORMAT_F16,
       129,
       17,
       "linear_dense_rounded_f16_few",
       3,
       2,
       {"linear_dense_rounded_f16_many"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.most);
    const gpu::kernel_spec spec = spec_of(gpu::kernel_id::linear_dense_rounded, row.format);
    kernel_form form;
    ASSERT_TRUE(find_form(spec, row.off, form));
    uint32_t params[gpu::max_params] = {};
    const gpu::linear_dense_rounded_params p{0, 64, row.m, 32, 0, row.m};
    std::memcpy(params, &p, sizeof p);
    const grid how = grid_of(form, spec, params, share(row.m, gpu::rows_of_group(spec)),
                             share(row.most, spec.constants[2]), 1);
    ASSERT_NE(how.tiled, nullptr);
    EXPECT_EQ(how.tiled->function, std::string_view(row.function));
    EXPECT_EQ(how.x, row.x);
    EXPECT_EQ(how.y, row.y);
  }
  kernel_form none;
  EXPECT_FALSE(
      find_form(spec_of(gpu::kernel_id::linear_dense_rounded, BITNET_FORMAT_Q8_0), {}, none));
  EXPECT_FALSE(find_form(spec_of(gpu::kernel_id::linear_dense_rounded, BITNET_FORMAT_F16),
                         {"linear_dense_rounded_f16_few", "linear_dense_rounded_f16_many"}, none));
  EXPECT_FALSE(
      find_form(spec_of(gpu::kernel_id::round_rows, BITNET_FORMAT_F16), {"round_rows_f16"}, none));
  EXPECT_TRUE(
      find_form(spec_of(gpu::kernel_id::round_rows, BITNET_FORMAT_BF16), {"round_rows_f16"}, none));
}

}  // namespace
}  // namespace bitnet::cuda::test
