// Whole programs through the exported symbol: the same logits however the work is cut.

#include <gtest/gtest.h>
#include <algorithm>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <span>

#include "model/recurrent_model.hpp"
#include "runner.hpp"
#include "targets.hpp"

namespace bitnet::parity {
namespace {

struct shape_row {
  const char* why;
  tiny_shape shape;
};
const shape_row shape_rows[] = {
    {"BitNet b1.58 2B: sub-norms, squared ReLU, tied F16 head", {}},
    {"llama with ternary weights: SiLU, no sub-norms, interleaved pairs",
     {.sub_norms = false, .relu2 = false, .neox = false, .head_format = BITNET_FORMAT_Q8_0}},
    {"TQ weights: scale groups, K-quant embedding and head",
     {.embedding = 256,
      .head_dim = 64,
      .ff = 512,
      .scale_group = 256,
      .embed_format = BITNET_FORMAT_Q6_K,
      .head_format = BITNET_FORMAT_Q4_K}},
    {"small scale groups, rope factors, f32 and bf16",
     {.ff = 384,
      .rope_factors = true,
      .scale_group = 32,
      .embed_format = BITNET_FORMAT_F32,
      .head_format = BITNET_FORMAT_BF16}},
    {"qwen3: norms of heads, groups of 64 in weights and of 32 in activations",
     {.ff = 192,
      .sub_norms = false,
      .head_norms = true,
      .relu2 = false,
      .scale_group = 64,
      .activation_group = 32}},
    {"longer groups in activations than in weights, rows that are padded",
     {.embedding = 192,
      .ff = 320,
      .head_norms = true,
      .scale_group = 32,
      .activation_group = 64,
      .head_format = BITNET_FORMAT_Q8_0}},
    {"rotated weights and embedding, groups of 32",
     {.ff = 192,
      .head_norms = true,
      .scale_group = 32,
      .activation_group = 32,
      .rotated_block = 64,
      .composites = false}},
    {"rotated weights, a scale to each row of activations",
     {.sub_norms = false, .rotated_block = 8, .composites = false}},
    {"one scale for each matrix, groups in activations",
     {.heads = 2, .kv_heads = 1, .head_dim = 64, .ff = 256, .activation_group = 128}},
    {"widths that are no multiple of 128, ternary embedding",
     {.vocab = 33,
      .embedding = 96,
      .heads = 3,
      .kv_heads = 1,
      .head_dim = 32,
      .ff = 200,
      .embed_format = BITNET_FORMAT_TERNARY2,
      .head_format = BITNET_FORMAT_Q4_0}},
};

// Types of keys and values, each alone and both together.
constexpr std::pair<uint32_t, uint32_t> kv_pairs[] = {
    {BITNET_DTYPE_F16, BITNET_DTYPE_F16},   {BITNET_DTYPE_F32, BITNET_DTYPE_F32},
    {BITNET_DTYPE_Q8_0, BITNET_DTYPE_Q8_0}, {BITNET_DTYPE_Q8_0, BITNET_DTYPE_F16},
    {BITNET_DTYPE_F32, BITNET_DTYPE_Q8_0},  {BITNET_DTYPE_Q4_0, BITNET_DTYPE_Q4_0},
    {BITNET_DTYPE_Q4_0, BITNET_DTYPE_F16},  {BITNET_DTYPE_Q8_0, BITNET_DTYPE_Q4_0},
};

const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

std::vector<token_in> as_tokens(int32_t sequence = 0) {
  std::vector<token_in> out;
  for (const int32_t t : prompt) out.push_back({t, sequence});
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// How much of the square of all logits the square of their error may be on a GPU. A GPU rounds
// otherwise, which can move a quantised activation to the next integer. That is a step of max / 127
// in one of K inputs, and so (max / rms)^2 / (127^2 * K) of the row's square. For a max of 3 rms
// this is 9e-6 with 64 inputs, the smallest K here, and 4.4e-6 with 128. So the limit covers one
// moved input in each row of 64, or two in each row of 128. The roundings of sums are far smaller:
// (K * 2^-24)^2 is 6e-11 for 128 terms.
constexpr double most_squared_error = 1e-5;

// Whether `mine` is what tier0 computed.
bool agrees(const target& t, const std::vector<float>& mine, const std::vector<float>& plain) {
  if (!t.gpu) return same_bits(mine, plain);
  double error = 0, size = 0;
  for (uint64_t i = 0; i < plain.size(); ++i) {
    error += (double{mine[i]} - double{plain[i]}) * (double{mine[i]} - double{plain[i]});
    size += double{plain[i]} * double{plain[i]};
  }
  return mine.size() == plain.size() && error <= most_squared_error * size;
}

// Made once per shape: in an unoptimised build the making takes longer than the running.
const tiny_model& model_of(const tiny_shape& shape) {
  static std::deque<tiny_model> made;
  for (const tiny_model& m : made)
    if (m.shape() == shape) return m;
  return made.emplace_back(shape);
}

// Two short convolutions of one value, side by side in the state, which has an odd number of
// elements.
model two_convolutions() {
  constexpr int32_t k = 7, n = 3;
  model m;
  std::mt19937 random(5);
  const auto f32 = [&] { return m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k); };
  const uint32_t x = f32(), a = f32(), b = f32(), y = f32();
  m.op(BITNET_OP_EMBED_GATHER, {}, {x}, {m.dense(BITNET_FORMAT_F32, k, 32, random)});
  m.op(BITNET_OP_SHORT_CONV, {x}, {a}, {m.dense(BITNET_FORMAT_F32, n, k, random)});
  m.op(BITNET_OP_SHORT_CONV, {x}, {b}, {m.dense(BITNET_FORMAT_F32, n, k, random)}).ints[0] =
      (n - 1) * k;
  m.op(BITNET_OP_ADD, {a, b}, {y});
  m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, k);
  m.op(BITNET_OP_GATHER_ROWS, {y}, {m.logits});
  m.state_elements = 2 * (n - 1) * k + 1;
  return m;
}

class each_target : public testing::TestWithParam<target> {
 protected:
  void SetUp() override {
    tiny_host host(1);
    const plugin p(GetParam().path, host, GetParam().isa);
    uint32_t n = 0;
    const outcome o =
        attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
    if (o.status == BITNET_UNAVAILABLE) GTEST_SKIP() << o.message;
    ASSERT_EQ(o.status, BITNET_OK) << o.message;
    ASSERT_GE(n, 1u);
  }

