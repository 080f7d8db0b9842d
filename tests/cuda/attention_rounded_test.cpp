// Attention with factors of f16, against sums in double, and exactly where nothing is rounded. What
// no token sees are NaNs, and a block that no token sees has no place in the pool.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>

#include "kernel_bench.hpp"
#include "kernel_table.hpp"
#include "kv_contents.hpp"

namespace bitnet::cuda::test {
namespace {

constexpr double unit_of_f16 = 0x1p-11;  // of rounding to nearest, in f16's normal range
// Of adding two numbers in f32, or of one term of a sum that tensor cores form, times the largest
// term: they may cut off what does not fit.
constexpr double unit = 0x1p-23;

struct queries {
  number of;        // each element
  float scale = 0;  // of scores; 0: a usual one
};
float plain(std::mt19937& random, bool) {
  return std::uniform_real_distribution<float>(-1, 1)(random);
}

class attention_rounded : public testing::Test {
 protected:
  void SetUp() override {
    bench_.open();
    // A device of sm_75 has no form for wider heads. A stand-in that runs code of sm_75 does not
    // say so.
    if ((bench_.device().rounded_heads() & gpu::rounded_heads_bit(256)) == 0) widest_ = 128;
    const char* stand_in = std::getenv("BITNET_STAND_IN");
    if (stand_in && std::string_view(stand_in).find("code=75") != std::string_view::npos)
      widest_ = 128;
  }

  // Of a token's head: q is the same whatever step the token is in.
  static std::vector<float> q_of(const shape& s, const token& t, const queries& with) {
    std::mt19937 random(1000 * t.sequence + t.position);
    std::vector<float> out(uint64_t{s.heads} * s.head_dim);
    for (float& x : out) x = with.of(random, true);
    return out;
  }
  static float scale_of(const shape& s, const queries& with) {
    return with.scale != 0 ? with.scale : 2 / std::sqrt(static_cast<float>(s.head_dim));
  }

  // y (tokens, heads * dim), by the kernel that rounds or by the one that it stands in for.
  std::vector<float> attend(const shape& s, const pool& kv, const step& tokens,
                            const queries& with = {plain}, bool rounds = true) {
    std::vector<uint32_t> positions, sequences;
    std::vector<float> q;
    for (const token& t : tokens) {
      positions.push_back(t.position);
      sequences.push_back(t.sequence);
      const std::vector<float> one = q_of(s, t, with);
      q.insert(q.end(), one.begin(), one.end());
    }
    const auto n = static_cast<uint32_t>(tokens.size());
    const gpu::binding y = bench_.put(std::vector<float>(q.size(), 77.0f));
    const gpu::kernel_id id = rounds ? gpu::kernel_id::attn_rounded : gpu::kernel_id::attn_tiles;
    const gpu::attn_tiles_params p{
        0,          s.heads,           s.kv_heads,   s.head_dim, s.block_tokens,
        max_blocks, scale_of(s, with), s.own_window, 0};
    // More groups than tokens, or fewer.
    bench_.add({id, {group_threads, f16, f16, most_attention_rows, s.head_dim}},
               {bench_.put<uint32_t>({n, 0, s.window, s.keep}), bench_.put(q),
                bench_.put(positions), bench_.put(sequences), bench_.put(kv.table),
                bench_.put(kv.keys), bench_.put(kv.values), y},
               p, 1, n % 2 == 0 ? 17 : n + 20);
    bench_.run();
    std::vector<float> out = bench_.get<float>(y);
    bench_.clear();
    return out;
  }

