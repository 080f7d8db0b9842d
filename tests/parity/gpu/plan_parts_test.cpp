// What plugins/gpu-common has a device run where a matrix is more than a kernel sees at once, and
// which neighbours one kernel computes. Expectations as in plan_test.cpp.

#include <gtest/gtest.h>

#include <numeric>

#include "planned.hpp"

namespace bitnet::parity {
namespace {

// ---- matrices in parts

gpu::facts narrow(uint64_t binding, uint64_t allocation) {
  gpu::facts f = like_vulkan();
  f.capabilities.max_binding_bytes = binding;
  f.capabilities.max_allocation_bytes = allocation;
  return f;
}

// A product of rows of k, and the format of its matrix.
model product(uint32_t format, int64_t k, int64_t m) {
  model made = bare();
  const uint32_t x = in(made, k), y = inner(made, m);
  if (format == BITNET_FORMAT_TERNARY2) {
    const uint32_t q = inner(made, k, BITNET_DTYPE_I8), s = inner(made, 1);
    made.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
    made.op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {weight(made, format, k, m)});
  } else {
    made.op(BITNET_OP_LINEAR_DENSE, {x}, {y}, {weight(made, format, k, m)});
  }
  out(made, y);
  return made;
}

// The parts of a matrix have so many rows, cover it in order and lie apart from each other.
template <class Params>
void check_parts(const written_commands& c, uint64_t matrix, const std::vector<uint32_t>& expected,
                 uint64_t row_bytes, const notes& seen) {
  ASSERT_EQ(c.size(), expected.size());
  uint32_t first = 0;
  for (uint64_t i = 0; i < c.size(); ++i) {
    SCOPED_TRACE(i);
    const auto p = c[i].as<Params>();
    EXPECT_EQ(p.first_row, first);
    EXPECT_EQ(p.n_rows, expected[i]);
    const place& here = c[i].bindings[matrix];
    EXPECT_EQ(here.bytes, expected[i] * row_bytes);
    EXPECT_LE(here.offset + here.bytes, seen.sizes[here.buffer]);
    for (uint64_t b = 0; b < c[i].bindings.size(); ++b) {
      if (b == matrix) continue;
      EXPECT_EQ(c[i].bindings[b], c[0].bindings[b]) << "binding " << b;
    }
    for (uint64_t j = 0; j < i; ++j) EXPECT_FALSE(here.meets(c[j].bindings[matrix]));
    first += expected[i];
  }
}

TEST(plan_of_matrices, dense_ones_are_cut_between_rows) {
  // Rows of 64 f32 are 256 bytes, so that 64 KiB are 256 of them; two teams to a group of 64.
  described d(narrow(65536, 1 << 20), product(BITNET_FORMAT_F32, 64, 1000), of(16));
  const written_commands c = step_of(d, 16);
  ASSERT_EQ(lines_of(c),
            (lines{"linear_dense 128*4 [64 32 4 1]", "linear_dense 128*4 [64 32 4 1]",
                   "linear_dense 128*4 [64 32 4 1]", "linear_dense 116*4 [64 32 4 1]"}));
  check_parts<gpu::linear_dense_params>(c, 2, {256, 256, 256, 232}, 256, d.seen());
  const auto p = c[3].as<gpu::linear_dense_params>();
  EXPECT_EQ(p.k, 64u);
  EXPECT_EQ(p.m, 1000u);
  EXPECT_EQ(p.row_words, 64u);
}

TEST(plan_of_matrices, rows_that_do_not_fill_a_part_are_not_cut) {
  // 72 f32 are 288 bytes: 227 of them are 65376, and 228 are more than 65536.
  described d(narrow(65536, 1 << 20), product(BITNET_FORMAT_F32, 72, 500), of(1));
  check_parts<gpu::linear_dense_params>(step_of(d, 1), 2, {227, 227, 46}, 288, d.seen());
}

TEST(plan_of_matrices, one_that_just_fits_is_whole) {
  const struct {
    int64_t m;
    std::vector<uint32_t> parts;
  } rows[] = {{256, {256}}, {257, {256, 1}}};
  for (const auto& row : rows) {
    described d(narrow(65536, 1 << 20), product(BITNET_FORMAT_F32, 64, row.m), of(1));
    check_parts<gpu::linear_dense_params>(step_of(d, 1), 2, row.parts, 256, d.seen());
  }
}

TEST(plan_of_matrices, ternary_ones_are_cut_alike) {
  // 256 elements are two blocks of 32 bytes, so that 64 KiB are 1024 rows. A group has two teams,
  // and a thread takes four rows: eight to a group.
  described d(narrow(65536, 1 << 20), product(BITNET_FORMAT_TERNARY2, 256, 3000), of(4));
  written_commands c = step_of(d, 4);
  ASSERT_EQ(lines_of(c),
            (lines{"act_quant 1*4 [64]", "linear_ternary 128*1 [64 32 4 4]",
                   "linear_ternary 128*1 [64 32 4 4]", "linear_ternary 119*1 [64 32 4 4]"}));
  c.erase(c.begin());
  check_parts<gpu::linear_ternary_params>(c, 3, {1024, 1024, 952}, 64, d.seen());
  c = step_of(d, 1);
  EXPECT_EQ(lines_of(c),
            (lines{"bit_linear 128*1 [64 32 0 4 64]", "bit_linear 128*1 [64 32 0 4 64]",
                   "bit_linear 119*1 [64 32 0 4 64]"}));
  check_parts<gpu::bit_linear_params>(c, 3, {1024, 1024, 952}, 64, d.seen());
}

TEST(plan_of_matrices, parts_lie_in_as_many_buffers_as_a_device_needs) {
  // Four parts of 64 KiB, and allocations of two at most.
  described d(narrow(65536, 131072), product(BITNET_FORMAT_F32, 64, 1024), of(1));
  const written_commands c = step_of(d, 1);
  check_parts<gpu::linear_dense_params>(c, 2, {256, 256, 256, 256}, 256, d.seen());
  std::map<uint64_t, int> parts;
  for (const written_command& one : c) ++parts[one.bindings[2].buffer];
  EXPECT_EQ(parts.size(), 2u);
  for (const auto& [buffer, n] : parts) EXPECT_EQ(n, 2);
}

TEST(plan_of_matrices, parts_are_no_larger_than_an_allocation) {
  // A kernel would see 512 rows, but an allocation has room for 256. One that is not a multiple of
  // the alignment has room for one row less.
  const struct {
    uint64_t allocation;
    std::vector<uint32_t> parts;
  } rows[] = {{65536, {256, 256, 256, 232}}, {65535, {255, 255, 255, 235}}};
  for (const auto& row : rows) {
    described d(narrow(131072, row.allocation), product(BITNET_FORMAT_F32, 64, 1000), of(1));
    check_parts<gpu::linear_dense_params>(step_of(d, 1), 2, row.parts, 256, d.seen());
  }
}

TEST(plan_of_matrices, embeddings_are_cut_too) {
  model m = bare();
  const uint32_t y = inner(m, 64);
  m.op(BITNET_OP_EMBED_GATHER, {}, {y}, {weight(m, BITNET_FORMAT_F32, 64, 600)});
  out(m, y);
  described d(narrow(65536, 1 << 20), m, of(4));
  const written_commands c = step_of(d, 3);
  ASSERT_EQ(lines_of(c), (lines{"embed_gather 1*4 [64 1]", "embed_gather 1*4 [64 1]",
                                "embed_gather 1*4 [64 1]"}));
  check_parts<gpu::embed_gather_params>(c, 2, {256, 256, 88}, 256, d.seen());
}

// ---- neighbours

// What the widths of these are.
constexpr int64_t width = 256;

struct block {
  model m = bare();