  static std::vector<float> logits_of(const target& t, const tiny_shape& shape, uint32_t threads,
                                      const std::vector<uint64_t>& chunks,
                                      const runner_options& options = {}) {
    tiny_host host(threads);
    const plugin p(t.path, host, t.isa);
    runner r(p.table, model_of(shape), options);
    std::vector<float> out;
    const std::vector<token_in> all = as_tokens();
    uint64_t at = 0;
    for (const uint64_t n : chunks) {
      const std::vector<float> rows = r.run(
          {all.begin() + static_cast<int64_t>(at), all.begin() + static_cast<int64_t>(at + n)});
      out.insert(out.end(), rows.begin(), rows.end());
      at += n;
    }
    for (const float v : out) EXPECT_TRUE(std::isfinite(v));
    return out;
  }
};

TEST_P(each_target, batch_chunks_and_single_tokens_agree_bit_for_bit) {
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const std::vector<float> batch = logits_of(GetParam(), row.shape, 1, {11});
    EXPECT_TRUE(
        same_bits(batch, logits_of(GetParam(), row.shape, 1, std::vector<uint64_t>(11, 1))));
    EXPECT_TRUE(same_bits(batch, logits_of(GetParam(), row.shape, 1, {5, 1, 4, 1})));
  }
}

TEST_P(each_target, thread_counts_agree_bit_for_bit) {
  if (GetParam().gpu) GTEST_SKIP() << "it does not compute on the host's threads";
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const std::vector<float> one = logits_of(GetParam(), row.shape, 1, {7, 1, 3});
    for (const uint32_t threads : {2u, 5u})
      EXPECT_TRUE(same_bits(one, logits_of(GetParam(), row.shape, threads, {7, 1, 3}))) << threads;
  }
}

TEST_P(each_target, composites_and_bodies_agree_bit_for_bit) {
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    tiny_shape bodies = row.shape;
    bodies.composites = false;
    for (const uint32_t threads : {1u, 3u})
      EXPECT_TRUE(same_bits(logits_of(GetParam(), row.shape, threads, {7, 1, 3}),
                            logits_of(GetParam(), bodies, threads, {7, 1, 3})));
  }
}

