// What plugins/gpu-common has a device run for attention and for the output head: kernels,
// constants, grids, what is bound to them and order, for devices of several kinds. Expectations are
// counted by hand from what kernels.hpp says of each kernel and from shapes; comments say how.

#include <gtest/gtest.h>

#include "gpu-common/names.hpp"
#include "planned.hpp"

namespace bitnet::parity {
namespace {

// ---- attention

struct heads {
  int32_t q, kv, dim, window = 0;
};

// One or more layers of KV_WRITE and ATTN_PAGED.
model attention(const heads& h, uint32_t layers = 1) {
  model m = bare();
  m.kv_layers = layers;
  m.kv_heads = static_cast<uint32_t>(h.kv);
  m.head_dim = static_cast<uint32_t>(h.dim);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const uint32_t q = in(m, h.q * h.dim), k = in(m, h.kv * h.dim), v = in(m, h.kv * h.dim);
    m.op(BITNET_OP_KV_WRITE, {k, v}, {}).ints[0] = static_cast<int32_t>(layer);
    const uint32_t y = inner(m, h.q * h.dim);
    bitnet_op& op = m.op(BITNET_OP_ATTN_PAGED, {q}, {y});
    op.ints[0] = static_cast<int32_t>(layer);
    op.ints[1] = h.q;
    op.ints[2] = h.kv;
    op.ints[3] = h.dim;
    op.ints[4] = h.window;
    op.floats[0] = 0.125f;
    out(m, y);
  }
  return m;
}
// A context of so many positions, in blocks of 64 or as many.
runner_options with_context(runner_options o, uint32_t positions) {
  o.block_tokens = std::min(positions, 64u);
  if (positions % o.block_tokens != 0) o.block_tokens = positions;
  o.max_blocks = positions / o.block_tokens;
  o.n_blocks = o.max_blocks + 1;
  return o;
}

TEST(plan_of_attention, of_few_tokens_goes_by_parts) {
  // 2048 positions are 32 parts of 64. Words of keys and values: at most 2 * 128, by 128 threads.
  // Four query heads to a KV head fill a tile of four rows, so that each KV head has one share:
  // 2 * 1 * 32 groups. F16 is dtype 2.
  described d(like_cuda(), attention({8, 2, 64, 1000}), with_context(of(16), 2048));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(lines_of(c), (lines{"kv_write 2*1 [128 2 2]", "attn_tiles 64*1 [128 2 2 4 64]",
                                "attn_merge 8*1 [128]"}));
  EXPECT_TRUE(c[1].after) << "it reads the keys";
  EXPECT_TRUE(c[2].after) << "it reads the parts";
  const auto tiles = c[1].as<gpu::attn_tiles_params>();
  EXPECT_EQ(tiles.n_heads, 8u);
  EXPECT_EQ(tiles.n_kv_heads, 2u);
  EXPECT_EQ(tiles.head_dim, 64u);
  EXPECT_EQ(tiles.block_tokens, 64u);
  EXPECT_EQ(tiles.max_blocks, 32u);
  EXPECT_EQ(tiles.scale, 0.125f);
  EXPECT_EQ(tiles.window, 1000u);
  EXPECT_EQ(tiles.parts, 32u);
  const auto merge = c[2].as<gpu::attn_merge_params>();
  EXPECT_EQ(merge.n_heads, 8u);
  EXPECT_EQ(merge.head_dim, 64u);
  EXPECT_EQ(merge.window, 1000u);
  EXPECT_EQ(merge.parts, 32u);

  // Keys and values that were written are those that are read.
  EXPECT_EQ(c[1].bindings[5], c[0].bindings[5]);
  EXPECT_EQ(c[1].bindings[6], c[0].bindings[6]);
  // Of 16 tokens, 8 heads and 32 parts 64 sums and two numbers each.
  EXPECT_EQ(c[1].bindings[7].bytes, 16u * 8 * 32 * (64 + 2) * 4);
  EXPECT_EQ(c[2].bindings[2], c[1].bindings[7]);
  EXPECT_EQ(c[2].bindings[1], c[1].bindings[2]) << "positions";
}

TEST(plan_of_attention, of_a_short_context_is_one_command) {
  // 256 positions are four parts, which one group takes in turn; 257 are five.
  const struct {
    uint32_t positions;
    lines expected;
  } rows[] = {
      {64, {"kv_write 2*1 [128 2 2]", "attn_tiles 2*1 [128 2 2 4 64]"}},
      {256, {"kv_write 2*1 [128 2 2]", "attn_tiles 2*1 [128 2 2 4 64]"}},
      {257, {"kv_write 2*1 [128 2 2]", "attn_tiles 10*1 [128 2 2 4 64]", "attn_merge 8*1 [128]"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.positions);
    described d(like_cuda(), attention({8, 2, 64}), with_context(of(16), row.positions));
    const written_commands c = step_of(d, 1);
    ASSERT_EQ(lines_of(c), row.expected);
    EXPECT_EQ(c[1].as<gpu::attn_tiles_params>().parts, row.expected.size() == 2 ? 0u : 5u);
    const uint64_t y = uint64_t{16} * 512 * 4;
    EXPECT_EQ(c.back().bindings.back().bytes, y) << "what the last one writes is the value";
  }
}

// Parts are a kernel of their own, which the host may disable.
TEST(plan_of_attention, parts_can_be_disabled) {
  described by_parts(like_cuda(), attention({8, 2, 64}), with_context(of(16), 257));
  step_of(by_parts, 1);
  EXPECT_EQ(by_parts.calls("attn_paged_parts.api"), 2u);
  EXPECT_EQ(by_parts.calls("attn_paged.api"), 0u);
  described whole(like_cuda(), attention({8, 2, 64}), with_context(of(16), 257),
                  {{"disable", "attn_paged_parts.api"}});
  EXPECT_EQ(lines_of(step_of(whole, 1)),
            (lines{"kv_write 2*1 [128 2 2]", "attn_tiles 2*1 [128 2 2 4 64]"}));
  EXPECT_EQ(whole.calls("attn_paged.api"), 1u);
}

TEST(plan_of_attention, of_many_tokens_goes_by_tiles) {
  described d(like_cuda(), attention({8, 2, 64}), with_context(of(64), 2048));
  // Steps are recorded for 1, 4, 16 and 64 tokens. Up to 16 their context is cut, and of those 16
  // tokens are all that parts are kept of.
  EXPECT_EQ(lines_of(step_of(d, 5)),
            (lines{"kv_write 2*16 [128 2 2]", "attn_tiles 64*16 [128 2 2 4 64]",
                   "attn_merge 8*16 [128]"}));
  EXPECT_EQ(d.seen().submitted.back()[1].bindings[7].bytes, 16u * 8 * 32 * 66 * 4);
  // From there on tiles have 16 rows, of four heads and four tokens.
  const written_commands c = step_of(d, 17);
  EXPECT_EQ(lines_of(c), (lines{"kv_write 2*64 [128 2 2]", "attn_tiles 2*64 [128 2 2 16 64]"}));
  EXPECT_EQ(c[1].as<gpu::attn_tiles_params>().parts, 0u);
}

TEST(plan_of_attention, tiles_are_as_large_as_heads_and_memory_want) {
  // A row of heads of 64 takes 64 + 64 + 2 * 64 + 9 = 265 words, and a tile 64 more: 16 rows are
  // 17216 bytes, 8 are 8736. Of 256: 649 words, so that 16 are 41792, 8 are 21024, 4 are 10640.
  const struct {
    heads h;
    uint32_t shared, few, many;  // bytes; rows of a tile for one token, and for a prompt
    uint32_t groups;             // of a token, times parts
    const char* why;
  } rows[] = {
      {{8, 8, 64}, 49088, 4, 16, 8, "a head of its own to each"},
      {{8, 1, 64}, 49088, 8, 16, 1, "eight heads share"},
      {{20, 2, 64}, 49088, 16, 16, 2, "ten share, and tiles are powers of two"},
      {{24, 1, 64}, 49088, 16, 16, 2, "more than a tile has: two shares"},
      {{8, 1, 64}, 17216, 8, 16, 1, "just enough memory for 16 rows"},
      {{8, 1, 64}, 17215, 8, 8, 1, "a byte less"},
      {{8, 1, 64}, 8735, 4, 4, 2, "and for four only, so that eight heads are two shares"},
      {{4, 1, 256}, 49088, 4, 16, 1, "long heads"},
      {{16, 1, 256}, 41791, 8, 8, 2, "that are two shares"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    gpu::facts about = like_cuda();
    about.capabilities.shared_memory_bytes = row.shared;
    described d(about, attention(row.h), with_context(of(64), 640));  // ten parts
    const written_commands one = step_of(d, 1), all = step_of(d, 64);
    ASSERT_EQ(names_of(one), (lines{"kv_write", "attn_tiles", "attn_merge"}));
    ASSERT_EQ(names_of(all), (lines{"kv_write", "attn_tiles"}));
    EXPECT_EQ(one[1].spec.constants[3], row.few);
    EXPECT_EQ(one[1].groups_x, row.groups * 10);
    EXPECT_EQ(all[1].spec.constants[3], row.many);
    EXPECT_EQ(all[1].groups_y, 64u);
  }
}

TEST(plan_of_attention, grids_end_where_a_device_ends_them) {
  // 8 KV heads and 16384 parts are more groups than there may be; they take several in turn.
  described d(like_cuda(), attention({8, 8, 64}), with_context(of(1), 1u << 20));
  const written_commands c = step_of(d, 1);
  EXPECT_EQ(c[1].groups_x, 65535u);
  EXPECT_EQ(c[1].as<gpu::attn_tiles_params>().parts, 16384u);
}

TEST(plan_of_attention, layers_have_parts_of_their_own) {
  described d(like_cuda(), attention({8, 2, 64}, 2), with_context(of(4), 2048));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(names_of(c), (lines{"kv_write", "attn_tiles", "attn_merge", "kv_write", "attn_tiles",
                                "attn_merge"}));
  EXPECT_EQ(c[2].bindings[2], c[1].bindings[7]);
  EXPECT_EQ(c[5].bindings[2], c[4].bindings[7]);
  for (const uint64_t at : {5, 6})
    EXPECT_FALSE(c[1].bindings[at].meets(c[4].bindings[at])) << "keys and values of a layer";
}

// A layer whose queries and keys are turned.
struct turning {
  float theta_of_k = 10000;
  bool also_out = false;                // the turned queries are read by others, too
  bool read_before = false;             // another attention reads the layer's keys first
  bool norm_q = false, norm_k = false;  // heads are normed before
};
model turned_attention(const heads& h, const turning& how = {}) {
  model m = bare();
  m.kv_layers = 1;
  m.kv_heads = static_cast<uint32_t>(h.kv);
  m.head_dim = static_cast<uint32_t>(h.dim);
  const uint32_t q = in(m, h.q * h.dim), k = in(m, h.kv * h.dim), v = in(m, h.kv * h.dim);
  const auto turn = [&](uint32_t x, int32_t n, float theta) {
    const uint32_t y = inner(m, n * h.dim);
    bitnet_op& op = m.op(BITNET_OP_ROPE, {x}, {y});
    op.ints[0] = n;
    op.ints[1] = op.ints[2] = h.dim;
    op.floats[0] = theta;
    op.floats[1] = 1;
    return y;
  };
  const auto norm = [&](uint32_t x, int32_t n, float eps) {
    const uint32_t y = inner(m, n * h.dim);
    bitnet_op& op =
        m.op(BITNET_OP_RMS_NORM_HEADS, {x}, {y}, {weight(m, BITNET_FORMAT_F32, h.dim, 1)});
    op.ints[0] = n;
    op.floats[0] = eps;
    return y;
  };
  const uint32_t first_q = how.norm_q ? norm(q, h.q, 0.5f) : q;
  const uint32_t first_k = how.norm_k ? norm(k, h.kv, 0.25f) : k;
  const uint32_t turned_q = turn(first_q, h.q, 10000);
  const uint32_t turned_k = turn(first_k, h.kv, how.theta_of_k);
  m.op(BITNET_OP_KV_WRITE, {turned_k, v}, {});
  const auto attend = [&](uint32_t x) {
    const uint32_t y = inner(m, h.q * h.dim);
    bitnet_op& op = m.op(BITNET_OP_ATTN_PAGED, {x}, {y});
    op.ints[1] = h.q;
    op.ints[2] = h.kv;
    op.ints[3] = h.dim;
    op.ints[4] = h.window;
    op.floats[0] = 0.125f;
    out(m, y);
  };
  if (how.read_before) attend(q);
  attend(turned_q);
  if (how.also_out) out(m, turned_q);
  return m;
}

TEST(plan_of_attention, of_one_token_is_one_command) {
  // As above: 2 KV heads times 32 parts.
  described d(like_cuda(), turned_attention({8, 2, 64, 1000}), with_context(of(16), 2048));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(lines_of(c), (lines{"attn_token 64*1 [128 2 2 4 64]"}));
  const auto p = c[0].as<gpu::attn_token_params>();
  EXPECT_EQ(p.n_heads, 8u);
  EXPECT_EQ(p.n_kv_heads, 2u);
  EXPECT_EQ(p.head_dim, 64u);
  EXPECT_EQ(p.block_tokens, 64u);
  EXPECT_EQ(p.max_blocks, 32u);
  EXPECT_EQ(p.scale, 0.125f);
  EXPECT_EQ(p.window, 1000u);
  EXPECT_EQ(p.parts, 32u);
  EXPECT_EQ(p.pairs, 32u);
  EXPECT_EQ(p.neox, 1u);
  EXPECT_EQ(p.norms, 0u);
  EXPECT_EQ(c[0].bindings[14].bytes, 2u * 4) << "a ticket for each KV head";

  // With more tokens keys and values lie where they lay, and parts too.
  const written_commands few = step_of(d, 4);
  ASSERT_EQ(names_of(few), (lines{"rope", "kv_write", "attn_tiles", "attn_merge"}));
  EXPECT_EQ(few[1].bindings[5], c[0].bindings[11]) << "keys";
  EXPECT_EQ(few[1].bindings[6], c[0].bindings[12]) << "values";
  EXPECT_EQ(few[1].bindings[1], c[0].bindings[7]) << "slots";
  EXPECT_EQ(few[1].bindings[2], c[0].bindings[2]) << "k before it is turned";
  EXPECT_EQ(few[0].bindings[1], c[0].bindings[1]) << "q before it is turned";
  EXPECT_EQ(few[2].bindings[7], c[0].bindings[13]) << "parts";
  EXPECT_EQ(few[3].bindings[3], c[0].bindings[15]) << "y";
}

TEST(plan_of_attention, of_one_token_with_a_short_context_has_no_parts) {
  described d(like_cuda(), turned_attention({8, 2, 64}), with_context(of(16), 256));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(lines_of(c), (lines{"attn_token 2*1 [128 2 2 4 64]"}));
  EXPECT_EQ(c[0].as<gpu::attn_token_params>().parts, 0u);
}

TEST(plan_of_attention, of_one_token_norms_heads) {
  const turning both{.norm_q = true, .norm_k = true};
  described d(like_cuda(), turned_attention({8, 2, 64}, both), with_context(of(16), 2048));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(lines_of(c), (lines{"attn_token 64*1 [128 2 2 4 64]"}));
  const auto p = c[0].as<gpu::attn_token_params>();
  EXPECT_EQ(p.norms, 1u);
  EXPECT_EQ(p.eps_of_q, 0.5f);
  EXPECT_EQ(p.eps_of_k, 0.25f);
  EXPECT_EQ(d.calls("rms_norm_heads_rope_kv_write_attn_paged.api"), 1u);
  EXPECT_EQ(d.calls("rope_kv_write_attn_paged.api"), 0u);

  const written_commands few = step_of(d, 4);
  ASSERT_EQ(names_of(few),
            (lines{"rms_norm", "rms_norm", "rope", "kv_write", "attn_tiles", "attn_merge"}));
  EXPECT_EQ(few[0].bindings[1], c[0].bindings[1]) << "q before it is normed";
  EXPECT_EQ(few[1].bindings[1], c[0].bindings[2]) << "k before it is normed";
  EXPECT_EQ(few[0].bindings[2], c[0].bindings[9]) << "the norm of q";
  EXPECT_EQ(few[1].bindings[2], c[0].bindings[10]) << "the norm of k";
  EXPECT_EQ(few[0].bindings[2].bytes, 64u * 4);

  const struct {
    turning how;
    const char* off;
    lines expected;
    const char* why;
  } rows[] = {
      {{.norm_q = true}, "", {"rms_norm", "attn_token"}, "keys have no norm"},
      {{.norm_k = true}, "", {"rms_norm", "attn_token"}, "queries have no norm"},
      {both,
       "rms_norm_heads_rope_kv_write_attn_paged.api",
       {"rms_norm", "rms_norm", "attn_token"},
       "without the kernel for all of it"},
      {both, "rope_kv_write_attn_paged.api", {"attn_token"}, "without the one that it is not"},
      {both,
       "rope_kv_write_attn_paged.api,rms_norm_heads_rope_kv_write_attn_paged.api",
       {"rms_norm", "rms_norm", "rope", "kv_write", "attn_tiles"},
       "without either"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    described other(like_cuda(), turned_attention({8, 2, 64}, row.how), with_context(of(16), 256),
                    {{"disable", row.off}});
    EXPECT_EQ(names_of(step_of(other, 1)), row.expected);
  }
}

TEST(plan_of_attention, of_one_token_is_several_commands_where_one_would_be_wrong) {
  const struct {
    heads h;
    turning how;
    const char* off;
    lines expected;
    const char* why;
  } rows[] = {
      {{8, 2, 64}, {}, "rope_kv_write_attn_paged.api", {"rope", "kv_write", "attn_tiles"}, "off"},
      {{8, 2, 64}, {}, "attn_paged_parts.api", {"rope", "kv_write", "attn_tiles"}, "no parts"},
      {{8, 2, 64}, {500, false, false}, "", {"rope", "kv_write", "attn_tiles"}, "other angles"},
      {{8, 2, 64}, {10000, true, false}, "", {"rope", "kv_write", "attn_tiles"}, "q is read"},
      {{8, 2, 64},
       {10000, false, true},
       "",
       {"rope", "kv_write", "attn_tiles", "attn_tiles"},
       "keys are read before"},
      {{24, 1, 64}, {}, "", {"rope", "kv_write", "attn_tiles"}, "two tiles of a KV head"},
      {{16, 1, 64}, {}, "", {"attn_token"}, "one tile of sixteen"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    described d(like_cuda(), turned_attention(row.h, row.how), with_context(of(16), 256),
                {{"disable", row.off}});
    lines names = names_of(step_of(d, 1));
    EXPECT_EQ(names, row.expected);
  }
}

TEST(plan_of_attention, without_tiles_is_a_group_to_a_head) {
  // A thread of 64 keeps two elements of a head of 128. Long contexts change nothing.
  described d(like_vulkan(), attention({8, 2, 128}), with_context(of(16), 2048));
  const written_commands c = step_of(d, 3);
  EXPECT_EQ(lines_of(c), (lines{"kv_write 8*4 [64 2 2]", "attn_paged 8*4 [64 2 2 2]"}));
  EXPECT_EQ(c[1].bindings[7].bytes, 16u * 8 * 128 * 4);
}

// ---- the two-stage head

struct head_shape {
  int64_t k = 256, m = 2048;
  uint32_t format = BITNET_FORMAT_F16;
  bool also_out = false;  // another value is made of the logits' input
};
model head(const head_shape& s) {
  model m;
  const uint32_t x = in(m, s.k), last = inner(m, s.k, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
  m.op(BITNET_OP_GATHER_ROWS, {x}, {last});
  m.logits = inner(m, s.m, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
  m.op(BITNET_OP_LINEAR_DENSE, {last}, {m.logits}, {weight(m, s.format, s.k, s.m)});
  if (!s.also_out) return m;
  const uint32_t more = inner(m, s.m, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
  m.op(BITNET_OP_SIGMOID, {m.logits}, {more});
  out(m, more);
  return m;
}
const lines full_head = {"gather_rows", "linear_dense"};
const lines two_stages = {"gather_rows", "head_state", "head_approximate", "head_count",
                          "head_exact"};

TEST(plan_of_the_head, has_two_stages_for_the_largest) {
  described d(like_cuda(), head({}), of(16));
  // Four teams of 32 lanes to a group, a row each; the step's one row.
  EXPECT_EQ(lines_of(step_of(d, 1)),
            (lines{"gather_rows 2*1 [128]", "linear_dense 512*1 [128 32 1 2]"}));
  const uint64_t before = d.seen().submitted.size();
  const written_commands c = step_of(d, 1, 1, 40);
  ASSERT_EQ(d.seen().submitted.size(), before + 2) << "the copy is made first";
  const written_commands& copy = d.seen().submitted[before];
  EXPECT_EQ(lines_of(copy), lines{"head_copy 512*1 [128 32 0 2]"});
  EXPECT_EQ(lines_of(c), (lines{"gather_rows 2*1 [128]", "head_state 1*1 [128 32]",
                                "head_approximate 16*1 [128 32 1]", "head_count 16*1 [128 32]",
                                "head_exact 16*1 [128 32 0 2]"}));
  for (const written_command& one : c) EXPECT_TRUE(one.after);

  // Codes of 256 bytes and three numbers for each of 2048 rows; both are parts of one buffer.
  const place codes = copy[0].bindings[2], norms = copy[0].bindings[3];
  EXPECT_EQ(codes.bytes, 256u * 2048);
  EXPECT_EQ(norms.bytes, 3u * 4 * 2048);
  EXPECT_EQ(norms.buffer, codes.buffer);
  EXPECT_FALSE(norms.meets(codes));
  EXPECT_EQ(c[2].bindings[1], codes);
  EXPECT_EQ(c[2].bindings[2], norms);
  EXPECT_EQ(copy[0].bindings[1], c[4].bindings[2]) << "the matrix itself";
  // Of eight output rows, the most there are in such steps: two rows of 256 bytes and four words;
  // twice 1024 counts and two more; twice a bound to each of 2048 logits.
  EXPECT_EQ(c[1].bindings[2].bytes, 8u * (2 * 256 + 16));
  EXPECT_EQ(c[1].bindings[3].bytes, 8u * (2 * 1024 + 2) * 4);
  EXPECT_EQ(c[2].bindings[5].bytes, 8u * 2 * 2048 * 4);
  const place state = c[1].bindings[2], counts = c[1].bindings[3], bounds = c[2].bindings[5];
  EXPECT_FALSE(state.meets(counts) || counts.meets(bounds) || state.meets(bounds));
  EXPECT_EQ(c[2].bindings[3], state);
  EXPECT_EQ(c[2].bindings[4], counts);
  EXPECT_EQ(c[3].bindings[1], bounds);
  EXPECT_EQ(c[3].bindings[2], counts);
  EXPECT_EQ(c[4].bindings[3], bounds);
  EXPECT_EQ(c[4].bindings[4], counts);
  EXPECT_EQ(c[4].bindings[1], c[1].bindings[1]) << "the row that comes in";
  const auto exact = c[4].as<gpu::head_exact_params>();
  EXPECT_EQ(exact.rows, gpu::rows_are_outputs);
  EXPECT_EQ(exact.k, 256u);
  EXPECT_EQ(exact.m, 2048u);
  EXPECT_EQ(exact.row_words, 128u) << "two f16 to a word";

  step_of(d, 1, 1, 1);
  EXPECT_EQ(d.seen().submitted.size(), before + 3) << "the copy is made once";
}

TEST(plan_of_the_head, lists_where_there_is_a_port_for_it) {
  model m = head({});
  m.more_ports.push_back({BITNET_PORT_LARGEST, BITNET_NONE});
  described d(like_cuda(), m, of(16)), without(like_cuda(), head({}), of(16));
  const written_commands c = step_of(d, 1, 1, 40), other = step_of(without, 1, 1, 40);
  const place found = c[4].bindings[6], largest = c[4].bindings[7], bounds = c[4].bindings[3];
  EXPECT_EQ(found.bytes, 8u * 2 * 2048 * 4) << "an id and a logit for each of eight rows";
  EXPECT_EQ(found.buffer, bounds.buffer);
  EXPECT_FALSE(found.meets(bounds) || found.meets(c[4].bindings[4]));
  EXPECT_EQ(largest.bytes % sizeof(bitnet_largest), 0u);
  EXPECT_EQ(other[4].bindings[6], other[4].bindings[3]) << "any will do";
  EXPECT_EQ(other[4].bindings[7], other[4].bindings[3]);
}

TEST(plan_of_the_head, takes_rows_together) {
  described d(like_cuda(), head({}), of(16));
  const written_commands c = step_of(d, 8, 3, 1);  // recorded for four rows
  EXPECT_EQ(lines_of(c), (lines{"gather_rows 2*4 [128]", "head_state 1*4 [128 32]",
                                "head_approximate 16*4 [128 32 4]", "head_count 16*4 [128 32]",
                                "head_exact 16*4 [128 32 0 2]"}));
}

TEST(plan_of_the_head, is_full_where_two_stages_are_not_for_it) {
  gpu::facts small = like_cuda();
  // Less than the matrix, and more than its copy.
  small.capabilities.max_binding_bytes = (1 << 20) - 512;
  gpu::facts none = like_cuda();
  none.capabilities.has_top_head = false;
  const struct {
    head_shape shape;
    gpu::facts about;
    uint32_t outputs, top;
    lines expected;
    const char* why;
  } rows[] = {
      {{}, like_cuda(), 1, 0, full_head, "all are wanted"},
      {{}, like_cuda(), 8, 8192, two_stages, "the most there are"},
      {{}, like_cuda(), 1, 8193, full_head, "a logit too many"},
      {{}, like_cuda(), 9, 1, full_head, "a row too many"},
      {{256, 1024}, like_cuda(), 1, 1, two_stages, "the smallest"},
      {{256, 1023}, like_cuda(), 1, 1, full_head, "smaller"},
      {{8192, 1024}, like_cuda(), 1, 1, two_stages, "the widest"},
      {{8224, 1024}, like_cuda(), 1, 1, full_head, "wider"},
      {{256, 2048, BITNET_FORMAT_Q8_0}, like_cuda(), 1, 1, full_head, "as small as its copy"},
      {{256, 2048, BITNET_FORMAT_F32}, like_cuda(), 1, 1, two_stages, "larger"},
      {{}, none, 1, 1, full_head, "the device has no kernels for it"},
      {{}, small, 1, 1, {"gather_rows", "linear_dense", "linear_dense"}, "it is in parts"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    described d(row.about, head(row.shape), of(16));
    EXPECT_EQ(names_of(step_of(d, 16, row.outputs, row.top)), row.expected);
  }
  described read(like_cuda(), head({256, 2048, BITNET_FORMAT_F16, true}), of(16));
  EXPECT_EQ(names_of(step_of(read, 1, 1, 1)), (lines{"gather_rows", "linear_dense", "elementwise"}))
      << "something is made of the logits";
  described asked(like_cuda(), head({}), of(16), {{"head", "full"}});
  EXPECT_EQ(names_of(step_of(asked, 1, 1, 1)), full_head);
  described off(like_cuda(), head({}), of(16), {{"disable", "linear_dense_top.i8+f16.api"}});
  EXPECT_EQ(names_of(step_of(off, 1, 1, 1)), full_head);
}

constexpr uint32_t may_f16 = 1u << BITNET_PRECISION_F16, may_bf16 = 1u << BITNET_PRECISION_BF16;

// Steps whose results may depend on how many rows they have.
runner_options permitting(uint32_t precisions, uint32_t max_tokens = 16) {
  runner_options o = of(max_tokens);
  o.flags = 0;
  o.precisions = precisions;
  return o;
}
const lines rounded_head = {"gather_rows", "round_rows", "linear_dense_rounded"};

TEST(plan_of_rounding, activations_are_rounded_once_for_all_parts_of_a_matrix) {
  described whole(like_cuda(), head({}), permitting(may_f16));
  const written_commands c = step_of(whole, 16, 16);
  EXPECT_EQ(lines_of(c), (lines{"gather_rows 2*16 [128]", "round_rows 1*16 [128 0 0 2]",
                                "linear_dense_rounded 512*4 [128 32 4 2]"}));
  ASSERT_EQ(c.size(), 3u);
  EXPECT_EQ(c[1].bindings[2], c[2].bindings[1]);
  EXPECT_EQ(c[1].bindings[2].bytes, 16 * 4 * gpu::rounded_row_words(256));
  EXPECT_EQ(c[2].as<gpu::linear_dense_rounded_params>().n_rows, 2048u);

  gpu::facts small = like_cuda();
  small.capabilities.max_binding_bytes = (1 << 20) - 512;
  described cut(small, head({}), permitting(may_f16));
  EXPECT_EQ(names_of(step_of(cut, 16, 16)),
            (lines{"gather_rows", "round_rows", "linear_dense_rounded", "linear_dense_rounded"}));
}

TEST(plan_of_rounding, is_for_programs_that_permit_it_and_steps_of_many_rows) {
  gpu::facts none = like_cuda(), only_f16 = like_cuda();
  none.capabilities.precisions = 0;
  only_f16.capabilities.precisions = may_f16;
  const head_shape f16{}, bf16{256, 2048, BITNET_FORMAT_BF16}, q8_0{256, 2048, BITNET_FORMAT_Q8_0};
  const struct {
    head_shape shape;
    gpu::facts about;
    uint32_t precisions, outputs, top;
    lines expected;
    const char* why;
  } rows[] = {
      {f16, like_cuda(), 0, 16, 0, full_head, "nothing is permitted"},
      {f16, like_cuda(), may_bf16, 16, 0, full_head, "something else is"},
      {f16, like_cuda(), may_f16 | may_bf16, 16, 0, rounded_head, "both are"},
      {bf16, like_cuda(), may_f16, 16, 0, full_head, "f16 has no room for bf16"},
      {bf16, like_cuda(), may_bf16, 16, 0, rounded_head, "and bf16 has"},
      {bf16, only_f16, may_bf16, 16, 0, full_head, "the device has no bf16"},
      {f16, none, may_f16, 16, 0, full_head, "the device rounds nothing"},
      {q8_0, like_cuda(), may_f16, 16, 0, full_head, "another format"},
      {f16, like_cuda(), may_f16, 4, 0, full_head, "each weight is read once in any case"},
      {f16, like_cuda(), may_f16, 5, 0, rounded_head, "and here it would be read twice"},
      {f16, like_cuda(), may_f16, 8, 1, two_stages, "the largest are found as ever"},
      {f16, like_cuda(), may_f16, 9, 1, rounded_head, "a row too many for that"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    described d(row.about, head(row.shape), permitting(row.precisions));
    EXPECT_EQ(names_of(step_of(d, 16, row.outputs, row.top)), row.expected);
  }
  runner_options steady = permitting(may_f16);
  steady.flags = BITNET_PROGRAM_DETERMINISTIC;
  described same(like_cuda(), head({}), steady);
  EXPECT_EQ(names_of(step_of(same, 16, 16)), full_head) << "the same bits whatever the batch";
  described off(like_cuda(), head({}), permitting(may_f16),
                {{"disable", "linear_dense_f16.f16.api"}});
  EXPECT_EQ(names_of(step_of(off, 16, 16)), full_head) << "found wrong here";
}

// Steps of more rows than attention cuts the context for, and keys and values of f16.
TEST(plan_of_rounding, of_attention_is_for_prompts) {
  const lines f32_form = {"kv_write", "attn_tiles"}, f16_form = {"kv_write", "attn_rounded"};
  gpu::facts no_widest = like_cuda(), without = like_cuda();
  no_widest.capabilities.rounded_heads = 3;
  without.capabilities.rounded_heads = 0;
  const struct {
    heads h;
    gpu::facts about;
    uint32_t precisions, tokens;
    lines expected;
    const char* why;
  } rows[] = {
      {{8, 2, 64}, like_cuda(), 0, 64, f32_form, "nothing is permitted"},
      {{8, 2, 64}, like_cuda(), may_bf16, 64, f32_form, "something else is"},
      {{8, 2, 64}, like_cuda(), may_f16, 64, f16_form, "it is"},
      {{8, 2, 64}, like_cuda(), may_f16 | may_bf16, 17, f16_form, "both are"},
      {{8, 2, 256}, like_cuda(), may_f16, 64, f16_form, "the widest heads"},
      {{8, 2, 264}, like_cuda(), may_f16, 64, f32_form, "wider ones"},
      {{8, 2, 100}, like_cuda(), may_f16, 64, f32_form, "heads that end within 16 bytes"},
      {{8, 2, 256}, no_widest, may_f16, 64, f32_form, "the device has none for such heads"},
      {{8, 2, 128}, no_widest, may_f16, 64, f16_form, "and for these it has"},
      {{8, 2, 64}, without, may_f16, 64, f32_form, "it has none"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    described d(row.about, attention(row.h), with_context(permitting(row.precisions, 64), 2048));
    EXPECT_EQ(names_of(step_of(d, row.tokens)), row.expected);
    EXPECT_EQ(names_of(step_of(d, 16)), (lines{"kv_write", "attn_tiles", "attn_merge"}));
  }
  described d(like_cuda(), attention({8, 2, 64, 9}), with_context(permitting(may_f16, 64), 64));
  const written_commands c = step_of(d, 64);
  EXPECT_EQ(lines_of(c), (lines{"kv_write 2*64 [128 2 2]", "attn_rounded 2*64 [128 2 2 16 64]"}));
  const auto p = c[1].as<gpu::attn_rounded_params>();
  EXPECT_EQ(p.max_blocks, 1u);
  EXPECT_EQ(p.block_tokens, 64u);
  EXPECT_EQ(p.window, 9u);
  EXPECT_EQ(p.parts, 0u);
  EXPECT_EQ(d.calls("attn_paged_f16.api"), 1u) << "its name says so";
  EXPECT_EQ(d.calls("attn_paged.api"), 0u);
  described off(like_cuda(), attention({8, 2, 64}), with_context(permitting(may_f16, 64), 64),
                {{"disable", "attn_paged_f16.api"}});
  EXPECT_EQ(names_of(step_of(off, 64)), f32_form) << "found wrong here";
  runner_options steady = with_context(permitting(may_f16, 64), 64);
  steady.flags = BITNET_PROGRAM_DETERMINISTIC;
  described same(like_cuda(), attention({8, 2, 64}), steady);
  EXPECT_EQ(names_of(step_of(same, 64)), f32_form) << "the same bits whatever the batch";
  runner_options others = with_context(permitting(may_f16, 64), 64);
  others.dtype_v = BITNET_DTYPE_Q8_0;
  described in_q8(like_cuda(), attention({8, 2, 64}), others);
  EXPECT_EQ(names_of(step_of(in_q8, 64)), f32_form) << "keys and values of another type";
}

// A layer whose rows are tokens, and what it counts as.
TEST(plan_of_rounding, is_counted_under_a_name_that_says_so) {
  for (const uint32_t precisions : {0u, may_f16}) {
    model m = bare();
    const uint32_t y = inner(m, 96);
    m.op(BITNET_OP_LINEAR_DENSE, {in(m, 64)}, {y}, {weight(m, BITNET_FORMAT_F16, 64, 96)});
    out(m, y);
    described d(like_cuda(), m, permitting(precisions, 64));
    step_of(d, 64, 0);
    step_of(d, 1, 0);
    EXPECT_EQ(d.calls("linear_dense_f16.f16.api"), precisions == 0 ? 0u : 2u);
    EXPECT_EQ(d.calls("linear_dense.f16.api"), precisions == 0 ? 2u : 1u);
  }
}

TEST(plan_of_rounding, kernels_are_listed_with_their_precision) {
  gpu::facts about = like_cuda();
  about.capabilities.precisions = may_f16;
  const auto precision_of = [&](const std::string& id) {
    for (const gpu::named_kernel& k : gpu::all_kernels("api", about.capabilities))
      if (k.id == id) return static_cast<int>(k.precision);
    return -1;
  };
  EXPECT_EQ(precision_of("linear_dense_f16.f16.api"), int{BITNET_PRECISION_F16});
  EXPECT_EQ(precision_of("linear_dense.f16.api"), int{BITNET_PRECISION_F32});
  EXPECT_EQ(precision_of("linear_dense_bf16.bf16.api"), -1) << "the device has none";
  EXPECT_EQ(precision_of("attn_paged_f16.api"), int{BITNET_PRECISION_F16});
  EXPECT_EQ(precision_of("attn_paged.api"), int{BITNET_PRECISION_F32});
  about.capabilities.rounded_heads = 0;
  EXPECT_EQ(precision_of("attn_paged_f16.api"), -1);
}

}  // namespace
}  // namespace bitnet::parity