  uint32_t norm(uint32_t x, int64_t k = width) {
    const uint32_t y = inner(m, k);
    m.op(BITNET_OP_RMS_NORM, {x}, {y}, {weight(m, BITNET_FORMAT_F32, k, 1)}).floats[0] = 0.5f;
    return y;
  }
  std::pair<uint32_t, uint32_t> quant(uint32_t x, int64_t k = width) {
    const uint32_t q = inner(m, k, BITNET_DTYPE_I8), s = inner(m, 1);
    m.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
    return {q, s};
  }
  // With a factor to each 32 elements.
  std::pair<uint32_t, uint32_t> quant_groups(uint32_t x, int64_t k = width) {
    const uint32_t q = inner(m, k, BITNET_DTYPE_I8), d = inner(m, k / 32);
    m.op(BITNET_OP_ACT_QUANT_I8_GROUPED, {x}, {q, d}).ints[0] = 32;
    return {q, d};
  }
  uint32_t grouped(std::pair<uint32_t, uint32_t> x, int64_t rows = width, int64_t k = width) {
    const uint32_t y = inner(m, rows);
    m.op(BITNET_OP_LINEAR_TERNARY_GROUPED, {x.first, x.second}, {y},
         {weight(m, BITNET_FORMAT_TERNARY2, k, rows)});
    return y;
  }
  uint32_t ternary(std::pair<uint32_t, uint32_t> x, int64_t rows = width, uint64_t group = 0,
                   int64_t k = width) {
    const uint32_t y = inner(m, rows);
    m.op(BITNET_OP_LINEAR_TERNARY, {x.first, x.second}, {y},
         {weight(m, BITNET_FORMAT_TERNARY2, k, rows, group)});
    return y;
  }
  uint32_t op(uint32_t id, const model::indices& inputs, int64_t k = width) {
    const uint32_t y = inner(m, k);
    m.op(id, inputs, {y});
    return y;
  }
};

lines run(const block& b, const gpu::facts& about, uint32_t n_tokens,
          const plugin::settings& user = {}) {
  described d(about, b.m, of(16), user);
  return names_of(step_of(d, n_tokens));
}

TEST(plan_of_neighbours, two_products_of_one_norm) {
  block b;
  const uint32_t x = in(b.m, width);
  const auto q = b.quant(b.norm(x));
  out(b.m, b.ternary(q));
  out(b.m, b.ternary(q, 512));
  described d(like_cuda(), b.m, of(16));
  // A group has four teams and a thread four rows: 16. 256 elements are 64 words of codes.
  const written_commands one = step_of(d, 1);
  EXPECT_EQ(lines_of(one),
            (lines{"bit_linear 16*1 [128 32 1 4 64]", "bit_linear 32*1 [128 32 1 4 64]"}));
  EXPECT_FALSE(one[1].after) << "neither waits for the other";
  EXPECT_EQ(one[0].bindings[2], one[1].bindings[2]) << "the norm";
  EXPECT_EQ(one[0].as<gpu::bit_linear_params>().eps, 0.5f);
  EXPECT_EQ(one[0].as<gpu::bit_linear_params>().add, 0u);

  const written_commands more = step_of(d, 2);  // recorded for four
  EXPECT_EQ(lines_of(more), (lines{"norm_quant 1*4 [128]", "linear_ternary 16*1 [128 32 4 4]",
                                   "linear_ternary 32*1 [128 32 4 4]"}));
  EXPECT_TRUE(more[1].after);
  EXPECT_FALSE(more[2].after) << "neither waits for the other";
  EXPECT_EQ(more[0].as<gpu::norm_quant_params>().eps, 0.5f);
  EXPECT_EQ(more[1].bindings[1], more[0].bindings[3]) << "codes";
  EXPECT_EQ(more[2].bindings[2], more[0].bindings[4]) << "factors";
}

TEST(plan_of_neighbours, a_residual_is_added_by_the_product) {
  for (const bool first : {true, false}) {
    block b;
    const uint32_t x = in(b.m, width), other = in(b.m, width);
    const uint32_t product = b.ternary(b.quant(x));
    out(b.m, first ? b.op(BITNET_OP_ADD, {product, other}) : b.op(BITNET_OP_ADD, {other, product}));
    described d(like_cuda(), b.m, of(16));
    written_commands c = step_of(d, 1);
    ASSERT_EQ(lines_of(c), lines{"bit_linear 16*1 [128 32 0 4 64]"});
    EXPECT_EQ(c[0].as<gpu::bit_linear_params>().add, 1u);
    const place added = c[0].bindings[5];
    EXPECT_EQ(added.buffer, c[0].bindings[1].buffer + 1) << "the second that comes in";
    c = step_of(d, 4);
    ASSERT_EQ(names_of(c), (lines{"act_quant", "linear_ternary"}));
    EXPECT_EQ(c[1].as<gpu::linear_ternary_params>().add, 1u);
    EXPECT_EQ(c[1].bindings[5], added);
  }
}

TEST(plan_of_neighbours, of_two_products_of_a_sum_one_stays) {
  block b;
  const uint32_t x = in(b.m, width);
  const auto q = b.quant(x);
  const uint32_t one = b.ternary(q), two = b.ternary(q);
  out(b.m, b.op(BITNET_OP_ADD, {one, two}));
  described d(like_cuda(), b.m, of(16));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(names_of(c), (lines{"bit_linear", "bit_linear"}));
  EXPECT_EQ(c[0].as<gpu::bit_linear_params>().add, 0u);
  EXPECT_EQ(c[1].as<gpu::bit_linear_params>().add, 1u);
  EXPECT_EQ(c[1].bindings[5], c[0].bindings[6]);
  EXPECT_TRUE(c[1].after);
}

// Gate and up of a feed-forward block, and what follows.
block feed_forward(uint32_t activation, bool norm, bool gate_first = true) {
  block b;
  const uint32_t gate = in(b.m, width), up = in(b.m, width);
  const uint32_t a = b.op(activation, {gate});
  const uint32_t both = gate_first ? b.op(BITNET_OP_MUL, {a, up}) : b.op(BITNET_OP_MUL, {up, a});
  out(b.m, b.ternary(b.quant(norm ? b.norm(both) : both)));
  return b;
}

TEST(plan_of_neighbours, gates_are_quantised_as_they_are_made) {
  for (const uint32_t activation : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
    for (const bool norm : {true, false})
      for (const bool gate_first : {true, false}) {
        const block b = feed_forward(activation, norm, gate_first);
        described d(like_cuda(), b.m, of(16));
        for (const uint32_t n : {1u, 4u}) {  // products do not quantise what took so much to make
          const written_commands c = step_of(d, n);
          ASSERT_EQ(names_of(c), (lines{"glu_quant", "linear_ternary"}));
          EXPECT_EQ(c[0].spec.constants[1], activation);
          EXPECT_EQ(c[0].spec.constants[2], norm ? 1u : 0u);
          EXPECT_EQ(c[0].groups_x, 1u);
          EXPECT_EQ(c[0].groups_y, n);
          EXPECT_EQ(c[0].as<gpu::glu_quant_params>().eps, norm ? 0.5f : 0.0f);
          EXPECT_EQ(c[0].bindings[1].buffer + 1, c[0].bindings[2].buffer) << "gate, then up";
          EXPECT_EQ(c[1].bindings[1], c[0].bindings[5]);
          EXPECT_EQ(c[1].bindings[2], c[0].bindings[6]);
        }
      }
}

TEST(plan_of_neighbours, groups_are_quantised_as_they_are_normed) {
  block b;
  const auto q = b.quant_groups(b.norm(in(b.m, width)));
  out(b.m, b.grouped(q));
  out(b.m, b.grouped(q, 512));
  described d(like_cuda(), b.m, of(16));
  for (const uint32_t n : {1u, 4u}) {  // products do not quantise groups by themselves
    const written_commands c = step_of(d, n);
    ASSERT_EQ(names_of(c), (lines{"norm_quant_groups", "linear_ternary", "linear_ternary"}));
    EXPECT_EQ(c[0].groups_x, 1u);
    EXPECT_EQ(c[0].groups_y, n);
    const auto p = c[0].as<gpu::norm_quant_groups_params>();
    EXPECT_EQ(p.k, 256u);
    EXPECT_EQ(p.eps, 0.5f);
    EXPECT_EQ(p.group, 32u);
    EXPECT_EQ(c[1].bindings[1], c[0].bindings[3]) << "codes";
    EXPECT_EQ(c[2].bindings[2], c[0].bindings[4]) << "factors";
    EXPECT_FALSE(c[2].after) << "neither product waits for the other";
  }
  EXPECT_EQ(d.calls("rms_norm_act_quant_i8_grouped.api"), 2u);
  EXPECT_EQ(d.calls("rms_norm.api"), 0u);

  const lines apart = {"rms_norm", "act_quant_groups", "linear_ternary", "linear_ternary"};
  EXPECT_EQ(run(b, like_cuda(), 1, {{"disable", "rms_norm_act_quant_i8_grouped.api"}}), apart);
  EXPECT_EQ(run(b, like_vulkan(), 1), apart) << "the device has no kernel for both";

  block read;
  const uint32_t normed = read.norm(in(read.m, width));
  out(read.m, read.grouped(read.quant_groups(normed)));
  out(read.m, normed);
  EXPECT_EQ(run(read, like_cuda(), 1), (lines{"rms_norm", "act_quant_groups", "linear_ternary"}));
}

TEST(plan_of_neighbours, gates_are_quantised_in_groups_as_they_are_made) {
  for (const uint32_t activation : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
    for (const bool gate_first : {true, false}) {
      block b;
      const uint32_t gate = in(b.m, 384), up = in(b.m, 384), a = b.op(activation, {gate}, 384);
      const uint32_t both =
          gate_first ? b.op(BITNET_OP_MUL, {a, up}, 384) : b.op(BITNET_OP_MUL, {up, a}, 384);
      out(b.m, b.grouped(b.quant_groups(both, 384), width, 384));
      described d(like_cuda(), b.m, of(16));
      for (const uint32_t n : {1u, 4u}) {
        const written_commands c = step_of(d, n);
        ASSERT_EQ(names_of(c), (lines{"glu_quant_groups", "linear_ternary"}));
        EXPECT_EQ(c[0].spec.constants[1], activation);
        EXPECT_EQ(c[0].groups_x, 1u) << "a thread to each of 96 words";
        EXPECT_EQ(c[0].groups_y, n);
        const auto p = c[0].as<gpu::glu_quant_groups_params>();
        EXPECT_EQ(p.k, 384u);
        EXPECT_EQ(p.group, 32u);
        EXPECT_EQ(c[0].bindings[1].buffer + 1, c[0].bindings[2].buffer) << "gate, then up";
        EXPECT_EQ(c[1].bindings[1], c[0].bindings[3]) << "codes";
        EXPECT_EQ(c[1].bindings[2], c[0].bindings[4]) << "factors";
      }
      const lines apart = {"elementwise", "elementwise", "act_quant_groups", "linear_ternary"};
      EXPECT_EQ(run(b, like_vulkan(), 1), apart) << "the device has no kernel for all of it";
      EXPECT_EQ(run(b, like_cuda(), 1,
                    {{"disable",
                      "relu2_mul_act_quant_i8_grouped.api,silu_mul_act_quant_i8_grouped.api,"
                      "gelu_mul_act_quant_i8_grouped.api"}}),
                apart);
    }
  block b;  // a norm between: no kernel does all of that
  const uint32_t a = b.op(BITNET_OP_SILU, {in(b.m, width)});
  out(b.m, b.grouped(b.quant_groups(b.norm(b.op(BITNET_OP_MUL, {a, in(b.m, width)})))));
  EXPECT_EQ(run(b, like_cuda(), 1),
            (lines{"elementwise", "elementwise", "norm_quant_groups", "linear_ternary"}));
}

TEST(plan_of_neighbours, keys_are_turned_as_they_are_written) {
  for (const int32_t way : {BITNET_ROPE_INTERLEAVED, BITNET_ROPE_NEOX}) {
    model m = bare();
    m.kv_heads = 2;
    m.head_dim = 64;
    const uint32_t k = in(m, 128), v = in(m, 128), turned = inner(m, 128);
    bitnet_op& rope = m.op(BITNET_OP_ROPE, {k}, {turned});
    rope.ints[0] = 2;
    rope.ints[1] = 64;
    rope.ints[2] = 48;  // of 64: 24 pairs
    rope.ints[3] = way;
    rope.floats[0] = 10000;
    rope.floats[1] = 1;
    m.op(BITNET_OP_KV_WRITE, {turned, v}, {});
    described d(like_cuda(), m, of(16));
    const written_commands c = step_of(d, 1);
    ASSERT_EQ(lines_of(c), lines{"kv_write 2*1 [128 2 2 1]"});
    const auto p = c[0].as<gpu::kv_write_params>();
    EXPECT_EQ(p.pairs, 24u);
    EXPECT_EQ(p.neox, way == BITNET_ROPE_NEOX ? 1u : 0u);
    EXPECT_EQ(p.n_kv_heads, 2u);
    EXPECT_EQ(p.head_dim, 64u);
    EXPECT_EQ(c[0].bindings[2].buffer + 1, c[0].bindings[3].buffer) << "keys as they come in";
    EXPECT_EQ(c[0].bindings[4].bytes, 24u * 2 * 4) << "a cosine and a sine to each pair";
    EXPECT_EQ(step_of(d, 2)[0].bindings[4].bytes, 4u * 24 * 2 * 4) << "recorded for up to 4 tokens";

    m.more_ports.push_back({BITNET_PORT_VALUE_OUT, turned});
    described both(like_cuda(), m, of(16));
    EXPECT_EQ(names_of(step_of(both, 1)), (lines{"rope", "kv_write"})) << "others want turned keys";
  }
}

TEST(plan_of_neighbours, what_others_read_stays) {
  const lines apart = {"rms_norm", "bit_linear"};
  {
    block b;  // a port
    const uint32_t n = b.norm(in(b.m, width));
    out(b.m, b.ternary(b.quant(n)));
    out(b.m, n);
    EXPECT_EQ(run(b, like_cuda(), 1), apart);
    EXPECT_EQ(run(b, like_cuda(), 4), (lines{"rms_norm", "act_quant", "linear_ternary"}));
  }
  {
    block b;  // another op
    const uint32_t n = b.norm(in(b.m, width));
    out(b.m, b.ternary(b.quant(n)));
    out(b.m, b.op(BITNET_OP_SIGMOID, {n}));
    EXPECT_EQ(run(b, like_cuda(), 1), (lines{"rms_norm", "bit_linear", "elementwise"}));
  }
  {
    block b;  // a product twice
    const uint32_t p = b.ternary(b.quant(in(b.m, width)));
    out(b.m, b.op(BITNET_OP_ADD, {p, in(b.m, width)}));
    out(b.m, p);
    EXPECT_EQ(run(b, like_cuda(), 1), (lines{"bit_linear", "elementwise"}));
  }
  {
    block b;  // codes, beside the product
    const auto q = b.quant(in(b.m, width));
    out(b.m, b.ternary(q));
    out(b.m, q.second);
    EXPECT_EQ(run(b, like_cuda(), 1), (lines{"act_quant", "linear_ternary"}));
  }
  {
    block b = feed_forward(BITNET_OP_SILU, true);  // what was multiplied
    for (const bitnet_op& op : b.m.ops)
      if (op.op == BITNET_OP_MUL) out(b.m, op.outputs[0]);
    EXPECT_EQ(run(b, like_cuda(), 4),
              (lines{"elementwise", "elementwise", "norm_quant", "linear_ternary"}));
  }
}

TEST(plan_of_neighbours, memory_that_is_used_again_is_waited_for) {
  block b;
  for (int i = 0; i < 2; ++i)
    out(b.m, b.op(BITNET_OP_RELU2, {b.op(BITNET_OP_SIGMOID, {in(b.m, width)})}));
  described d(like_cuda(), b.m, of(16));
  const written_commands c = step_of(d, 1);
  ASSERT_EQ(names_of(c), lines(4, "elementwise"));
  EXPECT_EQ(c[2].bindings[3], c[1].bindings[1]) << "what the second read, the third writes";
  EXPECT_TRUE(c[2].after);
}

TEST(plan_of_neighbours, kernels_that_are_disabled_are_not_used) {
  block b;
  const uint32_t x = in(b.m, width);
  out(b.m, b.op(BITNET_OP_ADD, {b.ternary(b.quant(b.norm(x))), x}));
  const struct {
    const char* ids;
    lines one, more;
  } rows[] = {
      {"", {"bit_linear"}, {"norm_quant", "linear_ternary"}},
      {"rms_norm_bit_linear.ternary2.api",
       {"norm_quant", "linear_ternary"},
       {"norm_quant", "linear_ternary"}},
      {"rms_norm_bit_linear_add.ternary2.api",
       {"norm_quant", "linear_ternary"},
       {"norm_quant", "linear_ternary"}},
      {"rms_norm_act_quant_i8.api",
       {"rms_norm", "bit_linear"},
       {"rms_norm", "act_quant", "linear_ternary"}},
      {"linear_ternary_add.ternary2.api",
       {"bit_linear", "elementwise"},
       {"norm_quant", "linear_ternary", "elementwise"}},
      {"rms_norm_act_quant_i8.api,bit_linear.ternary2.api",
       {"rms_norm", "act_quant", "linear_ternary"},
       {"rms_norm", "act_quant", "linear_ternary"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.ids);
    EXPECT_EQ(run(b, like_cuda(), 1, {{"disable", row.ids}}), row.one);
    EXPECT_EQ(run(b, like_cuda(), 4, {{"disable", row.ids}}), row.more);
  }
  const block gate = feed_forward(BITNET_OP_SILU, true);
  EXPECT_EQ(run(gate, like_cuda(), 4, {{"disable", "silu_mul_rms_norm_act_quant_i8.api"}}),
            (lines{"elementwise", "elementwise", "norm_quant", "linear_ternary"}));
}

TEST(plan_of_neighbours, groups_quantise_for_themselves_where_it_pays) {
  const struct {
    int64_t k, m;
    uint64_t scale_group;
    uint32_t shared, most_repeated;
    bool repeated;
    const char* why;
  } rows[] = {
      // 1024 rows by 8 to a group of 64 are 128 groups, of 256 elements each.
      {256, 1024, 0, 32768, 128 * 256, true, "as many elements as pay"},
      {256, 1024, 0, 32768, 128 * 256 - 1, false, "one more than pay"},
      {256, 1025, 0, 32768, 128 * 256, false, "a row more, of one group more"},
      // A thread of 64 has 64 elements at most.
      {4096, 8, 0, 32768, 0, true, "as many as a thread takes"},
      {4224, 8, 0, 32768, 0, false, "more than a thread takes"},
      // 64 words of codes, a factor, and four words for each of 64 threads: 321 words.
      {256, 8, 0, 1284, 0, true, "memory for it"},
      {256, 8, 0, 1283, 0, false, "a byte too few"},
      {256, 8, 64, 32768, 0, false, "scales of groups"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    block b;
    out(b.m, b.ternary(b.quant(in(b.m, row.k), row.k), row.m, row.scale_group, row.k));
    gpu::facts about = like_vulkan();
    about.capabilities.shared_memory_bytes = row.shared;
    about.quirks.max_repeated = row.most_repeated;
    EXPECT_EQ(run(b, about, 1),
              row.repeated ? lines{"bit_linear"} : (lines{"act_quant", "linear_ternary"}));
    EXPECT_EQ(run(b, about, 4), (lines{"act_quant", "linear_ternary"}));
  }
}

}  // namespace
}  // namespace bitnet::parity