  // What y may be off by, with u for unit_of_f16 and e for unit.
  //   scores  q is off by u, or by half a step of f16's smallest, which is largest / 2^39; the sum
  //           of d products by e for each and for each sum of 16 that they are added to; and what
  //           multiplies it by a few e more. So a score is off by
  //           scale * (u sum |q k| + largest 2^-39 sum |k| + (d + d / 16 + 8) e sum |q k|).
  //   levels  a weight and the stages behind it subtract the largest scores so far, which ascend:
  //           together no more than all scores are apart, each rounded; and scores are rounded.
  //   powers  exp2f is off by 2 units of 2^-23, once for the weight and once for each stage.
  // A weight is then w exp(c) with |c| <= E, what these three add up to for the worst score, and
  // so is their total: their quotient is off by exp(2 E) at most.
  //   weights  rounded by u, or by 2^-25 of 2^-15 of the largest.
  //   sums     of n values (n / 16 more, as above) and of n weights, whose additions round to
  //            nearest, by e / 2; each multiplied once for each stage; and a quotient.
  struct wanted {
    double y = 0, most_off = 0;
  };
  static std::vector<wanted> expected(const shape& s, const pool& kv, const token& t, uint32_t head,
                                      const queries& with) {
    const std::vector<float> all = q_of(s, t, with);
    const float* q = &all[uint64_t{head} * s.head_dim];
    const double scale = std::fabs(double{scale_of(s, with)});
    double largest_q = 0;
    for (uint32_t d = 0; d < s.head_dim; ++d)
      largest_q = std::max(largest_q, std::fabs(double{q[d]}));
    std::vector<const pool::both*> seen;
    std::vector<double> score;
    double of_scores = 0;
    for (uint32_t p = 0; p <= t.position; ++p) {
      if (!s.sees(t.position, p)) continue;
      seen.push_back(&kv.at(t, head / (s.heads / s.kv_heads), p));
      double sum = 0, size = 0, keys = 0;
      for (uint32_t d = 0; d < s.head_dim; ++d) {
        const double product = double{q[d]} * double{seen.back()->key[d]};
        sum += product;
        size += std::fabs(product);
        keys += std::fabs(double{seen.back()->key[d]});
      }
      score.push_back(sum * double{scale_of(s, with)});
      of_scores =
          std::max(of_scores, scale * ((unit_of_f16 + (s.head_dim * 17 / 16.0 + 8) * unit) * size +
                                       largest_q * 0x1p-39 * keys));
    }
    const double lowest = *std::min_element(score.begin(), score.end()),
                 highest = *std::max_element(score.begin(), score.end()),
                 largest = std::max(std::fabs(lowest), std::fabs(highest));
    const auto n = static_cast<double>(seen.size());
    const double stages = 2 * (t.position / 64.0 + 2);  // of 32 positions, some twice
    const double off = of_scores + (highest - lowest + largest) * unit + 2 * (stages + 1) * unit;
    double total = 0;
    for (double& x : score) total += x = std::exp(x - highest);
    const double factor = std::exp(2 * off), sums = 1 + 2 * (n + 2 * stages + 4) * unit;
    std::vector<wanted> out(s.head_dim);
    for (uint32_t d = 0; d < s.head_dim; ++d) {
      double size = 0, values = 0;
      for (uint64_t j = 0; j < seen.size(); ++j) {
        const double v = seen[j]->value[d], term = score[j] / total * v;
        out[d].y += term;
        size += std::fabs(term);
        values += std::fabs(v);
      }
      out[d].most_off = (factor * (1 + unit_of_f16) * sums - 1) * size +
                        factor * sums * 0x1p-40 * values / total + 0x1p-149;
    }
    return out;
  }

  // Near the sums in double; and a token has the same bits alone as in the step.
  void check(const shape& s, const step& tokens, const queries& with = {plain},
             const number& contents = uniform) {
    if (s.head_dim > widest_) return;
    SCOPED_TRACE(s.why);
    const pool kv(s, tokens, contents);
    const uint64_t width = uint64_t{s.heads} * s.head_dim;
    const std::vector<float> y = attend(s, kv, tokens, with);
    for (uint64_t t = 0; t < tokens.size(); ++t)
      for (uint32_t head = 0; head < s.heads; ++head) {
        const std::vector<wanted> all = expected(s, kv, tokens[t], head, with);
        for (uint32_t d = 0; d < s.head_dim; ++d)
          ASSERT_NEAR(double{y[t * width + head * s.head_dim + d]}, all[d].y, all[d].most_off)
              << "position " << tokens[t].position << " head " << head << " element " << d;
      }
    for (uint64_t t = 0; t < tokens.size(); t += t < 2 ? 1 : 5)
      ASSERT_TRUE(bits_of(y, t * width, width) ==
                  bits_of(attend(s, kv, {tokens[t]}, with), 0, width))
          << "alone, position " << tokens[t].position;
  }

