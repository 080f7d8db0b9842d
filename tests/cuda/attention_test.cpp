// Attention by tiles, in every size of a tile, with the context whole and in parts: near the exact
// one, and the same bits whatever else is in the step. What no token sees are NaNs, and a block
// that no token sees has no place in the pool.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "kernel_bench.hpp"
#include "kernel_table.hpp"
#include "kv_contents.hpp"

namespace bitnet::cuda::test {
namespace {

constexpr double epsilon = 0x1p-24;  // of rounding one result to nearest
// Rows of a tile, of the form that has tiles of its own for steps of many tokens.
constexpr uint32_t of_prompts = 32;

class attention : public testing::Test {
 protected:
  void SetUp() override { bench_.open(); }

  // Of a token's head: q is the same whatever step the token is in.
  static std::vector<float> q_of(const shape& s, const token& t) {
    std::mt19937 random(1000 * t.sequence + t.position);
    std::vector<float> out(uint64_t{s.heads} * s.head_dim);
    for (float& x : out) x = std::uniform_real_distribution<float>(-1, 1)(random);
    return out;
  }
  static float scale_of(const shape& s) { return 2 / std::sqrt(static_cast<float>(s.head_dim)); }

  // In tiles of so many rows, by groups that there are enough of or not; y (tokens, heads * dim).
  std::vector<float> attend(const shape& s, const pool& kv, const step& tokens, uint32_t rows,
                            bool in_parts) {
    std::vector<uint32_t> positions, sequences;
    std::vector<float> q;
    for (const token& t : tokens) {
      positions.push_back(t.position);
      sequences.push_back(t.sequence);
      const std::vector<float> one = q_of(s, t);
      q.insert(q.end(), one.begin(), one.end());
    }
    const auto n = static_cast<uint32_t>(tokens.size());
    const uint32_t parts = in_parts ? (s.block_tokens * max_blocks + 63) / 64 : 0;
    const std::vector<float> unwritten(q.size(), 77.0f);
    const gpu::binding header = bench_.put<uint32_t>({n, 0, s.window, s.keep});
    const gpu::binding at = bench_.put(positions), y = bench_.put(unwritten);
    const uint64_t part_words = uint64_t{n} * s.heads * parts * (s.head_dim + 2);
    const gpu::binding scratch =
        bench_.put(std::vector<uint32_t>(std::max<uint64_t>(part_words, 1), 0x7fc00000u));
    const gpu::kernel_spec tiles{
        gpu::kernel_id::attn_tiles,
        {128, s.k_type, s.v_type, std::min(rows, most_attention_rows), s.head_dim}};
    const gpu::attn_tiles_params p{0,           s.heads,        s.kv_heads,
                                   s.head_dim,  s.block_tokens, max_blocks,
                                   scale_of(s), s.own_window,   parts};
    bench_.add(tiles,
               {header, bench_.put(q), at, bench_.put(sequences), bench_.put(kv.table),
                bench_.put(kv.keys), bench_.put(kv.values), in_parts ? scratch : y},
               p, n % 2 == 0 ? 3 : 11, groups_of(n, rows));
    EXPECT_EQ(has_own_tiles(tiles, p, groups_of(n, rows)), rows == of_prompts);
    if (in_parts)
      bench_.add({gpu::kernel_id::attn_merge, {128}}, {header, at, scratch, y},
                 gpu::attn_merge_params{0, s.heads, s.head_dim, s.own_window, parts}, 2, n);
    bench_.run();
    std::vector<float> out = bench_.get<float>(y);
    bench_.clear();
    return out;
  }

  static uint32_t groups_of(uint32_t n, uint32_t rows) {
    if (rows == of_prompts) return n % 2 == 0 ? 17 : n + 20;
    return n % 3 == 0 ? 2 : std::min(n + 1, 16u);
  }
  static bool has_own_tiles(const gpu::kernel_spec& spec, const gpu::attn_tiles_params& p,
                            uint32_t groups) {
    kernel_form form;
    EXPECT_TRUE(find_form(spec, {}, form));
    std::vector<uint32_t> words(sizeof p / 4);
    std::memcpy(words.data(), &p, sizeof p);
    return grid_of(form, spec, words.data(), 1, groups, 16).tiled != nullptr;
  }