// BITNET_TEST_ONE_KV: each shape with one pair of types only, the next one each time, for a driver
// that takes seconds to compile what it has not seen.
TEST_P(each_target, equals_the_plain_primitives_of_tier0) {
  const bool one = std::getenv("BITNET_TEST_ONE_KV") != nullptr;
  size_t nth = 0;
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const std::span<const std::pair<uint32_t, uint32_t>> pairs(kv_pairs);
    for (const auto& [k, v] : one ? pairs.subspan(nth++ % pairs.size(), 1) : pairs) {
      runner_options options;
      options.dtype_k = k;
      options.dtype_v = v;
      EXPECT_TRUE(agrees(GetParam(), logits_of(GetParam(), row.shape, 2, {8, 1, 2}, options),
                         logits_of(tier0(), row.shape, 1, {8, 1, 2}, options)));
    }
  }
}

TEST_P(each_target, keys_and_values_in_blocks_agree_however_the_work_is_cut) {
  const struct {
    const char* why;
    int64_t embedding, heads, kv_heads, head_dim;
  } rows[] = {
      {"two heads of one block", 128, 4, 2, 32},
      {"three blocks in a head, all query heads on one KV head", 96, 5, 1, 96},
      {"as many KV heads as heads", 160, 3, 3, 64},
      {"heads of BitNet b1.58 2B, four to a KV head", 128, 8, 2, 128},
      {"one wide head", 64, 1, 1, 224},
  };
  for (const auto& [k, v] : kv_pairs) {
    if (k != v || k < BITNET_DTYPE_Q8_0) continue;
    runner_options options;
    options.dtype_k = options.dtype_v = k;
    for (const auto& row : rows) {
      SCOPED_TRACE(std::string(row.why) + ", type " + std::to_string(k));
      const tiny_shape shape{.embedding = row.embedding,
                             .heads = row.heads,
                             .kv_heads = row.kv_heads,
                             .head_dim = row.head_dim,
                             .ff = 100};
      const std::vector<float> batch = logits_of(GetParam(), shape, 1, {11}, options);
      EXPECT_TRUE(agrees(GetParam(), batch, logits_of(tier0(), shape, 1, {11}, options)));
      EXPECT_TRUE(
          same_bits(batch, logits_of(GetParam(), shape, 2, std::vector<uint64_t>(11, 1), options)));
      EXPECT_TRUE(same_bits(batch, logits_of(GetParam(), shape, 5, {5, 1, 4, 1}, options)));
      EXPECT_FALSE(same_bits(batch, logits_of(GetParam(), shape, 1, {11})))
          << "nothing was quantised";
    }
  }
}

TEST_P(each_target, a_window_agrees_however_the_work_is_cut) {
  const std::vector<float> everything = logits_of(GetParam(), {}, 1, {11});
  const struct {
    const char* why;
    uint32_t window, keep, dtype;
  } rows[] = {
      {"itself alone", 1, 0, BITNET_DTYPE_F16},
      {"itself and the first", 1, 1, BITNET_DTYPE_F16},
      {"less than a block", 3, 0, BITNET_DTYPE_F16},
      {"a block, of int8", 4, 0, BITNET_DTYPE_Q8_0},
      {"a block, of 4 bits", 4, 0, BITNET_DTYPE_Q4_0},
      {"a part of a block kept", 4, 2, BITNET_DTYPE_F16},
      {"more than a block kept", 4, 6, BITNET_DTYPE_Q8_0},
      {"almost everything", 10, 0, BITNET_DTYPE_F16},
      {"window and kept meet", 7, 4, BITNET_DTYPE_F16},
      {"window and kept overlap", 7, 9, BITNET_DTYPE_F16},
      {"everything", 11, 0, BITNET_DTYPE_F16},
      {"numbers that would wrap", ~0u, ~0u, BITNET_DTYPE_F16},
      {"all kept", 1, ~0u, BITNET_DTYPE_F16},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    runner_options options;
    options.dtype_k = options.dtype_v = row.dtype;
    options.window = row.window;
    options.window_keep = row.keep;
    const std::vector<float> batch = logits_of(GetParam(), {}, 1, {11}, options);
    EXPECT_TRUE(agrees(GetParam(), batch, logits_of(tier0(), {}, 1, {11}, options)));
    EXPECT_TRUE(
        same_bits(batch, logits_of(GetParam(), {}, 2, std::vector<uint64_t>(11, 1), options)));
    EXPECT_TRUE(same_bits(batch, logits_of(GetParam(), {}, 3, {5, 1, 4, 1}, options)));
    if (row.dtype == BITNET_DTYPE_F16) {
      EXPECT_EQ(same_bits(batch, everything), row.window + uint64_t{row.keep} >= 11);
    }
  }
}

