// Products of ternary rows against their definition in bitnet/abi/ops.h, computed slowly here, bit
// for bit: every kernel for one token, few and many, as gpu-common asks for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu-common/plan/plan.hpp"
#include "kernel_bench.hpp"
#include "kernel_table.hpp"

namespace bitnet::cuda::test {
namespace {

constexpr uint32_t untouched = 0xcdcdcdcdu, guard = 64;  // words on both sides of y

struct shape {
  const char* why;
  uint32_t k, m, scale_group, given;
  bool add = false;
};

gpu::kernel_spec spec_of(const shape& s, uint32_t tokens) {
  const bool factors = s.scale_group != 0 || s.given != 0;
  return {gpu::kernel_id::linear_ternary,
          {group_threads, factors ? 1u : 32u, std::min(tokens, gpu::most_tokens), 4, s.given}};
}
gpu::linear_ternary_params params_of(const shape& s, uint32_t first_row, uint32_t whole_m) {
  return {0,
          s.k,
          whole_m,
          static_cast<uint32_t>(gpu::row_words(BITNET_FORMAT_TERNARY2, s.k)),
          first_row,
          s.m,
          s.scale_group,
          s.add ? 1u : 0u};
}
uint32_t share(uint32_t n, uint32_t of) {
  return (n + of - 1) / of;
}

// A product's numbers, of a matrix of which a binding has only some rows.
struct product {
  static constexpr uint32_t first_row = 3, whole_more = 5;
  std::vector<int8_t> weights;  // (m, k)
  std::vector<uint32_t> matrix, q;
  std::vector<float> s, scales, residual;
  uint32_t whole_m, q_words;

  product(const shape& of, uint32_t tokens) : whole_m(of.m + whole_more) {
    std::mt19937 random(of.k * 131 + of.m + tokens);
    const auto uniform = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
    const uint32_t row_bytes = 4 * params_of(of, 0, 0).row_words;
    std::vector<uint8_t> packed(uint64_t{of.m} * row_bytes, 0);
    for (uint64_t r = 0; r < of.m; ++r)
      for (uint64_t i = 0; i < uint64_t{row_bytes} * 4; ++i) {
        const uint32_t code = random() % 3;  // also past k, where activations are zeros
        if (i < of.k) weights.push_back(static_cast<int8_t>(static_cast<int>(code) - 1));
        packed[r * row_bytes + i / 128 * 32 + i % 32] |=
            static_cast<uint8_t>(code << (6 - 2 * (i % 128 / 32)));
      }
    matrix.resize(packed.size() / 4);
    std::memcpy(matrix.data(), packed.data(), packed.size());
    q_words = static_cast<uint32_t>(gpu::i8_row_words(of.k));
    std::vector<int8_t> codes(uint64_t{tokens} * q_words * 4, 0);
    for (uint64_t t = 0; t < tokens; ++t)
      for (uint64_t i = 0; i < of.k; ++i)
        codes[t * q_words * 4 + i] = static_cast<int8_t>(static_cast<int>(random() % 256) - 128);
    q.resize(codes.size() / 4);
    std::memcpy(q.data(), codes.data(), codes.size());
    for (uint32_t i = 0; i < tokens * (of.given == 0 ? 1 : of.k / of.given); ++i)
      s.push_back(uniform() + 2);
    // By which one divides as it is: so small are those of activations near the largest float.
    for (uint32_t t = 5; of.given == 0 && t < tokens; t += 7)
      s[t] = t % 2 ? 0x1.8p-100f : 0x1.8p70f;
    for (uint32_t i = 0; i < (of.scale_group == 0 ? 1 : whole_m * (of.k / of.scale_group)); ++i)
      scales.push_back(uniform());
    for (uint32_t i = 0; i < tokens * whole_m; ++i) residual.push_back(uniform());
  }