  // What a single token leaves: its attention, and all keys and values.
  struct left {
    std::vector<float> y;
    std::vector<uint8_t> keys, values;
  };
  // How its queries and keys are turned, in how many groups of threads, and whether they are normed
  // before.
  struct turned {
    const char* why;
    uint32_t pairs, neox, groups;
    bool normed = false;
  };
  static constexpr float eps_of_q = 1e-6f, eps_of_k = 0.25f;  // which one it was shows
  struct made {
    gpu::binding header, q, k, v, turns, at, sequence, slot, table, norm_of_q, norm_of_k, keys,
        values, y;
    uint32_t parts;
  };
  made token_of(const shape& s, const pool& kv, const token& t, const turned& how, bool in_parts) {
    std::mt19937 random(t.position);
    const auto some = [&](uint64_t n) {
      std::vector<float> out(n);
      for (float& x : out) x = std::uniform_real_distribution<float>(-1, 1)(random);
      return bench_.put(out);
    };
    const uint64_t of_kv = uint64_t{s.kv_heads} * s.head_dim;
    const uint32_t block = kv.table[t.sequence * max_blocks + t.position / s.block_tokens];
    return {bench_.put<uint32_t>({1, 0, s.window, s.keep}),
            bench_.put(q_of(s, t)),
            some(of_kv),
            some(of_kv),
            some(uint64_t{2} * how.pairs),
            bench_.put<uint32_t>({t.position}),
            bench_.put<uint32_t>({t.sequence}),
            bench_.put<uint32_t>({block * s.block_tokens + t.position % s.block_tokens}),
            bench_.put(kv.table),
            some(s.head_dim),
            some(s.head_dim),
            bench_.put(kv.keys),
            bench_.put(kv.values),
            bench_.put(std::vector<float>(uint64_t{s.heads} * s.head_dim, 77.0f)),
            in_parts ? (s.block_tokens * max_blocks + 63) / 64 : 0};
  }
  left take(const made& m) {
    bench_.run();
    left out{bench_.get<float>(m.y), bench_.get<uint8_t>(m.keys), bench_.get<uint8_t>(m.values)};
    bench_.clear();
    return out;
  }
  gpu::binding normed(const made& m, const gpu::binding& x, const gpu::binding& weight,
                      uint32_t heads, uint32_t head_dim, float eps) {
    const gpu::binding y = bench_.put(std::vector<float>(uint64_t{heads} * head_dim));
    bench_.add({gpu::kernel_id::rms_norm, {128}}, {m.header, x, weight, y},
               gpu::rms_norm_params{0, head_dim, eps, heads}, heads, 1);
    return y;
  }
  // By a kernel for each op, and the whole context in one group.
  left by_ops(const shape& s, const pool& kv, const token& t, const turned& how) {
    made m = token_of(s, kv, t, how, false);
    const gpu::binding q = bench_.put(std::vector<float>(uint64_t{s.heads} * s.head_dim));
    if (how.normed) {
      m.q = normed(m, m.q, m.norm_of_q, s.heads, s.head_dim, eps_of_q);
      m.k = normed(m, m.k, m.norm_of_k, s.kv_heads, s.head_dim, eps_of_k);
    }
    bench_.add({gpu::kernel_id::rope, {128}}, {m.header, m.q, m.turns, q},
               gpu::rope_params{0, s.heads, s.head_dim, how.pairs, how.neox}, 3, 1);
    bench_.add({gpu::kernel_id::kv_write, {128, s.k_type, s.v_type, 1}},
               {m.header, m.slot, m.k, m.v, m.turns, m.keys, m.values},
               gpu::kv_write_params{0, s.kv_heads, s.head_dim, s.block_tokens, how.pairs, how.neox},
               2, 1);
    bench_.add({gpu::kernel_id::attn_tiles, {128, s.k_type, s.v_type, 4, s.head_dim}},
               {m.header, q, m.at, m.sequence, m.table, m.keys, m.values, m.y},
               gpu::attn_tiles_params{0, s.heads, s.kv_heads, s.head_dim, s.block_tokens,
                                      max_blocks, scale_of(s), s.own_window, 0},
               3, 1);
    return take(m);
  }
  // By one kernel, which leaves its tickets as they were.
  left by_one(const shape& s, const pool& kv, const token& t, const turned& how, uint32_t rows,
              bool in_parts) {
    const made m = token_of(s, kv, t, how, in_parts);
    const std::vector<uint32_t> none(s.kv_heads);
    const gpu::binding tickets = bench_.put(none);
    const gpu::binding parts = bench_.put(std::vector<uint32_t>(
        uint64_t{s.heads} * std::max(m.parts, 1u) * (s.head_dim + 2), 0x7fc00000u));
    // Twice: the second finds the tickets as the first left them.
    const gpu::binding again = bench_.put(std::vector<float>(uint64_t{s.heads} * s.head_dim));
    for (const gpu::binding& y : {m.y, again})
      bench_.add({gpu::kernel_id::attn_token, {128, s.k_type, s.v_type, rows, s.head_dim}},
                 {m.header, m.q, m.k, m.v, m.turns, m.at, m.sequence, m.slot, m.table,
                  how.normed ? m.norm_of_q : m.q, how.normed ? m.norm_of_k : m.q, m.keys, m.values,
                  parts, tickets, y},
                 gpu::attn_token_params{0, s.heads, s.kv_heads, s.head_dim, s.block_tokens,
                                        max_blocks, scale_of(s), s.own_window, m.parts, how.pairs,
                                        how.neox, how.normed ? 1u : 0u, eps_of_q, eps_of_k},
                 how.groups, 1);
    bench_.run();
    left out{bench_.get<float>(m.y), bench_.get<uint8_t>(m.keys), bench_.get<uint8_t>(m.values)};
    EXPECT_EQ(bench_.get<uint32_t>(tickets), none);
    EXPECT_EQ(bits_of(bench_.get<float>(again), 0, out.y.size()), bits_of(out.y, 0, out.y.size()));
    bench_.clear();
    return out;
  }
  void check_token(const shape& s, const token& t, const turned& how) {
    SCOPED_TRACE(std::string(s.why) + ", " + how.why);
    const pool kv(s, {t});
    const left expected = by_ops(s, kv, t, how);
    for (const uint32_t rows : {4u, 8u, 16u})
      for (const bool in_parts : {false, true}) {
        if (s.heads / s.kv_heads > rows ||
            gpu::attn_tile_words(rows, s.head_dim) * 4 >
                bench_.device().describe().capabilities.shared_memory_bytes)
          continue;
        SCOPED_TRACE(std::to_string(rows) + " rows" + (in_parts ? ", in parts" : ""));
        const left found = by_one(s, kv, t, how, rows, in_parts);
        ASSERT_EQ(bits_of(found.y, 0, found.y.size()), bits_of(expected.y, 0, found.y.size()))
            << "position " << t.position;
        ASSERT_TRUE(found.keys == expected.keys) << "position " << t.position;
        ASSERT_TRUE(found.values == expected.values) << "position " << t.position;
      }
  }