TEST_P(each_target, blocks_that_no_token_sees_are_not_read) {
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const std::vector<token_in> all = as_tokens();
  runner_options options;  // blocks of 4 tokens
  options.window = 3;
  for (const uint32_t keep : {0u, 2u}) {
    options.window_keep = keep;
    const std::vector<float> whole = logits_of(GetParam(), {}, 1, {11}, options);
    runner r(p.table, model_of({}), options);
    r.run({all.begin(), all.begin() + 10});
    // Token 10 sees 8, 9 and itself, which are in the third block, and the first `keep`.
    if (keep == 0) r.block_tables[0] = -1;
    r.block_tables[1] = INT32_MAX;
    EXPECT_TRUE(same_bits({whole.begin() + 10 * 50, whole.end()}, r.run({all[10]})));
  }
}

TEST_P(each_target, aliased_weights_give_the_same_logits) {
  runner_options alias;
  alias.alias = true;
  EXPECT_TRUE(
      same_bits(logits_of(GetParam(), {}, 1, {11}), logits_of(GetParam(), {}, 1, {11}, alias)));
}

TEST_P(each_target, sequences_of_one_batch_do_not_see_each_other) {
  const std::vector<float> alone = logits_of(GetParam(), {}, 1, {11});
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  runner r(p.table, model);
  std::vector<float> mixed;
  for (const token_in& t : as_tokens(1)) {
    const std::vector<float> rows = r.run({{7, 0}, t, {11, 2}});
    mixed.insert(mixed.end(), rows.begin() + 50, rows.begin() + 100);
  }
  EXPECT_TRUE(same_bits(alone, mixed));
}

TEST_P(each_target, exported_blocks_continue_a_session_elsewhere) {
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  const std::vector<token_in> all = as_tokens();
  for (const auto& [k, v] : kv_pairs) {
    runner_options options;
    options.dtype_k = k;
    options.dtype_v = v;
    const std::vector<float> whole = logits_of(GetParam(), {}, 1, {8, 3}, options);
    runner first(p.table, model, options), second(p.table, model, options);
    first.run({all.begin(), all.begin() + 8});
    second.prepare({all.begin(), all.begin() + 8});  // moves its positions on, computes nothing
    std::vector<uint8_t> block(first.block_bytes);
    for (uint32_t b = 0; b < 3; ++b) {
      const auto id = static_cast<uint32_t>(first.block_tables[b]);
      ASSERT_EQ(first.export_blocks({&id, 1}, block).status, BITNET_OK);
      ASSERT_EQ(second.import_blocks({&id, 1}, block).status, BITNET_OK);
    }
    const std::vector<float> rest = second.run({all.begin() + 8, all.end()});
    EXPECT_TRUE(same_bits({whole.begin() + 8 * 50, whole.end()}, rest));
  }
}

TEST_P(each_target, states_of_sequences_are_exported_among_blocks) {
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  for (const model& m : {conformance::recurrent_model(), two_convolutions()}) {
    runner first(p.table, m), second(p.table, m);
    std::vector<token_in> begin = as_tokens(0), rest(begin.begin() + 8, begin.end());
    begin.resize(8);
    for (const token_in& t : as_tokens(1)) (t.token < 5 ? begin : rest).push_back(t);
    first.run(begin);
    second.prepare(begin);  // moves its positions on, computes nothing
    const auto ids = [](const runner& r) {
      return std::vector<uint32_t>{r.state_block(1), static_cast<uint32_t>(r.block_tables[0]),
                                   r.state_block(0)};
    };
    const uint64_t of_state = m.state_elements * sizeof(float);
    std::vector<uint8_t> all(2 * of_state + first.block_bytes), one(of_state);
    ASSERT_EQ(first.export_blocks(ids(first), all).status, BITNET_OK);
    const uint32_t last = first.state_block(0);
    ASSERT_EQ(first.export_blocks({&last, 1}, one).status, BITNET_OK);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.end() - static_cast<int64_t>(of_state)));
    ASSERT_EQ(second.import_blocks(ids(second), all).status, BITNET_OK);
    EXPECT_TRUE(same_bits(first.run(rest), second.run(rest)));
  }
}