  uint32_t widest_ = 256;
  kernel_bench bench_;
};

TEST_F(attention_rounded, heads_of_every_width) {
  check({"64", 64, 4, 1, f16, f16}, mixed());
  check({"8", 8, 4, 1, f16, f16}, mixed());
  check({"80", 80, 4, 4, f16, f16}, mixed());
  check({"96", 96, 2, 1, f16, f16}, mixed());
  check({"128", 128, 4, 1, f16, f16}, mixed());
  check({"136", 136, 2, 1, f16, f16}, mixed());
  check({"256", 256, 2, 1, f16, f16}, mixed());
}

TEST_F(attention_rounded, heads_that_share_a_kv_head) {
  check({"one", 64, 2, 2, f16, f16}, mixed());
  check({"three", 64, 3, 1, f16, f16}, mixed());
  check({"five", 64, 10, 2, f16, f16}, mixed());
  check({"twenty", 128, 20, 1, f16, f16}, run_of(0, 100, 6));
  check({"seventy: more than a tile has rows", 64, 70, 1, f16, f16}, run_of(0, 61, 4));
}

TEST_F(attention_rounded, contexts_that_end_anywhere_in_a_stage) {
  for (const uint32_t width : {64u, 256u}) {
    const shape s{"ends", width, 2, 1, f16, f16};
    check(s, run_of(0, 0, width == 64 ? 70 : 40));
    for (const uint32_t last : {0u, 31u, 32u, 63u, 64u, 127u, 128u, 639u})
      check(s, run_of(2, last, 1));
  }
  // Of one sequence, and not side by side in it.
  check({"apart", 64, 2, 1, f16, f16},
        {{500, 1}, {3, 1}, {64, 1}, {63, 1}, {639, 1}, {64, 2}, {5, 1}});
}

TEST_F(attention_rounded, windows) {
  check({"a window of one", 64, 4, 1, f16, f16, 1}, mixed());
  check({"a window", 64, 4, 1, f16, f16, 5}, mixed());
  check({"a window of more than parts", 128, 4, 1, f16, f16, 200, 3}, mixed());
  check({"a part and more kept", 64, 4, 2, f16, f16, 30, 70}, mixed());
  check({"kept up to the window", 256, 2, 1, f16, f16, 20, 110}, mixed());
  check({"a layer's window", 256, 4, 1, f16, f16, 0, 0, 70}, mixed());
  check({"a layer's that leaves some of those kept", 64, 2, 2, f16, f16, 30, 120, 100}, mixed());
}

// A power of its own keeps every row of q in f16's range; the scale of scores undoes it here.
TEST_F(attention_rounded, queries_of_every_size) {
  const shape s{"sizes", 64, 4, 1, f16, f16};
  for (const int power : {-60, -40, 40, 100}) {
    const number sized = [&](std::mt19937& random, bool) {
      return std::ldexp(plain(random, true), power);
    };
    check(s, mixed(), {sized, std::ldexp(0.25f, -power)});
  }
  const number apart = [](std::mt19937& random, bool) {
    return std::ldexp(plain(random, true), random() % 2 == 0 ? 0 : -26);
  };
  check(s, mixed(), {apart});
  check(s, mixed(), {[](std::mt19937&, bool) { return 0.0f; }});
  check({"scores with a sign", 64, 4, 1, f16, f16}, mixed(), {plain, -0.25f});
}

// Scores are far apart or equal, so that weights are 0 or 1, and few values are added.
TEST_F(attention_rounded, what_needs_no_rounding_is_exact) {
  const number contents = [](std::mt19937& random, bool is_key) {
    const float size = is_key ? 1.0f : 1 + static_cast<float>(random() % 1024) / 1024;
    return random() % 2 == 0 ? size : -size;
  };
  const queries with{[](std::mt19937& random, bool) { return random() % 2 == 0 ? 64.0f : -64.0f; },
                     1};
  for (const uint32_t width : {64u, 80u, 128u, 256u})
    for (const uint32_t window : {0u, 40u}) {
      if (width > widest_) continue;
      const shape s{"exact", width, 4, 2, f16, f16, window, 3};
      const pool kv(s, mixed(), contents);
      EXPECT_TRUE(attend(s, kv, mixed(), with) == attend(s, kv, mixed(), with, false)) << width;
    }
}
// Elsewhere the bits are not those of f32: nothing else computed what was compared above.
TEST_F(attention_rounded, rounds) {
  for (const uint32_t width : {64u, 128u, 256u}) {
    if (width > widest_) continue;
    const shape s{"rounds", width, 4, 2, f16, f16};
    const pool kv(s, mixed());
    EXPECT_FALSE(attend(s, kv, mixed()) == attend(s, kv, mixed(), {plain}, false)) << width;
  }
}

// What is no number stays with the tokens that see it.
TEST_F(attention_rounded, what_is_no_number_stays_where_it_is_seen) {
  for (const uint32_t width : {64u, 128u, 256u})
    for (const uint16_t odd : {0x7c00, 0xfc00, 0x7e01}) {
      if (width > widest_) continue;
      const shape s{"infinite", width, 4, 1, f16, f16};
      const step tokens = run_of(0, 20, 29);
      pool kv(s, tokens);
      const uint64_t row = uint64_t{s.heads} * width;
      const std::vector<float> before = attend(s, kv, tokens);
      const uint64_t slot =
          uint64_t{kv.table[44 / s.block_tokens]} * s.block_tokens + 44 % s.block_tokens;
      std::vector<uint8_t> values = kv.values;
      std::memcpy(&kv.values[slot * 2 * width + 6], &odd, sizeof odd);
      const std::vector<float> found = attend(s, kv, tokens);
      EXPECT_EQ(bits_of(before, 0, 24 * row), bits_of(found, 0, 24 * row));
      for (uint64_t t = 24; t < tokens.size(); ++t) {
        const float y = found[t * row + 3];
        EXPECT_TRUE(odd == 0x7e01 ? std::isnan(y) : std::isinf(y) && (y < 0) == (odd == 0xfc00));
        for (uint32_t d = 4; d < width; ++d)
          EXPECT_NEAR(found[t * row + d], before[t * row + d], 0x1p-9);
      }
      kv.values = std::move(values);
      std::memcpy(&kv.keys[slot * 2 * width], &odd, sizeof odd);
      const std::vector<float> of_key = attend(s, kv, tokens);
      EXPECT_EQ(bits_of(before, 0, 24 * row), bits_of(of_key, 0, 24 * row));
      for (uint64_t t = 24; t < tokens.size() && odd == 0x7e01; ++t)
        EXPECT_TRUE(std::isnan(of_key[t * row]));
    }
}

TEST(attention_rounded_table, each_width_has_its_kernel_or_none) {
  const struct {
    uint32_t head_dim;
    const char* form;  // nullptr: there is none
  } rows[] = {{8, "attn_prompt_f16_64"},
              {64, "attn_prompt_f16_64"},
              {72, "attn_prompt_f16_128"},
              {128, "attn_prompt_f16_128"},
              {256, "attn_prompt_f16_256"},
              {100, nullptr},
              {264, nullptr}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.head_dim);
    EXPECT_EQ(gpu::rounded_heads_bit(row.head_dim) != 0, row.form != nullptr);
    const gpu::kernel_spec spec{gpu::kernel_id::attn_rounded,
                                {group_threads, f16, f16, most_attention_rows, row.head_dim}};
    kernel_form form;
    ASSERT_TRUE(find_form(spec, {}, form));
    ASSERT_EQ(form.tiled_count, row.form ? 1u : 0u);
    if (!row.form) continue;
    const gpu::attn_tiles_params p{0,    8, 2, row.head_dim, shape{}.block_tokens, max_blocks,
                                   1.0f, 0, 0};
    std::vector<uint32_t> words(sizeof p / 4);
    std::memcpy(words.data(), &p, sizeof p);
    const grid many = grid_of(form, spec, words.data(), 1, 300, 16);
    ASSERT_NE(many.tiled, nullptr);
    EXPECT_STREQ(many.tiled->function, row.form);
    EXPECT_EQ(std::pair(many.x, many.y), std::pair(2u, 300u));
    kernel_form without;
    ASSERT_TRUE(find_form(spec, {row.form}, without));
    EXPECT_EQ(without.function, "attn_tiles_f16_f16_16");
    EXPECT_EQ(grid_of(without, spec, words.data(), 1, 300, 16).tiled, nullptr);
    EXPECT_EQ(rounded_heads_without({row.form}), 7u & ~gpu::rounded_heads_bit(row.head_dim));
  }
  kernel_form none;
  for (const auto& [key, value] : {std::pair{q8, f16}, {f16, f32}})
    EXPECT_FALSE(
        find_form({gpu::kernel_id::attn_rounded, {group_threads, key, value, 16, 64}}, {}, none));
}

}  // namespace
}  // namespace bitnet::cuda::test