  // Scores are off by what any order of their sums is; weights by that and by exp, which each part
  // is scaled with once more; then the sums, above and below the line.
  static void expect_near(const shape& s, const pool& kv, const token& t, const float* found) {
    const std::vector<float> q = q_of(s, t);
    for (uint32_t head = 0; head < s.heads; ++head) {
      std::vector<const pool::both*> seen;
      std::vector<double> weight;
      double largest = -HUGE_VAL, total = 0, error = 0;
      for (uint32_t p = 0; p <= t.position; ++p) {
        if (!s.sees(t.position, p)) continue;
        seen.push_back(&kv.at(t, head / (s.heads / s.kv_heads), p));
        double sum = 0, size = 0;
        for (uint32_t d = 0; d < s.head_dim; ++d) {
          const double product = double{q[head * s.head_dim + d]} * double{seen.back()->key[d]};
          sum += product;
          size += std::fabs(product);
        }
        weight.push_back(sum * double{scale_of(s)});
        largest = std::max(largest, weight.back());
        error = std::max(error, (s.head_dim + 2) * epsilon * size * double{scale_of(s)});
      }
      for (double& w : weight) total += w = std::exp(w - largest);
      const auto n = static_cast<double>(seen.size());
      const double relative = 2 * error + (2 * n + 8 * (t.position / 64.0 + 1) + 16) * epsilon;
      for (uint32_t d = 0; d < s.head_dim; ++d) {
        double expected = 0, size = 0;
        for (uint64_t j = 0; j < seen.size(); ++j) {
          const double term = weight[j] / total * double{seen[j]->value[d]};
          expected += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(double{found[head * s.head_dim + d]}, expected, relative * size)
            << "position " << t.position << " head " << head << " element " << d;
      }
    }
  }

  // Every form of the step, and every token alone.
  void check(const shape& s, const step& tokens) {
    SCOPED_TRACE(s.why);
    const pool kv(s, tokens);
    const uint64_t width = uint64_t{s.heads} * s.head_dim;
    const std::vector<float> first = attend(s, kv, tokens, 4, false);
    for (uint64_t t = 0; t < tokens.size(); ++t) {
      expect_near(s, kv, tokens[t], &first[t * width]);
      if (HasFatalFailure()) return;
    }
    const auto same = [&](const std::vector<float>& found, uint64_t t, const std::string& what) {
      ASSERT_TRUE(bits_of(first, t * width, found.size()) == bits_of(found, 0, found.size()))
          << what << " from position " << tokens[t].position;
    };
    for (const uint32_t rows : {4u, 8u, 16u})
      for (const bool in_parts : {false, true})
        if (gpu::attn_tile_words(rows, s.head_dim) * 4 <=
            bench_.device().describe().capabilities.shared_memory_bytes)
          same(attend(s, kv, tokens, rows, in_parts), 0,
               std::to_string(rows) + " rows" + (in_parts ? " in parts" : ""));
    if (s.head_dim <= 256) same(attend(s, kv, tokens, of_prompts, false), 0, "by tiles of prompts");
    for (uint64_t t = 0; t < tokens.size(); t += t < 2 ? 1 : 4)
      for (const bool in_parts : {false, true})
        same(attend(s, kv, {tokens[t]}, 4, in_parts), t, in_parts ? "alone, in parts" : "alone");
  }

  kernel_bench bench_;
};

TEST_F(attention, keys_and_values_of_every_type) {
  for (const uint32_t k : {f32, f16, q8, q4})
    for (const uint32_t v : {f32, f16, q8, q4}) check({"64", 64, 4, 1, k, v}, mixed());
}

TEST_F(attention, heads_of_every_width) {
  check({"80", 80, 4, 4, f16, f16}, mixed());
  check({"128", 128, 4, 1, f16, f16}, mixed());
  check({"128 in blocks", 128, 2, 2, q8, q8}, mixed());
  check({"256", 256, 2, 1, f16, f32}, mixed());
  check({"128 in blocks of four bits", 128, 2, 2, q4, q4}, mixed());
  check({"256 in blocks", 256, 2, 1, q8, f16}, mixed());
  check({"256 in blocks of four bits", 256, 2, 1, q4, f16}, mixed());
  check({"a last sixteen that is short", 100, 2, 1, f16, f32}, mixed());
  check({"less than a sixteen, odd", 13, 2, 1, f32, f32}, run_of(1, 60, 9));
  check({"odd halves", 21, 2, 1, f16, f16}, run_of(1, 60, 9));
  check({"512", 512, 1, 1, f16, f16}, run_of(1, 60, 9));
  check({"1408: four rows at most", 1408, 2, 1, f16, f16}, run_of(1, 60, 3));
}

TEST_F(attention, heads_that_share_a_kv_head) {
  check({"one", 64, 2, 2, f16, f16}, mixed());
  check({"three", 64, 3, 1, f16, f16}, mixed());
  check({"five", 64, 10, 2, f16, f16}, mixed());
  check({"nine: two tiles of eight", 64, 9, 1, f16, q8}, mixed());
  check({"twenty: more than a tile has rows", 64, 20, 1, f16, f16}, run_of(0, 100, 6));
}

TEST_F(attention, contexts_that_end_anywhere_in_a_part) {
  const shape s{"ends", 64, 2, 1, f16, f16};
  check(s, run_of(0, 0, 70));
  for (const uint32_t last : {0u, 1u, 31u, 32u, 62u, 63u, 64u, 127u, 128u, 639u})
    check(s, run_of(2, last, 1));
  // Of one sequence, and not side by side in it.
  check(s, {{500, 1}, {3, 1}, {64, 1}, {63, 1}, {639, 1}, {64, 2}, {5, 1}});
}

TEST_F(attention, windows) {
  check({"a window of one", 64, 4, 1, f16, f16, 1}, mixed());
  check({"a window", 64, 4, 1, f16, f16, 5}, mixed());
  check({"a window of more than parts", 64, 4, 1, f16, f16, 200, 3}, mixed());
  check({"some kept", 64, 4, 2, f16, f16, 30, 6}, mixed());
  check({"a part and more kept", 64, 4, 2, f16, q8, 30, 70}, mixed());
  check({"kept up to the window", 64, 2, 1, f16, f16, 20, 110}, mixed());
  check({"everything kept", 64, 2, 1, f16, f16, 1, ~0u}, mixed());
  check({"a window of everything", 64, 2, 1, f16, f16, ~0u}, mixed());
  check({"a layer's window", 64, 4, 1, f16, f16, 0, 0, 70}, mixed());
  check({"a layer's window of everything", 64, 2, 1, f16, f16, 0, 0, INT32_MAX}, mixed());
  check({"a layer's within the step's", 64, 2, 2, f16, f16, 90, 2, 40}, mixed());
  check({"a layer's that leaves some of those kept", 64, 2, 2, f16, f16, 30, 120, 100}, mixed());
}

// One kernel for a step of one token has the bits of those that it stands in for.
TEST_F(attention, of_a_token_is_one_kernel) {
  const turned halves{"halves, few groups", 32, 1, 3}, pairs{"pairs, a group to a part", 32, 0, 40};
  const turned some{"some of a head", 10, 1, 7};
  for (const uint32_t type : {f32, f16, q8, q4})
    check_token({"of one type", 64, 4, 1, type, type}, {577, 1}, halves);
  check_token({"of two types", 64, 8, 2, f16, q8}, {577, 1}, pairs);
  check_token({"of two types", 64, 2, 2, q4, f32}, {130, 2}, some);
  check_token({"wide heads", 256, 3, 1, f16, f16}, {639, 3}, halves);
  check_token({"a last sixteen that is short", 100, 2, 1, f16, f16}, {100, 0}, some);
  check_token({"five heads share", 80, 10, 2, f16, f16}, {320, 0}, pairs);
  check_token({"sixteen heads share", 64, 16, 1, f16, f16}, {400, 0}, halves);
  for (const uint32_t last : {0u, 1u, 63u, 64u, 255u, 256u})
    check_token({"ends", 64, 4, 2, f16, f16}, {last, 2}, last % 2 == 0 ? halves : pairs);
  for (const uint32_t type : {f32, f16, q8, q4})
    check_token(in_blocks_of(64, {"a block is a part", 64, 4, 1, type, type}), {577, 1}, halves);
}

// In short contexts two groups share the heads of a KV head, and one of them may have a head more.
TEST_F(attention, of_a_token_is_the_same_where_two_groups_share_the_heads) {
  const turned halves{"halves, few groups", 32, 1, 3}, pairs{"pairs, a group to a part", 32, 0, 40};
  check_token({"three heads, two parts", 64, 3, 1, f16, f16}, {100, 0}, halves);
  check_token({"five heads, three parts", 80, 10, 2, f16, f16}, {130, 0}, pairs);
  check_token(in_blocks_of(64, {"three heads, ten parts", 64, 3, 1, q8, q8}), {577, 1}, halves);
  check_token(in_blocks_of(64, {"two heads, one part", 128, 4, 2, f16, f16}), {40, 1}, pairs);
}

// The last group merges 32 parts at a time.
TEST_F(attention, of_a_token_is_the_same_where_more_than_32_parts_are_merged) {
  const turned halves{"halves, few groups", 32, 1, 3}, pairs{"pairs, a group to a part", 32, 0, 40};
  check_token(in_blocks_of(64, {"40 parts", 64, 4, 1, f16, f16}), {2500, 2}, pairs);
  check_token(in_blocks_of(64, {"33 parts, wide", 256, 3, 1, f16, f16}), {2100, 0}, halves);
}

// The same with norms of the heads before. Heads of more than 128 elements have some for each warp
// of a group that norms; 1408 is the most.
TEST_F(attention, of_a_token_norms_heads) {
  const turned halves{"halves, few groups", 32, 1, 3, true};
  const turned pairs{"pairs, a group to a part", 32, 0, 40, true};
  const turned some{"some of a head", 10, 1, 7, true};
  for (const uint32_t type : {f32, f16, q8, q4})
    check_token({"of one type", 64, 4, 1, type, type}, {577, 1}, halves);
  check_token({"of two types", 128, 8, 2, f16, q8}, {577, 1}, pairs);
  check_token({"of two types", 64, 2, 2, q4, f32}, {130, 2}, some);
  check_token({"wide heads", 256, 3, 1, f16, f16}, {639, 3}, halves);
  check_token({"the widest heads", 1408, 2, 1, f16, f16}, {70, 0}, halves);
  check_token({"a last word that is short", 98, 2, 1, f16, f16}, {100, 0}, some);
  check_token({"sixteen heads share", 64, 16, 1, f16, f16}, {400, 0}, halves);
  check_token({"the first position", 128, 4, 2, f16, f16}, {0, 2}, pairs);
}

TEST_F(attention, of_a_token_sees_windows) {
  const turned halves{"halves", 32, 1, 5};
  check_token({"a window of one", 64, 4, 1, f16, f16, 1}, {577, 1}, halves);
  check_token({"a window, and some kept", 64, 4, 2, f16, f16, 30, 6}, {577, 1}, halves);
  check_token({"a part and more kept", 64, 4, 2, f16, f16, 30, 70}, {577, 1}, halves);
  check_token({"a layer's window", 64, 4, 1, f16, f16, 0, 0, 70}, {577, 1}, halves);
}

// NaN stays with the tokens that see it.
TEST_F(attention, nan_reaches_only_tokens_that_see_it) {
  const shape s{"infinite", 64, 4, 1, f16, f16};
  const step tokens = run_of(0, 40, 9);
  pool kv(s, tokens);
  const std::vector<float> before = attend(s, kv, tokens, 16, false);
  const uint32_t block = kv.table[44 / s.block_tokens];
  const uint64_t bytes = 4 * gpu::kv_row_words(f16, s.head_dim);
  const uint16_t infinite = 0x7c00;
  std::memcpy(&kv.values[(uint64_t{block} * s.block_tokens + 44 % s.block_tokens) * bytes],
              &infinite, sizeof infinite);
  for (const uint32_t rows : {4u, 16u, of_prompts})
    for (const bool in_parts : {false, true}) {
      if (in_parts && rows == of_prompts) continue;
      const std::vector<float> found = attend(s, kv, tokens, rows, in_parts);
      const uint64_t width = uint64_t{s.heads} * s.head_dim;
      EXPECT_EQ(bits_of(before, 0, 4 * width), bits_of(found, 0, 4 * width)) << rows << " rows";
      for (uint64_t t = 4; t < tokens.size(); ++t) EXPECT_TRUE(std::isinf(found[t * width]));
    }
}

}  // namespace
}  // namespace bitnet::cuda::test
