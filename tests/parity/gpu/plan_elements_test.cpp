// What plugins/gpu-common has a device run for what goes through rows element by element and for
// what keeps states, and for which sizes of steps. Expectations as in plan_test.cpp.

#include <gtest/gtest.h>

#include "planned.hpp"

namespace bitnet::parity {
namespace {

model hadamard(int64_t k, int32_t block, int32_t factors, bool has_factors) {
  model m = bare();
  const uint32_t x = in(m, k), y = inner(m, k);
  const model::indices weights =
      has_factors ? model::indices{weight(m, BITNET_FORMAT_F32, k, 1)} : model::indices{};
  bitnet_op& op = m.op(BITNET_OP_HADAMARD, {x}, {y}, weights);
  op.ints[0] = block;
  op.ints[1] = factors;
  out(m, y);
  return m;
}

TEST(plan_of_transforms, blocks_go_by_tiles) {
  // A tile has 512 elements at least and 4096 at most, as memory of a group takes them in f32.
  const struct {
    int64_t k;
    int32_t block;
    uint32_t shared;
    lines expected;
    const char* why;
  } rows[] = {
      {1024, 128, 32768, {"hadamard 2*1 [64 512]"}, "several blocks to a tile"},
      {4096, 4096, 32768, {"hadamard 1*1 [64 4096]"}, "a block is a tile"},
      {8192, 4096, 16384, {"hadamard 2*1 [64 4096]"}, "just enough memory"},
      {8192, 4096, 16383, {"hadamard 4*1 [64 2048]", "hadamard 4*1 [64 2048]"}, "a byte less"},
      {8192, 8192, 49152, {"hadamard 2*1 [64 4096]", "hadamard 2*1 [64 4096]"}, "two tiles"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    gpu::facts about = like_vulkan();
    about.capabilities.shared_memory_bytes = row.shared;
    described d(about, hadamard(row.k, row.block, 0, false), of(4));
    EXPECT_EQ(lines_of(step_of(d, 1)), row.expected);
  }
}

TEST(plan_of_transforms, the_second_pass_is_in_place) {
  for (const int32_t factors : {BITNET_HADAMARD_FACTORS_FIRST, BITNET_HADAMARD_FACTORS_LAST}) {
    described d(like_vulkan(), hadamard(16384, 16384, factors, true), of(4));
    const written_commands c = step_of(d, 1);
    ASSERT_EQ(names_of(c), lines(2, "hadamard"));
    EXPECT_NE(c[0].bindings[1], c[0].bindings[3]);
    EXPECT_EQ(c[1].bindings[1], c[0].bindings[3]);
    EXPECT_EQ(c[1].bindings[3], c[0].bindings[3]);
    EXPECT_TRUE(c[1].after);
    const auto one = c[0].as<gpu::hadamard_params>(), two = c[1].as<gpu::hadamard_params>();
    EXPECT_EQ(one.from, 1u);
    EXPECT_EQ(one.to, 4096u);
    EXPECT_EQ(two.from, 4096u);
    EXPECT_EQ(two.to, 16384u);
    const bool first = factors == BITNET_HADAMARD_FACTORS_FIRST;
    EXPECT_EQ(one.before, first ? 1u : 0u);
    EXPECT_EQ(one.after, 0u);
    EXPECT_EQ(two.before, 0u);
    EXPECT_EQ(two.after, first ? 0u : 1u);
    EXPECT_EQ(one.scale, 1.0f);
    EXPECT_EQ(two.scale, 1.0f / 128);  // once, of all 16384
  }
}

model short_conv(int64_t k, int64_t factors) {
  model m = bare();
  m.state_elements = static_cast<uint32_t>((factors - 1) * k);
  const uint32_t x = in(m, k), y = inner(m, k);
  m.op(BITNET_OP_SHORT_CONV, {x}, {y}, {weight(m, BITNET_FORMAT_F32, factors, k)});
  out(m, y);
  return m;
}

TEST(plan_of_states, tokens_are_cut_where_loops_end) {
  described whole(like_vulkan(), short_conv(192, 4), of(16));
  written_commands c = step_of(whole, 16);
  ASSERT_EQ(lines_of(c), lines{"short_conv 3*1 [64 4]"});
  auto p = c[0].as<gpu::short_conv_params>();
  EXPECT_EQ(p.first, 0u);
  EXPECT_GE(p.last, 16u);
  EXPECT_EQ(p.state_words, 576u) << "three rows of 192, which end where the next state may begin";

  for (const uint32_t passes : {160u, 250u, 400u}) {
    SCOPED_TRACE(passes);
    gpu::facts about = like_vulkan();
    about.quirks.max_passes = passes;
    described cut(about, short_conv(192, 4), of(16));
    c = step_of(cut, 16);
    EXPECT_GT(c.size(), 1u);
    uint32_t next = 0;
    for (const written_command& one : c) {
      p = one.as<gpu::short_conv_params>();
      EXPECT_EQ(p.first, next) << "no token is left out, none comes twice";
      EXPECT_LT(p.first, 16u) << "no command is for nothing";
      EXPECT_TRUE(one.after) << "it goes on from the state that the one before left";
      next = p.last;
    }
    EXPECT_GE(next, 16u);
    EXPECT_EQ(step_of(cut, 1).size(), 1u);
  }
}

model delta_rule(int32_t n_k, int32_t n_v, int32_t d_k, int32_t d_v) {
  model m = bare();
  m.state_elements = static_cast<uint32_t>(n_v * d_k * d_v);
  const uint32_t x = in(m, 2 * n_k * d_k + n_v * d_v), gates = in(m, 2 * n_v);
  const uint32_t y = inner(m, n_v * d_v);
  bitnet_op& op = m.op(BITNET_OP_DELTA_RULE, {x, gates}, {y});
  const int32_t ints[] = {0, n_k, n_v, d_k, d_v};
  std::ranges::copy(ints, op.ints);
  op.floats[0] = 1;
  out(m, y);
  return m;
}

TEST(plan_of_states, heads_go_by_tiles_of_columns) {
  // 160 columns are three tiles of 64 threads; on a processor a thread has them all.
  described d(like_vulkan(), delta_rule(2, 4, 64, 160), of(4));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(lines_of(c), lines{"delta_rule 12*1 [64 64]"});
  EXPECT_EQ(c[0].as<gpu::delta_rule_params>().tiles, 3u);
  gpu::facts processor = like_vulkan();
  processor.device_class = BITNET_DEVICE_CPU;
  processor.capabilities.group_size = 1;
  described one(processor, delta_rule(2, 4, 64, 160), of(4));
  EXPECT_EQ(lines_of(step_of(one, 1)), lines{"delta_rule 4*1 [1 64]"});
}

TEST(plan_of_steps, are_recorded_for_sizes_that_are_met) {
  // For one token, four, sixteen and so on, and for what the host says will be common.
  model m = bare();
  const uint32_t x = in(m, 64), y = inner(m, 64);
  m.op(BITNET_OP_SILU, {x}, {y});
  out(m, y);
  runner_options o = of(50);
  o.buckets = {6, 40};
  described d(like_vulkan(), m, o);
  const std::pair<uint32_t, uint32_t> rows[] = {{1, 1},  {2, 4},   {4, 4},   {5, 6},   {6, 6},
                                                {7, 16}, {17, 40}, {40, 40}, {41, 50}, {50, 50}};
  for (const auto& [tokens, recorded] : rows)
    EXPECT_EQ(step_of(d, tokens)[0].groups_y, recorded) << tokens;
}

}  // namespace
}  // namespace bitnet::parity