TEST_P(each_target, copied_blocks_continue_another_sequence) {
  const std::vector<float> whole = logits_of(GetParam(), {}, 1, {8, 3});
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  runner r(p.table, model);
  const std::vector<token_in> zero = as_tokens(0), one = as_tokens(1);
  r.run({zero.begin(), zero.begin() + 8});
  r.prepare({one.begin(), one.begin() + 8});
  const uint32_t from[] = {static_cast<uint32_t>(r.block_tables[0]),
                           static_cast<uint32_t>(r.block_tables[1])};
  const uint32_t to[] = {static_cast<uint32_t>(r.block_tables[8]),
                         static_cast<uint32_t>(r.block_tables[9])};
  ASSERT_EQ(r.copy_blocks(from, to).status, BITNET_OK);
  EXPECT_TRUE(
      same_bits({whole.begin() + 8 * 50, whole.end()}, r.run({one.begin() + 8, one.end()})));
}

TEST_P(each_target, output_rows_choose_which_logits_are_written) {
  const std::vector<float> all = logits_of(GetParam(), {}, 1, {11});
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  runner r(p.table, model);
  bitnet_step step = r.prepare(as_tokens());
  step.n_outputs = 2;
  r.output_rows[0] = 10;
  r.output_rows[1] = 3;
  r.logits[100] = 42.0f;
  ASSERT_EQ(r.submit(step).status, BITNET_OK);
  EXPECT_TRUE(same_bits({all.begin() + 500, all.begin() + 550}, {r.logits, r.logits + 50}));
  EXPECT_TRUE(same_bits({all.begin() + 150, all.begin() + 200}, {r.logits + 50, r.logits + 100}));
  EXPECT_EQ(r.logits[100], 42.0f) << "a row that was not requested";
}