  float expected(const shape& of, uint32_t t, uint32_t r) const {
    const uint32_t own = of.scale_group == 0 ? of.k : of.scale_group, given = of.given;
    const uint32_t shorter = given == 0 ? own : std::min(own, given);
    const uint32_t longer = given == 0 ? of.k : std::max(own, given);
    const auto* code = reinterpret_cast<const int8_t*>(&q[uint64_t{t} * q_words]);
    float inner = 0, outer = 0;
    int sum = 0;
    for (uint32_t i = 0; i < of.k; ++i) {
      sum += weights[uint64_t{r} * of.k + i] * code[i];
      if ((i + 1) % shorter != 0) continue;
      if (of.scale_group == 0 && given == 0)
        return static_cast<float>(sum) / s[t] * scales[0] + more(of, t, r);
      const float of_weights =
          scales[of.scale_group == 0 ? 0 : uint64_t{first_row + r} * (of.k / own) + i / own];
      const float of_token = given == 0 ? 1 : s[t * (of.k / given) + i / given];
      const bool token_first = given != 0 && given <= own;
      inner += static_cast<float>(sum) * (token_first ? of_token : of_weights);
      sum = 0;
      if ((i + 1) % longer != 0) continue;
      outer = given == 0 ? inner : outer + inner * (token_first ? of_weights : of_token);
      inner = 0;
    }
    return (given == 0 ? outer / s[t] : outer) + more(of, t, r);
  }
  // -0 changes nothing.
  float more(const shape& of, uint32_t t, uint32_t r) const {
    return of.add ? residual[t * whole_m + first_row + r] : -0.0f;
  }
};

class ternary : public testing::Test {
 protected:
  void SetUp() override { bench_.open(); }

  // Kernels that are added from now on do without these.
  void do_without(const forms& off) { bench_.without = off; }

  // Of a recording that was made for `most` tokens.
  void expect_exact(const shape& of, uint32_t tokens, uint32_t most) {
    SCOPED_TRACE(std::string(of.why) + ": " + std::to_string(tokens) + " of " +
                 std::to_string(most));
    const product with(of, tokens);
    const gpu::kernel_spec spec = spec_of(of, most);
    const gpu::binding all =
        bench_.put(std::vector<uint32_t>(uint64_t{most} * with.whole_m + 2 * guard, untouched));
    bench_.add(spec,
               {bench_.put<uint32_t>({tokens, 0, 0, 0}), bench_.put(with.q), bench_.put(with.s),
                bench_.put(with.matrix), bench_.put(with.scales), bench_.put(with.residual),
                gpu::binding{all.memory, uint64_t{4} * guard, all.bytes - uint64_t{4} * guard}},
               params_of(of, product::first_row, with.whole_m),
               share(of.m, gpu::rows_of_group(spec)), share(most, spec.constants[2]));
    bench_.run();
    const std::vector<uint32_t> y = bench_.get<uint32_t>(all);
    bench_.clear();
    expect_rows(of, with, y, tokens);
  }
  static void expect_rows(const shape& of, const product& with, const std::vector<uint32_t>& y,
                          uint32_t tokens) {
    for (uint64_t i = 0; i < y.size(); ++i) {
      const uint64_t at = i - guard, t = at / with.whole_m, r = at % with.whole_m;
      const bool ours =
          i >= guard && t < tokens && r >= product::first_row && r < product::first_row + of.m;
      uint32_t wanted = untouched;
      if (ours) {
        const float value = with.expected(of, static_cast<uint32_t>(t),
                                          static_cast<uint32_t>(r - product::first_row));
        std::memcpy(&wanted, &value, 4);
      }
      ASSERT_EQ(y[i], wanted) << "token " << t << " column " << r << " of " << with.whole_m;
    }
  }