TEST_P(each_target, a_step_may_want_only_the_largest_logits) {
  tiny_shape shape;
  shape.vocab = 1500;  // plugins/cpu has a two-stage form from 1024 on
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model& model = model_of(shape);
  for (const uint32_t top : {1u, 3u, 40u, 1499u, 1500u, 4'000'000'000u}) {
    runner full(p.table, model), some(p.table, model);
    for (const int32_t token : prompt) {
      const std::vector<float> all = full.run({{token}});
      bitnet_step step = some.prepare({{token}});
      step.top_logits = top;
      ASSERT_EQ(some.submit(step).status, BITNET_OK);
      std::vector<float> sorted = all;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const float least = top < sorted.size() ? sorted[top - 1] : -INFINITY;
      for (uint64_t i = 0; i < all.size(); ++i) {
        if (all[i] < least && std::isinf(some.logits[i])) continue;
        ASSERT_EQ(some.logits[i], all[i]) << "token " << i << ", the largest " << top;
      }
    }
  }
}

// The two-stage head of plugins/cpu takes up to 32 output rows at a time: every number of them
// around that gives each row's own largest logits, whatever the other rows are.
TEST_P(each_target, many_rows_may_want_only_the_largest_logits) {
  tiny_shape shape;
  shape.vocab = 1500;
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model& model = model_of(shape);
  runner_options options;
  options.max_tokens = options.max_outputs = 70;
  options.max_blocks = options.n_blocks = 20;
  for (const uint32_t rows : {2u, 31u, 32u, 33u, 64u, 70u}) {
    SCOPED_TRACE(rows);
    std::vector<token_in> tokens;
    for (uint32_t t = 0; t < rows; ++t) tokens.push_back({static_cast<int32_t>((7 * t + 3) % 50)});
    runner full(p.table, model, options), some(p.table, model, options);
    const std::vector<float> all = full.run(tokens);
    bitnet_step step = some.prepare(tokens);
    step.top_logits = 3;
    ASSERT_EQ(some.submit(step).status, BITNET_OK);
    for (uint32_t row = 0; row < rows; ++row) {
      const auto vocab = static_cast<uint64_t>(shape.vocab);
      const float* of = all.data() + row * vocab;
      std::vector<float> sorted(of, of + vocab);
      std::nth_element(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
      for (uint64_t i = 0; i < vocab; ++i) {
        const float found = some.logits[row * vocab + i];
        if (of[i] < sorted[2] && std::isinf(found)) continue;
        ASSERT_EQ(found, of[i]) << "row " << row << ", token " << i;
      }
    }
  }
}

TEST_P(each_target, a_step_may_want_no_logits) {
  tiny_host host(2);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  runner r(p.table, model);
  bitnet_step step = r.prepare(as_tokens());
  step.n_outputs = 0;
  EXPECT_EQ(r.submit(step).status, BITNET_OK);
}

TEST_P(each_target, cancellation_stops_between_ops_and_moves_no_timeline) {
  tiny_host host(3);
  const plugin p(GetParam().path, host, GetParam().isa);
  const tiny_model model({});
  runner r(p.table, model);
  r.run({{1, 0}});
  const int64_t checks = host.cancel_checks;
  ASSERT_GT(checks, GetParam().gpu ? 0 : 4);
  for (const int64_t after : {int64_t{0}, int64_t{1}, checks / 2, checks - 1}) {
    if (after >= checks) continue;
    host.cancel_checks = 0;
    host.cancel_after = after;
    uint64_t before = 0, now = 0;
    must([&](bitnet_error* e) { return p.table.queue_poll(r.queue, &before, e); });
    EXPECT_EQ(r.submit(r.prepare({{2, 0}})).status, BITNET_CANCELLED) << after;
    must([&](bitnet_error* e) { return p.table.queue_poll(r.queue, &now, e); });
    EXPECT_EQ(now, before);
  }
  host.cancel_after = -1;
  EXPECT_EQ(r.submit(r.prepare({{2, 1}})).status, BITNET_OK);
}

// How far a logit may be from the judge's at the end of a long context. It is a sum of 128 products
// of a normed row, whose mean size is 0.8, and weights between -1 and 1, whose mean size is 0.5:
// of 51 in all. In any order the two sums are each off by 128 roundings of it, together by
// 2 * 128 * 2^-24 * 51 = 8e-4. The rest covers what comes before, among it softmax's denominator:
// a sum of up to 18400 terms is off by about sqrt(18400) * 2^-24 = 8e-6 of itself. The number does
// not cover a quantised activation that moves to the next integer: with these inputs none does.
constexpr float long_context_tolerance = 1e-3f;

// What is far away counts as much as what is near: all that a token sees lies at the end of its
// context, behind thousands of positions whose keys and values are zeros. A driver that cannot do
// it says so.
TEST_P(each_target, the_end_of_a_long_context_is_seen) {
  runner_options options;
  options.max_sequences = 1;
  options.block_tokens = 16;
  options.n_blocks = 8;
  const auto last_token = [&](const plugin& p, const tiny_model& model) {
    runner r(p.table, model, options);
    for (const int32_t block : {0, 1}) r.block_tables[block] = block;
    std::vector<token_in> two_blocks;
    for (int32_t t = 0; t < 32; ++t) two_blocks.push_back({t});
    for (uint64_t at = 0; at < two_blocks.size(); at += options.max_tokens)
      r.run({two_blocks.begin() + static_cast<int64_t>(at),
             two_blocks.begin() + static_cast<int64_t>(at + options.max_tokens)});
    const bitnet_step step = r.prepare({{7}});
    for (uint32_t b = 0; b < options.max_blocks; ++b) r.block_tables[b] = 5;
    const auto end = static_cast<int32_t>(options.max_blocks);
    for (const int32_t b : {0, 1, 2}) r.block_tables[end - 3 + b] = b;
    const auto block_tokens = static_cast<int32_t>(options.block_tokens);
    r.positions[0] = (end - 1) * block_tokens;
    r.slots[0] = 2 * block_tokens;
    if (const outcome o = r.submit(step); o.status != BITNET_OK) throw call_failed(o);
    return std::vector<float>(r.logits, r.logits + model.vocabulary());
  };
  tiny_host host(1);
  const plugin judge(tier0().path, host);
  const plugin p(GetParam().path, host, GetParam().isa);
  for (const auto& [head_dim, blocks] : {std::pair{32, 750}, {64, 1150}, {128, 850}, {256, 640}}) {
    SCOPED_TRACE(head_dim);
    options.max_blocks = static_cast<uint32_t>(blocks);
    tiny_shape shape;
    shape.layers = 1;
    shape.heads = 2;
    shape.kv_heads = 1;
    shape.head_dim = head_dim;
    const tiny_model model(shape);
    std::vector<float> found;
    try {
      found = last_token(p, model);
    } catch (const call_failed& e) {
      EXPECT_NE(std::string(e.what()).find("shorter context"), std::string::npos) << e.what();
      EXPECT_GT(head_dim, 32) << "12000 tokens are not too many";
      continue;
    }
    const std::vector<float> expected = last_token(judge, model);
    for (uint64_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], long_context_tolerance) << i;
  }
}

TEST_P(each_target, statistics_count_what_ran) {
  for (const auto& [composites, group] : {std::pair{true, 0u}, {false, 0u}, {false, 32u}}) {
    SCOPED_TRACE(group);
    tiny_shape shape;
    shape.composites = composites;
    shape.scale_group = group;
    if (group != 0) shape.ff = 256;
    tiny_host host(1);
    const plugin p(GetParam().path, host, GetParam().isa);
    const tiny_model model(shape);
    runner_options options;
    options.flags = BITNET_PROGRAM_PROFILE;
    runner r(p.table, model, options);
    EXPECT_TRUE(r.stats().empty());
    r.run(as_tokens());
    r.run({{1, 1}});
    EXPECT_EQ(r.calls("embed_gather"), 2u);
    const bool fuses = r.calls("qkv_rope_kv") != 0;
    EXPECT_FALSE(fuses && !composites);
    const uint64_t products =
        r.calls("linear_ternary") + r.calls("bit_linear") + r.calls("rms_norm_bit_linear");
    EXPECT_EQ(products, fuses ? 0u : 2u * 2 * 7) << "two layers, two steps";
    EXPECT_EQ(r.calls("ffn_relu2_gated"), fuses ? 2u * 2 : 0u);
    uint64_t time = 0, bytes = 0;
    for (const bitnet_kernel_stat& s : r.stats()) {
      time += s.time_ns;
      bytes += s.bytes;
    }
    EXPECT_GT(time, 0u);
    // Two steps read every matrix, the scales of its groups and each norm (in f32) twice; of the
    // embedding 12 rows.
    const std::vector<bitnet_tensor_desc> descs = model.descs();
    uint64_t expected = 12 * (descs[0].data_bytes / static_cast<uint64_t>(shape.vocab));
    for (uint64_t i = 1; i < descs.size(); ++i)
      expected += 2 * (descs[i].rank == 1 ? 4 * static_cast<uint64_t>(descs[i].ne[0])
                                          : descs[i].data_bytes);
    if (group != 0)
      for (const bitnet_tensor_desc& d : descs) expected += 2 * 4 * d.n_scales;
    EXPECT_EQ(bytes, expected);
  }
}

TEST_P(each_target, graph_query_knows_every_primitive) {
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
#define BITNET_ROW(NAME, ID, ...) ID,
  const uint32_t ids[] = {BITNET_OP_LIST(BITNET_ROW)};
#undef BITNET_ROW
  for (const uint32_t id : ids) {
    const uint32_t level = level_of(p.table, device, id, BITNET_FORMAT_NONE);
    if (id < BITNET_OP_FIRST_COMPOSITE) {
      EXPECT_NE(level, BITNET_LEVEL_NONE) << id;
    } else {
      EXPECT_TRUE(level == BITNET_LEVEL_NONE || level == BITNET_LEVEL_FUSED) << id;
    }
  }
  p.table.device_close(device);
}

TEST_P(each_target, kernels_and_facts_are_listed) {
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  uint32_t n = 0;
  must([&](bitnet_error* e) { return p.table.kernels(p.table.self, 0, nullptr, 0, &n, e); });
  ASSERT_GE(n, 13u);
  std::vector<bitnet_kernel_info> all(n + 1);
  all[n - 1].op = 777;
  uint32_t capacity = n - 1;
  must([&](bitnet_error* e) {
    return p.table.kernels(p.table.self, 0, all.data(), sizeof all[0], &capacity, e);
  });
  EXPECT_EQ(capacity, n);
  EXPECT_EQ(all[n - 1].op, 777u) << "written past the capacity";
  bitnet_device_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return p.table.device_info(p.table.self, 0, &info, e); });
  if (!GetParam().gpu) {
    EXPECT_EQ(info.device_class, BITNET_DEVICE_CPU);
    EXPECT_EQ(info.buffer_alignment_bytes, 64u);
  }
  EXPECT_EQ(info.attention_flags, BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW);
  EXPECT_NE(info.kv_dtypes & 1u << BITNET_DTYPE_Q8_0, 0u);
  EXPECT_NE(info.kv_dtypes & 1u << BITNET_DTYPE_Q4_0, 0u);
  if (!GetParam().isa.empty()) {
    EXPECT_TRUE(std::string(info.arch).ends_with(GetParam().isa)) << info.arch;
    EXPECT_TRUE(std::string(all[0].id).ends_with(GetParam().isa)) << all[0].id;
  }
}

// What graph_query says that a block of such a pool takes.
uint64_t kv_block_bytes(const bitnet_backend_v0& table, bitnet_device* device,
                        const bitnet_kv_config& config) {
  const tiny_model m({});
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  const bitnet_program_options options = conformance::least_options();
  const bitnet_query_request request = conformance::query_request(graph, descs, options, &config);
  std::vector<uint32_t> levels(m.ops.size());
  bitnet_graph_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  must([&](bitnet_error* e) {
    return table.graph_query(device, &request, levels.data(), &estimate, e);
  });
  return estimate.kv_block_bytes;
}

// Of 32 keys or values, which a GPU keeps in whole words.
uint64_t bytes_of_32(uint32_t dtype) {
  return dtype == BITNET_DTYPE_F32    ? 128
         : dtype == BITNET_DTYPE_F16  ? 64
         : dtype == BITNET_DTYPE_Q8_0 ? 36
                                      : 20;
}

// A buffer that is destroyed and created again is the same memory, and the device reports that.
template <class Ask>
void expect_use_reported(const bitnet_backend_v0& t, bitnet_device* device,
                         const bitnet_buffer_request& request, const Ask& ask) {
  const auto make = [&] {
    bitnet_buffer* buffer = nullptr;
    must([&](bitnet_error* e) { return t.buffer_create(device, &request, &buffer, e); });
    return buffer;
  };
  t.buffer_destroy(make());
  const bitnet_device_status before = ask();
  EXPECT_NE(before.known & BITNET_STATUS_POOL_USE, 0u);
  t.buffer_destroy(make());
  const bitnet_device_status after = ask();
  EXPECT_EQ(after.pool_hits, before.pool_hits + 1);
  EXPECT_EQ(after.pool_misses, before.pool_misses);
  EXPECT_EQ(after.pool_peak_bytes, before.pool_peak_bytes);
  EXPECT_GE(after.pool_peak_bytes, request.bytes);
}