 private:
  kernel_bench bench_;
};

TEST_F(ternary, every_number_of_tokens_to_40) {
  const shape rows[] = {
      {"three blocks", 384, 70, 0, 0},
      {"a factor to 32 activations, one to 128 weights", 384, 19, 128, 32},
  };
  for (const shape& of : rows)
    for (uint32_t tokens = 1; tokens <= 40; ++tokens) expect_exact(of, tokens, tokens);
}

TEST_F(ternary, steps_of_fewer_tokens_than_recorded) {
  const shape rows[] = {
      {"one scale", 256, 65, 0, 0, true},
      {"factors", 256, 65, 64, 32, true},
  };
  for (const shape& of : rows)
    for (const uint32_t tokens : {1u, 2u, 5u, 9u, 16u, 17u, 33u})
      for (const uint32_t most : {4u, 16u, 64u})
        if (tokens <= most) expect_exact(of, tokens, most);
}

TEST_F(ternary, rows_that_end_within_a_tile) {
  const shape rows[] = {
      {"one element", 1, 1, 0, 0},
      {"less than half a block, fewer rows than a tile", 50, 15, 0, 0},
      {"one block, one tile", 128, 16, 0, 0},
      {"one element past a block, one row past a tile", 129, 17, 0, 0},
      {"an odd number of blocks, rows of a warp and one", 640, 65, 0, 0},
      {"five shares of a warp, and a residual", 1200, 63, 0, 0, true},
      {"rows of a group and one", 200, 257, 0, 0},
      {"width of BitNet b1.58 2B", 2560, 66, 0, 0},
  };
  for (const shape& of : rows)
    for (const uint32_t tokens : {1u, 3u, 8u, 13u, 16u, 40u}) expect_exact(of, tokens, tokens);
  do_without({"linear_ternary_tiles_one"});
  for (const shape& of : rows) expect_exact(of, 1, 1);
}

// Each of four warps takes every fourth two blocks of 16 rows.
TEST_F(ternary, one_token_by_tiles) {
  const shape rows[] = {
      {"two blocks of each warp", 1024, 16, 0, 0},
      {"one block more, which is half of what a warp takes", 1024 + 128, 17, 0, 0, true},
      {"half a block more", 1024 + 64, 15, 0, 0},
      {"a warp has one turn more than the others", 2048 + 256, 33, 0, 0},
      {"blocks for one warp", 256, 40, 0, 0},
      {"blocks for three warps", 768, 1, 0, 0, true},
      {"of the feed-forward part of BitNet b1.58 2B", 6912, 66, 0, 0, true},
  };
  for (const shape& of : rows) expect_exact(of, 1, 1);
}

TEST_F(ternary, groups_of_every_length) {
  const shape rows[] = {
      {"32 weights", 160, 17, 32, 0},
      {"64 weights, a residual", 320, 33, 64, 0, true},
      {"128 weights", 640, 16, 128, 0},
      {"one scale, 32 activations", 288, 20, 0, 32},
      {"one scale, 128 activations", 1152, 18, 0, 128},
      {"32 of both", 96, 15, 32, 32},
      {"64 weights, 32 activations, a residual", 320, 130, 64, 32, true},
      {"128 weights, 64 activations", 640, 129, 128, 64},
      {"128 of both", 1280, 34, 128, 128},
      {"32 weights, 128 activations", 640, 33, 32, 128},
      {"64 weights, 128 activations", 256, 31, 64, 128},
      {"160 weights, 32 activations: longer groups end within blocks", 480, 21, 160, 32},
      {"256 weights, 64 activations", 768, 22, 256, 64},
      {"40 weights: no whole tile", 200, 19, 40, 0},
      {"256 weights: more than a block", 512, 9, 256, 0},
  };
  for (const shape& of : rows)
    for (const uint32_t tokens : {1u, 2u, 9u, 16u, 37u}) expect_exact(of, tokens, tokens);
}

// A warp takes eight blocks of four times four rows, and a group 32 blocks in a turn.
TEST_F(ternary, one_token_of_groups) {
  const shape rows[] = {
      {"a block of each warp, one row", 4 * 1024, 1, 128, 32},
      {"a turn and a block", 4096 + 128, 35, 128, 32},
      {"two turns and a half block, a residual", 8192 + 64, 18, 64, 32, true},
      {"groups of 32 end the row within a block", 4096 + 96, 17, 32, 32},
      {"32 of the weights in three turns", 12288, 16, 32, 0},
      {"32 of the weights, 64 activations", 4096 + 64, 20, 32, 64},
      {"64 of the weights, 128 activations", 8192 + 128, 20, 64, 128},
      {"one scale, a row of one block", 128, 16, 0, 128},
      {"one scale, rows of three turns", 9216, 33, 0, 32, true},
      {"96 weights to a factor: longer groups end within blocks", 4224, 21, 96, 32},
      {"256 weights", 2560, 66, 256, 0},
      {"256 weights, a residual, an odd number of groups", 8192 + 256, 31, 256, 0, true},
      {"256 weights, 32 activations", 4608, 31, 256, 32},
      {"512 weights", 4608, 15, 512, 0},
      {"1024 weights", 5120, 17, 1024, 0},
      {"width of Ternary Bonsai 27B", 5120, 33, 128, 0},
  };
  for (const shape& of : rows) expect_exact(of, 1, 1);
  expect_exact({"several tokens, one by one", 2560, 40, 256, 0, true}, 3, 5);
}

// The activations of such products: rows that end in a block of 128, so that lanes have padding.
TEST(activations, are_quantised_in_groups) {
  kernel_bench bench;
  bench.open();
  for (const uint32_t group : {32u, 64u, 128u})
    for (const uint32_t count : {1u, 3u, 5u, 12u}) {
      SCOPED_TRACE(std::to_string(count) + " groups of " + std::to_string(group));
      const uint32_t k = group * count, rows = 3;
      const auto stride = static_cast<uint32_t>(gpu::i8_row_words(k));
      std::mt19937 random(k);
      std::vector<float> x(uint64_t{rows} * k), d;
      for (float& one : x) one = std::uniform_real_distribution<float>(-3, 3)(random);
      std::fill_n(&x[uint64_t{rows} * k - group], group, 0.0f);
      std::vector<int8_t> codes(uint64_t{rows} * stride * 4, 0);
      for (uint32_t g = 0; g < rows * count; ++g) {
        float largest = 1e-30f;
        for (uint32_t i = 0; i < group; ++i)
          largest = std::max(largest, std::fabs(x[g * group + i]));
        d.push_back(largest / 127.0f);
        for (uint32_t i = 0; i < group; ++i)
          codes[g / count * stride * 4 + g % count * group + i] =
              static_cast<int8_t>(std::nearbyint(x[g * group + i] * (127.0f / largest)));
      }
      std::vector<uint32_t> q(codes.size() / 4);
      std::memcpy(q.data(), codes.data(), codes.size());
      for (const uint32_t groups : {1u, 3u}) {
        const gpu::binding to = bench.put(std::vector<uint32_t>(q.size(), untouched));
        const gpu::binding factors = bench.put(std::vector<float>(d.size()));
        bench.add({gpu::kernel_id::act_quant_groups, {group_threads}},
                  {bench.put<uint32_t>({rows, 0, 0, 0}), bench.put(x), to, factors},
                  gpu::act_quant_groups_params{0, k, group}, groups, 2);
        bench.run();
        EXPECT_EQ(bench.get<uint32_t>(to), q);
        EXPECT_EQ(bench.get<float>(factors), d);
        bench.clear();
      }
    }
}

// Where the device has sm_90's tensor cores; the larger tile where it has few processors.
TEST_F(ternary, prompts_by_warp_groups) {
  const shape rows[] = {
      {"one element of a stage", 1, 64, 0, 0},
      {"half a stage", 128, 65, 0, 0},
      {"one element past half a stage, a residual", 129, 257, 0, 0, true},
      {"a stage, a tile", 256, 256, 0, 0},
      {"as many stages as there are", 1024, 129, 0, 0},
      {"one past them", 1100, 70, 0, 0, true},
      {"width of BitNet b1.58 2B", 2560, 66, 0, 0},
      {"of its feed-forward part, which ends in half a stage", 6912 + 128, 64, 0, 0},
  };
  for (const shape& of : rows)
    for (const uint32_t tokens : {33u, 64u, 65u, 130u}) expect_exact(of, tokens, tokens);
  expect_exact({"a step of fewer tokens", 300, 300, 0, 0, true}, 70, 512);
}

// The same with factors of groups; from 65 tokens on.
TEST_F(ternary, prompts_of_groups_by_warp_groups) {
  const shape rows[] = {
      {"32 activations, 128 weights: a stage", 256, 128, 128, 32},
      {"half a stage, a row past both warp groups", 128, 129, 128, 32},
      {"more stages than there are, a residual", 1280 + 128, 70, 128, 32, true},
      {"groups end within a block", 1024 + 32, 65, 32, 32},
      {"64 activations, 128 weights", 640, 150, 128, 64},
      {"128 of both", 1280, 64, 128, 128},
      {"160 weights: longer groups end within blocks", 480, 200, 160, 32},
      {"256 weights", 768, 100, 256, 32},
      {"one scale, 32 activations", 288, 90, 0, 32},
      {"one scale, 128 activations, a residual", 1152, 257, 0, 128, true},
      {"32 weights", 160, 129, 32, 0},
      {"64 weights, a residual", 320, 65, 64, 0, true},
      {"128 weights: more stages than there are", 1152, 140, 128, 0},
      {"width of Ternary Bonsai 27B", 5120, 66, 128, 32},
  };
  for (const shape& of : rows)
    for (const uint32_t tokens : {65u, 128u, 130u}) expect_exact(of, tokens, tokens);
  expect_exact({"a step of fewer tokens", 384, 300, 128, 32, true}, 70, 512);
}

// What stands in for forms that a device does without.
TEST(ternary_table, kernel_that_stands_in) {
  const struct {
    shape of;
    uint32_t tokens;
    forms off;
    const char* function;
  } rows[] = {
      {{"", 2560, 300, 0, 0}, 40, {"linear_ternary_wide"}, "linear_ternary_narrow"},
      {{"", 2560, 300, 0, 0}, 40, {"linear_ternary_narrow"}, "linear_ternary_wide"},
      {{"", 2560, 300, 0, 0}, 40, forms_by_warp_groups(), "linear_ternary_many"},
      {{"", 2560, 300, 0, 0}, 20, {"linear_ternary_many"}, "linear_ternary_few"},
      {{"", 2560, 300, 0, 0}, 8, {"linear_ternary_few"}, "linear_ternary_many"},
      {{"", 2560, 300, 0, 0}, 40, optional_forms(), "linear_ternary_1"},
      {{"", 2560, 300, 0, 0}, 1, {"linear_ternary_tiles_one"}, "linear_ternary_1"},
      {{"", 2560, 300, 128, 32}, 1, {"linear_ternary_factored_one"}, "linear_ternary_factored"},
      {{"", 2560, 300, 128, 32},
       40,
       {"linear_ternary_factored_many"},
       "linear_ternary_factored_few"},
      {{"", 2560, 300, 128, 32}, 40, optional_forms(), "linear_ternary_factored"},
      {{"", 2560, 300, 128, 32}, 80, forms_by_warp_groups(), "linear_ternary_factored_many"},
      {{"", 2560, 300, 128, 32},
       80,
       {"linear_ternary_factored_many"},
       "linear_ternary_factored_wide"},
  };
  for (const auto& row : rows) {
    const gpu::kernel_spec spec = spec_of(row.of, row.tokens);
    kernel_form form;
    ASSERT_TRUE(find_form(spec, row.off, form));
    uint32_t params[gpu::max_params] = {};
    const gpu::linear_ternary_params p = params_of(row.of, 0, row.of.m);
    std::memcpy(params, &p, sizeof p);
    if (!has_warp_groups(90) && std::string(row.function).find("_1") == std::string::npos) continue;
    const grid how = grid_of(form, spec, params, share(row.of.m, gpu::rows_of_group(spec)),
                             share(row.tokens, spec.constants[2]), 1);
    EXPECT_EQ(how.tiled ? how.tiled->function : form.function, row.function) << row.tokens;
  }
}

// Which kernel runs, and how many groups of it.
struct choice {
  const char* why;
  shape of;
  uint32_t tokens;
  const char* function;
  uint32_t x, y;
  uint32_t processors = 0;  // 0: of a device without warp groups
};
void expect_choices(std::span<const choice> rows) {
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const gpu::kernel_spec spec = spec_of(row.of, row.tokens);
    kernel_form form;
    const bool warp_groups = row.processors != 0;
    if (warp_groups && !has_warp_groups(90)) continue;
    ASSERT_TRUE(find_form(spec, warp_groups ? forms{} : forms_by_warp_groups(), form));
    uint32_t params[gpu::max_params] = {};
    const gpu::linear_ternary_params p = params_of(row.of, 0, row.of.m);
    std::memcpy(params, &p, sizeof p);
    const grid how = grid_of(form, spec, params, share(row.of.m, gpu::rows_of_group(spec)),
                             share(row.tokens, spec.constants[2]), row.processors);
    EXPECT_EQ(how.tiled ? how.tiled->function : form.function, row.function);
    EXPECT_EQ(how.x, row.x);
    EXPECT_EQ(how.y, row.y);
  }
}

TEST(ternary_table, kernel_for_each_number_of_tokens) {
  const choice rows[] = {
      {"one token", {"", 2560, 100, 0, 0}, 1, "linear_ternary_tiles_one", 7, 1},
      {"two are a tile", {"", 2560, 100, 0, 0}, 2, "linear_ternary_few", 7, 1},
      {"two tiles", {"", 2560, 100, 0, 0}, 16, "linear_ternary_few", 7, 1},
      {"weights would be read twice", {"", 2560, 300, 0, 0}, 17, "linear_ternary_many", 2, 1},
      {"a long prompt", {"", 2560, 256, 0, 0}, 512, "linear_ternary_many", 1, 16},
      {"few rows", {"", 2560, 63, 0, 0}, 512, "linear_ternary_few", 4, 32},
      {"one tile, warp groups", {"", 2560, 300, 0, 0}, 32, "linear_ternary_many", 2, 1, 1},
      {"two tiles, warp groups", {"", 2560, 300, 0, 0}, 33, "linear_ternary_wide", 2, 1, 1},
      {"few rows, warp groups", {"", 2560, 63, 0, 0}, 512, "linear_ternary_few", 4, 32, 1},
      {"half of the device", {"", 2560, 2560, 0, 0}, 512, "linear_ternary_wide", 10, 4, 80},
      {"less", {"", 2560, 2560, 0, 0}, 512, "linear_ternary_narrow", 20, 8, 81},
      {"one token, groups", {"", 2560, 100, 128, 32}, 1, "linear_ternary_factored_one", 7, 1},
      {"a tile, groups", {"", 2560, 100, 128, 32}, 8, "linear_ternary_factored_few", 7, 1},
      {"many, groups", {"", 2560, 129, 128, 0}, 40, "linear_ternary_factored_many", 2, 3},
      {"groups of 40", {"", 2560, 100, 40, 0}, 8, "linear_ternary_factored", 25, 8},
      {"groups of 256", {"", 2560, 100, 256, 0}, 40, "linear_ternary_factored_one", 7, 40},
      {"one token, groups of 40", {"", 2560, 100, 40, 0}, 1, "linear_ternary_factored", 25, 1},
      {"one token, groups of 1024",
       {"", 2048, 100, 1024, 0},
       1,
       "linear_ternary_factored_one",
       7,
       1},
      {"one token, groups of 2048", {"", 2048, 100, 2048, 0}, 1, "linear_ternary_factored", 25, 1},
  };
  expect_choices(rows);
}

TEST(ternary_table, kernel_for_prompts_of_groups_on_sm_90) {
  const char *few = "linear_ternary_factored_few", *many = "linear_ternary_factored_many",
             *wide = "linear_ternary_factored_wide";
  const choice rows[] = {
      {"half a tile of tokens", {"", 2560, 129, 128, 0}, 64, many, 2, 4, 1},
      {"more", {"", 2560, 129, 128, 0}, 65, wide, 2, 1, 1},
      {"few rows", {"", 2560, 63, 128, 0}, 512, few, 4, 64, 1},
      {"half of the device", {"", 2560, 2560, 128, 32}, 512, wide, 20, 4, 160},
      {"less", {"", 2560, 2560, 128, 32}, 512, many, 20, 32, 161},
      {"groups of weights are shorter", {"", 2560, 129, 64, 128}, 512, many, 2, 32, 1},
      {"groups of both are as long", {"", 2560, 129, 128, 128}, 512, wide, 2, 4, 1},
      {"one scale of weights", {"", 2560, 129, 0, 32}, 512, wide, 2, 4, 1},
  };
  expect_choices(rows);
}

}  // namespace
}  // namespace bitnet::cuda::test