// What objects have is counted as long as they live.
TEST_P(each_target, a_device_reports_what_its_objects_have) {
  tiny_host host(1);
  const plugin p(GetParam().path, host, GetParam().isa);
  const bitnet_backend_v0& t = p.table;
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(t, 0, &device, e); });
  const auto ask = [&] {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    must([&](bitnet_error* e) { return t.device_status(device, &s, e); });
    return s;
  };
  if (!GetParam().gpu) {  // host memory is in no pool: not counted and not reported
    if (t.device_status) {
      EXPECT_EQ(ask().known & BITNET_STATUS_POOL, 0u);
    }
    return t.device_close(device);
  }
  const auto used = [&] {
    const bitnet_device_status s = ask();
    EXPECT_NE(s.known & BITNET_STATUS_POOL, 0u);
    EXPECT_LE(s.pool_used_bytes, s.pool_bytes);
    return s.pool_used_bytes;
  };
  constexpr uint64_t mib = uint64_t{1} << 20;
  EXPECT_EQ(used(), 0u);
  bitnet_buffer_request request{};
  request.struct_size = sizeof request;
  request.bytes = mib;
  bitnet_buffer* buffer = nullptr;
  must([&](bitnet_error* e) { return t.buffer_create(device, &request, &buffer, e); });
  EXPECT_EQ(used(), mib);
  expect_use_reported(t, device, request, ask);
  // Two layers of 4 heads of 64, in blocks of 16 tokens.
  bitnet_kv_config config{};
  config.struct_size = sizeof config;
  config.n_layers = 2;
  config.n_kv_heads = 4;
  config.head_dim_k = config.head_dim_v = 64;
  config.block_tokens = 16;
  config.n_blocks = 8;
  for (const auto& [k, v] : kv_pairs) {
    SCOPED_TRACE(std::to_string(k) + " " + std::to_string(v));
    config.dtype_k = k;
    config.dtype_v = v;
    const uint64_t block = uint64_t{2} * 4 * 16 * 2 * (bytes_of_32(k) + bytes_of_32(v));
    EXPECT_EQ(kv_block_bytes(t, device, config), block);
    bitnet_kv_pool* blocks = nullptr;
    must([&](bitnet_error* e) { return t.kv_pool_create(device, &config, &blocks, e); });
    EXPECT_EQ(used(), mib + 8 * block);
    t.kv_pool_destroy(blocks);
    EXPECT_EQ(used(), mib);
  }
  t.buffer_destroy(buffer);
  EXPECT_EQ(used(), 0u);
  t.device_close(device);
}

INSTANTIATE_TEST_SUITE_P(backends, each_target, testing::ValuesIn(all_targets()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace bitnet::parity
