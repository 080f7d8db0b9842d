// Whatever comes over the edge is checked: graphs, tensors and steps that no core should send.

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "runner.hpp"
#include "targets.hpp"

namespace bitnet::parity {
namespace {

class each_plugin : public testing::TestWithParam<target> {
 protected:
  void SetUp() override {
    tiny_host host(1);
    const plugin p(GetParam().path, host);
    uint32_t n = 0;
    const outcome o =
        attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
    if (o.status == BITNET_UNAVAILABLE) GTEST_SKIP() << o.message;
  }
};

// Builds a changed model; returns what became of it.
outcome build(const bitnet_backend_v0& table, const tiny_model& model,
              const std::function<void(bitnet_graph&, bitnet_program_options&)>& change = {}) {
  bitnet_device* device = nullptr;
  bitnet_weights* weights = nullptr;
  bitnet_program* program = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(table, 0, &device, e); });
  const std::vector<bitnet_tensor_desc> descs = model.descs();
  must([&](bitnet_error* e) {
    return conformance::create_weights(table, device, descs, &weights, e);
  });
  for (uint32_t i = 0; i < descs.size(); ++i) {
    const std::vector<uint8_t>& data = model.tensors[i].data;
    must([&](bitnet_error* e) {
      return table.weight_write(weights, i, 0, data.data(), data.size(), e);
    });
    must([&](bitnet_error* e) { return table.weight_seal(weights, i, e); });
  }
  const std::vector<bitnet_port> ports = model.ports();
  bitnet_graph graph = model.graph(ports);
  bitnet_program_options options{};
  options.struct_size = sizeof options;
  options.max_tokens = options.max_outputs = 4;
  options.max_sequences = 1;
  options.max_blocks = 2;
  options.block_tokens = 4;
  if (change) change(graph, options);
  const bitnet_build_request request = conformance::build_request(graph, {&weights, 1}, options);
  const outcome o =
      attempt([&](bitnet_error* e) { return table.program_build(device, &request, &program, e); });
  if (o.status == BITNET_OK) table.program_destroy(program);
  table.weights_destroy(weights);
  table.device_close(device);
  return o;
}

bitnet_op& find(tiny_model& m, uint32_t id) {
  for (bitnet_op& op : m.ops)
    if (op.op == id) return op;
  throw std::runtime_error("no such op");
}

struct graph_row {
  const char* why;
  void (*spoil)(tiny_model& m);
  bitnet_status status = BITNET_INVALID_ARGUMENT;
};

const graph_row graph_rows[] = {
    {"an input past the values", [](tiny_model& m) { find(m, BITNET_OP_ADD).inputs[0] = 99999; }},
    {"an input that is none",
     [](tiny_model& m) { find(m, BITNET_OP_ADD).inputs[1] = BITNET_NONE; }},
    {"an output past the values", [](tiny_model& m) { find(m, BITNET_OP_ADD).outputs[0] = 99999; }},
    {"an output that is none",
     [](tiny_model& m) { find(m, BITNET_OP_RMS_NORM).outputs[0] = BITNET_NONE; }},
    {"a weight past the weights",
     [](tiny_model& m) { find(m, BITNET_OP_LINEAR_TERNARY).weights[0] = 4000; }},
    {"no weight",
     [](tiny_model& m) { find(m, BITNET_OP_LINEAR_TERNARY).weights[0] = BITNET_NONE; }},
    {"one input too many", [](tiny_model& m) { find(m, BITNET_OP_RMS_NORM).inputs[1] = 0; }},
    {"one output too many", [](tiny_model& m) { find(m, BITNET_OP_RMS_NORM).outputs[1] = 5; }},
    {"one weight too many", [](tiny_model& m) { find(m, BITNET_OP_RMS_NORM).weights[1] = 0; }},
    {"an op that reads what it writes",
     [](tiny_model& m) {
       bitnet_op& op = find(m, BITNET_OP_RELU2);
       op.inputs[0] = op.outputs[0];
     }},
    {"a cycle through a later op",
     [](tiny_model& m) { find(m, BITNET_OP_RELU2).inputs[0] = find(m, BITNET_OP_MUL).outputs[0]; }},
    {"a value written twice",
     [](tiny_model& m) {
       find(m, BITNET_OP_MUL).outputs[0] = find(m, BITNET_OP_RELU2).outputs[0];
     }},
    {"both outputs of one op in one value",
     [](tiny_model& m) {
       bitnet_op& op = find(m, BITNET_OP_ACT_QUANT_I8);
       op.outputs[1] = op.outputs[0];
     }},
    {"an activation of the wrong type",
     [](tiny_model& m) {
       m.values[find(m, BITNET_OP_ACT_QUANT_I8).outputs[0]].dtype = BITNET_DTYPE_F32;
     }},
    {"an unknown element type", [](tiny_model& m) { m.values[0].dtype = 77; }, BITNET_UNSUPPORTED},
    {"a reserved member that is not zero", [](tiny_model& m) { m.values[0].reserved_0 = 1; },
     BITNET_UNSUPPORTED},
    {"an attribute that its op does not have",
     [](tiny_model& m) { find(m, BITNET_OP_ATTN_PAGED).floats[1] = 30; }, BITNET_UNSUPPORTED},
    {"a width of zero", [](tiny_model& m) { m.values[0].dims[1] = 0; }},
    {"a negative width", [](tiny_model& m) { m.values[0].dims[1] = -5; }},
    {"a width that wraps",
     [](tiny_model& m) { m.values[0].dims[1] = std::numeric_limits<int64_t>::max(); }},
    {"an unknown symbolic dimension", [](tiny_model& m) { m.values[0].dims[0] = -3; },
     BITNET_UNSUPPORTED},
    {"a width that its op does not have", [](tiny_model& m) { m.values[0].dims[1] += 1; }},
    {"a fixed number of rows for tokens", [](tiny_model& m) { m.values[0].dims[0] = 7; }},
    {"a ternary weight in a norm",
     [](tiny_model& m) {
       find(m, BITNET_OP_RMS_NORM).weights[0] = find(m, BITNET_OP_LINEAR_TERNARY).weights[0];
     }},
    {"a dense weight in a ternary op",
     [](tiny_model& m) {
       find(m, BITNET_OP_LINEAR_TERNARY).weights[0] = find(m, BITNET_OP_EMBED_GATHER).weights[0];
     }},
    {"heads that do not fill the width",
     [](tiny_model& m) { find(m, BITNET_OP_ROPE).ints[0] = 3; }},
    {"heads that wrap a product",
     [](tiny_model& m) {
       find(m, BITNET_OP_ROPE).ints[0] = find(m, BITNET_OP_ROPE).ints[1] = 1 << 30;
     }},
    {"an odd number of rotated dimensions",
     [](tiny_model& m) { find(m, BITNET_OP_ROPE).ints[2] = 31; }},
    {"more rotated dimensions than a head has",
     [](tiny_model& m) { find(m, BITNET_OP_ROPE).ints[2] = 34; }},
    {"an unknown pairing", [](tiny_model& m) { find(m, BITNET_OP_ROPE).ints[3] = 2; },
     BITNET_UNSUPPORTED},
    {"a rope base of zero", [](tiny_model& m) { find(m, BITNET_OP_ROPE).floats[0] = 0; }},
    {"no KV heads", [](tiny_model& m) { find(m, BITNET_OP_ATTN_PAGED).ints[2] = 0; }},
    {"heads that KV heads do not divide",
     [](tiny_model& m) { find(m, BITNET_OP_ATTN_PAGED).ints[2] = 3; }},
    {"a negative layer", [](tiny_model& m) { find(m, BITNET_OP_KV_WRITE).ints[0] = -1; }},
    {"a layer of millions", [](tiny_model& m) { find(m, BITNET_OP_ATTN_PAGED).ints[0] = 1 << 24; }},
    {"a body past the end", [](tiny_model& m) { find(m, BITNET_OP_LM_HEAD).body_count = 4; }},
    {"an endless body", [](tiny_model& m) { find(m, BITNET_OP_LM_HEAD).body_count = 0xffffffff; }},
    {"an empty body", [](tiny_model& m) { find(m, BITNET_OP_LM_HEAD).body_count = 0; }},
    {"a body that ends after that around it",
     [](tiny_model& m) { find(m, BITNET_OP_QKV_ROPE_KV).body_count = 9; }},
    {"a primitive with a body", [](tiny_model& m) { find(m, BITNET_OP_ADD).body_count = 1; }},
    {"a composite's index past the values",
     [](tiny_model& m) { find(m, BITNET_OP_LM_HEAD).inputs[2] = 5000; }},
    {"an unknown primitive", [](tiny_model& m) { find(m, BITNET_OP_SILU).op = 200; },
     BITNET_UNSUPPORTED},
    {"logits past the values", [](tiny_model& m) { m.logits = 12345; }},
    {"logits that no op writes",
     [](tiny_model& m) {
       m.values.push_back({BITNET_DTYPE_F32, 0, {BITNET_DIM_OUTPUTS, 8}});
       m.logits = static_cast<uint32_t>(m.values.size() - 1);
     }},
    {"logits for every token", [](tiny_model& m) { m.logits = 0; }},
};

TEST_P(each_plugin, hostile_graphs_are_rejected) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  for (const bool composites : {true, false}) {
    for (const graph_row& row : graph_rows) {
      SCOPED_TRACE(row.why);
      tiny_shape shape;
      shape.composites = composites;
      shape.relu2 = row.why != std::string_view("an unknown primitive");  // it looks for SILU
      tiny_model model(shape);
      try {
        row.spoil(model);
      } catch (const std::runtime_error&) {
        continue;  // about composites, and there are none
      }
      const outcome o = build(p.table, model);
      EXPECT_EQ(o.status, row.status) << o.message;
      EXPECT_FALSE(o.message.empty());
    }
  }
}

TEST_P(each_plugin, hostile_counts_are_rejected) {
  using change = void (*)(bitnet_graph&, bitnet_program_options&);
  const struct {
    const char* why;
    change spoil;
  } rows[] = {
      {"no ops", [](bitnet_graph& g, bitnet_program_options&) { g.n_ops = 0; }},
      {"no values", [](bitnet_graph& g, bitnet_program_options&) { g.n_values = 0; }},
      {"billions of ops", [](bitnet_graph& g, bitnet_program_options&) { g.n_ops = 0xffffffff; }},
      {"ops missing", [](bitnet_graph& g, bitnet_program_options&) { g.ops = nullptr; }},
      {"ops shorter than ours", [](bitnet_graph& g, bitnet_program_options&) { g.op_size = 8; }},
      {"a short graph", [](bitnet_graph& g, bitnet_program_options&) { g.struct_size = 16; }},
      {"short options", [](bitnet_graph&, bitnet_program_options& o) { o.struct_size = 4; }},
      {"no tokens", [](bitnet_graph&, bitnet_program_options& o) { o.max_tokens = 0; }},
      {"billions of tokens", [](bitnet_graph&, bitnet_program_options& o) { o.max_tokens = ~0u; }},
      {"no sequences", [](bitnet_graph&, bitnet_program_options& o) { o.max_sequences = 0; }},
      {"billions of positions",
       [](bitnet_graph&, bitnet_program_options& o) { o.max_blocks = o.block_tokens = 1u << 20; }},
      {"blocks of nothing", [](bitnet_graph&, bitnet_program_options& o) { o.block_tokens = 0; }},
  };
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const outcome o = build(p.table, tiny_model({}), row.spoil);
    EXPECT_EQ(o.status, BITNET_INVALID_ARGUMENT) << o.message;
  }
}

TEST_P(each_plugin, a_composite_that_lies_about_its_body_computes_the_body) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  const tiny_model honest({});
  const std::vector<float> expected = runner(p.table, honest).run({{1}, {2}, {3}});
  const struct {
    const char* why;
    void (*spoil)(tiny_model& m);
  } rows[] = {
      {"an unknown op id", [](tiny_model& m) { find(m, BITNET_OP_QKV_ROPE_KV).op = 4242; }},
      {"another composite's id",
       [](tiny_model& m) { find(m, BITNET_OP_FFN_RELU2_GATED).op = BITNET_OP_FFN_SILU_GATED; }},
      {"the wrong result", [](tiny_model& m) { find(m, BITNET_OP_ATTN_OUT).outputs[0] = 0; }},
      {"weights that mean nothing",
       [](tiny_model& m) { find(m, BITNET_OP_LM_HEAD).weights[0] = 1; }},
      {"operands of the sum exchanged",
       [](tiny_model& m) {
         bitnet_op& add = find(m, BITNET_OP_ADD);
         std::swap(add.inputs[0], add.inputs[1]);
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    tiny_model model({});
    row.spoil(model);
    EXPECT_EQ(runner(p.table, model).run({{1}, {2}, {3}}), expected);
  }
}

TEST_P(each_plugin, values_inside_a_composite_can_be_read_from_outside) {
  // x + norm(x) of the first layer's attention norm, read after its composite: a fused kernel must
  // not leave the norm out.
  const auto change = [](tiny_model& m) {
    const uint32_t inner = find(m, BITNET_OP_RMS_NORM).outputs[0];
    find(m, BITNET_OP_ADD).inputs[0] = inner;
  };
  tiny_host host(2);
  const plugin p(GetParam().path, host);
  tiny_shape shape;
  tiny_model fused(shape);
  shape.composites = false;
  tiny_model bodies(shape);
  change(fused);
  change(bodies);
  runner r(p.table, fused);
  EXPECT_EQ(r.run({{1}, {2}, {3}}), runner(p.table, bodies).run({{1}, {2}, {3}}));
  const uint64_t whole = r.calls("attn_out") + r.calls("ffn_relu2_gated");
  EXPECT_EQ(whole, r.calls("lm_head") == 0 ? 0u : 4u);
  EXPECT_EQ(r.calls("qkv_rope_kv"), r.calls("lm_head")) << "one of two layers runs as its body";
}

TEST_P(each_plugin, bad_steps_are_rejected_and_good_ones_follow) {
  const struct {
    const char* why;
    void (*spoil)(runner& r, bitnet_step& s);
  } rows[] = {
      {"a negative token", [](runner& r, bitnet_step&) { r.tokens[1] = -1; }},
      {"a token past the vocabulary", [](runner& r, bitnet_step&) { r.tokens[1] = 50; }},
      {"a negative position", [](runner& r, bitnet_step&) { r.positions[0] = -1; }},
      {"a position past the context", [](runner& r, bitnet_step&) { r.positions[2] = 32; }},
      {"the last position there is", [](runner& r, bitnet_step&) { r.positions[2] = INT32_MAX; }},
      {"a negative sequence", [](runner& r, bitnet_step&) { r.sequences[0] = -1; }},
      {"a sequence past the step's", [](runner& r, bitnet_step&) { r.sequences[0] = 3; }},
      {"a negative slot", [](runner& r, bitnet_step&) { r.slots[0] = -4; }},
      {"a slot past the pool", [](runner& r, bitnet_step&) { r.slots[0] = 30 * 4; }},
      {"one slot for two tokens", [](runner& r, bitnet_step&) { r.slots[0] = r.slots[2]; }},
      {"a negative block", [](runner& r, bitnet_step&) { r.block_tables[0] = -1; }},
      {"a block past the pool", [](runner& r, bitnet_step&) { r.block_tables[0] = 30; }},
      {"a block past the pool in the window",
       [](runner& r, bitnet_step& s) {
         s.window = 1;
         r.block_tables[0] = 30;
       }},
      {"a negative block among the kept",
       [](runner& r, bitnet_step& s) {
         r.positions[1] = 12;  // sees position 0 and its own, in block 3
         s.window = 1;
         s.window_keep = 1;
         r.block_tables[0] = -1;
       }},
      {"a window whose end wraps",
       [](runner& r, bitnet_step& s) {
         s.window = s.window_keep = ~0u;
         r.block_tables[0] = -1;
       }},
      {"a negative output row", [](runner& r, bitnet_step&) { r.output_rows[1] = -1; }},
      {"an output row past the tokens", [](runner& r, bitnet_step&) { r.output_rows[1] = 3; }},
      {"no tokens", [](runner&, bitnet_step& s) { s.n_tokens = 0; }},
      {"more tokens than planned", [](runner&, bitnet_step& s) { s.n_tokens = 17; }},
      {"more sequences than planned", [](runner&, bitnet_step& s) { s.n_sequences = 4; }},
      {"no sequences", [](runner&, bitnet_step& s) { s.n_sequences = 0; }},
      {"more outputs than planned", [](runner&, bitnet_step& s) { s.n_outputs = 17; }},
      {"no binding", [](runner&, bitnet_step& s) { s.binding = nullptr; }},
      {"a signal of the past", [](runner&, bitnet_step& s) { s.signal_value = 0; }},
      {"a short step", [](runner&, bitnet_step& s) { s.struct_size = 16; }},
  };
  tiny_host host(2);
  const plugin p(GetParam().path, host);
  const tiny_model model({});
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    runner r(p.table, model);
    bitnet_step step = r.prepare({{1}, {2}, {3}});
    const int32_t block = r.block_tables[0];
    row.spoil(r, step);
    const outcome o = r.submit(step);
    EXPECT_EQ(o.status, BITNET_INVALID_ARGUMENT) << o.message;
    r.block_tables[0] = block;
    EXPECT_EQ(r.submit(r.prepare({{1}, {2}, {3}})).status, BITNET_OK);
  }
}

bitnet_tensor_desc tensor(uint32_t format, uint32_t rank, int64_t k, int64_t m, uint64_t bytes,
                          uint64_t group, uint64_t n_scales) {
  static const float scales[4] = {1, 1, 1, 1};
  bitnet_tensor_desc d{};
  d.struct_size = sizeof d;
  d.format = format;
  d.rank = rank;
  d.ne[0] = k;
  d.ne[1] = m;
  d.ne[2] = d.ne[3] = 1;
  d.data_bytes = bytes;
  d.scale_group = group;
  d.n_scales = n_scales;
  d.scales = scales;
  return d;
}

constexpr int64_t huge = std::numeric_limits<int64_t>::max();
const struct {
  const char* why;
  bitnet_tensor_desc desc;
  bitnet_status status;
} tensors[] = {
    {"a good one", tensor(BITNET_FORMAT_TERNARY2, 2, 128, 2, 64, 0, 1), BITNET_OK},
    {"a padded row", tensor(BITNET_FORMAT_TERNARY2, 2, 100, 2, 64, 0, 1), BITNET_OK},
    {"an unknown format", tensor(99, 2, 128, 2, 64, 0, 0), BITNET_UNSUPPORTED},
    {"no format", tensor(0, 2, 128, 2, 64, 0, 0), BITNET_UNSUPPORTED},
    {"rank 3", tensor(BITNET_FORMAT_F32, 3, 4, 4, 64, 0, 0), BITNET_UNSUPPORTED},
    {"rank 0", tensor(BITNET_FORMAT_F32, 0, 4, 1, 16, 0, 0), BITNET_INVALID_ARGUMENT},
    {"a vector with rows", tensor(BITNET_FORMAT_F32, 1, 4, 4, 64, 0, 0), BITNET_INVALID_ARGUMENT},
    {"no columns", tensor(BITNET_FORMAT_F32, 2, 0, 4, 0, 0, 0), BITNET_INVALID_ARGUMENT},
    {"negative columns", tensor(BITNET_FORMAT_F32, 2, -4, 4, 64, 0, 0), BITNET_INVALID_ARGUMENT},
    {"a product that wraps", tensor(BITNET_FORMAT_F32, 2, huge, huge, 4, 0, 0),
     BITNET_INVALID_ARGUMENT},
    {"a product that wraps to nothing",
     tensor(BITNET_FORMAT_F32, 2, int64_t{1} << 31, int64_t{1} << 31, 0, 0, 0),
     BITNET_INVALID_ARGUMENT},
    {"a part of a block", tensor(BITNET_FORMAT_Q8_0, 2, 33, 1, 34, 0, 0), BITNET_INVALID_ARGUMENT},
    {"too few bytes", tensor(BITNET_FORMAT_F32, 2, 4, 4, 63, 0, 0), BITNET_INVALID_ARGUMENT},
    {"too many bytes", tensor(BITNET_FORMAT_F32, 2, 4, 4, 65, 0, 0), BITNET_INVALID_ARGUMENT},
    {"no scale", tensor(BITNET_FORMAT_TERNARY2, 2, 128, 2, 64, 0, 0), BITNET_INVALID_ARGUMENT},
    {"too many scales", tensor(BITNET_FORMAT_TERNARY2, 2, 128, 2, 64, 0, 4),
     BITNET_INVALID_ARGUMENT},
    {"too few scales", tensor(BITNET_FORMAT_TERNARY2, 2, 128, 2, 64, 64, 3),
     BITNET_INVALID_ARGUMENT},
    {"groups across rows", tensor(BITNET_FORMAT_TERNARY2, 2, 128, 2, 64, 256, 1),
     BITNET_INVALID_ARGUMENT},
    {"sums that would not fit", tensor(BITNET_FORMAT_TERNARY2, 2, 1 << 23, 1, 1 << 21, 0, 1),
     BITNET_UNSUPPORTED},
};

TEST_P(each_plugin, hostile_tensors_are_rejected) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
  for (const auto& row : tensors) {
    SCOPED_TRACE(row.why);
    bitnet_weight_plan plan{};
    plan.struct_size = sizeof plan;
    bitnet_weights* weights = nullptr;
    EXPECT_EQ(attempt([&](bitnet_error* e) {
                return p.table.weight_plan(device, &row.desc, &plan, e);
              }).status,
              row.status);
    EXPECT_EQ(attempt([&](bitnet_error* e) {
                return conformance::create_weights(p.table, device, {&row.desc, 1}, &weights, e);
              }).status,
              row.status);
    if (weights) p.table.weights_destroy(weights);
  }
  p.table.device_close(device);
}

TEST_P(each_plugin, weights_keep_to_their_order) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  const tiny_model model({});
  bitnet_device* device = nullptr;
  bitnet_weights* w = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
  const std::vector<bitnet_tensor_desc> descs = model.descs();
  must([&](bitnet_error* e) { return conformance::create_weights(p.table, device, descs, &w, e); });
  const std::vector<uint8_t>& data = model.tensors[0].data;
  const auto write = [&](uint32_t index, uint64_t offset, uint64_t bytes) {
    return attempt([&](bitnet_error* e) {
             return p.table.weight_write(w, index, offset, data.data(), bytes, e);
           })
        .status;
  };
  const auto seal = [&](uint32_t index) {
    return attempt([&](bitnet_error* e) { return p.table.weight_seal(w, index, e); }).status;
  };
  const uint64_t size = data.size();
  EXPECT_EQ(write(0, 8, 8), BITNET_INVALID_ARGUMENT) << "a gap at the start";
  EXPECT_EQ(write(0, 0, size + 1), BITNET_INVALID_ARGUMENT) << "more than there is";
  EXPECT_EQ(write(0, 0, 16), BITNET_OK);
  EXPECT_EQ(write(0, 0, 16), BITNET_INVALID_ARGUMENT) << "the same again";
  EXPECT_EQ(write(0, 16, ~uint64_t{0} - 8), BITNET_INVALID_ARGUMENT) << "an end that wraps";
  EXPECT_EQ(seal(0), BITNET_INVALID_ARGUMENT) << "bytes are missing";
  EXPECT_EQ(attempt([&](bitnet_error* e) {
              return p.table.weight_alias(w, 0, data.data(), size, e);
            }).status,
            BITNET_INVALID_ARGUMENT)
      << "streamed already";
  EXPECT_EQ(write(0, 16, size - 16), BITNET_OK);
  EXPECT_EQ(seal(0), BITNET_OK);
  EXPECT_EQ(seal(0), BITNET_INVALID_ARGUMENT) << "twice";
  EXPECT_EQ(seal(9999), BITNET_INVALID_ARGUMENT) << "no such tensor";
  EXPECT_EQ(write(9999, 0, 1), BITNET_INVALID_ARGUMENT) << "no such tensor";

  bitnet_program* program = nullptr;
  const std::vector<bitnet_port> ports = model.ports();
  const bitnet_graph graph = model.graph(ports);
  const bitnet_program_options options = conformance::least_options();
  const bitnet_build_request request = conformance::build_request(graph, {&w, 1}, options);
  EXPECT_EQ(attempt([&](bitnet_error* e) {
              return p.table.program_build(device, &request, &program, e);
            }).status,
            BITNET_INVALID_ARGUMENT)
      << "unsealed weights";
  p.table.weights_destroy(w);
  p.table.device_close(device);
}

// Keys of f16 and values of f32: three blocks of two tokens in one layer.
constexpr bitnet_kv_config good_pool{
    sizeof(bitnet_kv_config), BITNET_DTYPE_F16, BITNET_DTYPE_F32, 1, 1, 4, 4, 2, 3, 0, 0, 0};

TEST_P(each_plugin, hostile_pools_are_rejected) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
  const struct {
    const char* why;
    void (*spoil)(bitnet_kv_config& c);
    bitnet_status status;
  } rows[] = {
      {"elements of bytes", [](bitnet_kv_config& c) { c.dtype_k = BITNET_DTYPE_I8; },
       BITNET_UNSUPPORTED},
      {"a type past every mask", [](bitnet_kv_config& c) { c.dtype_v = 32 + BITNET_DTYPE_F16; },
       BITNET_UNSUPPORTED},
      {"no type", [](bitnet_kv_config& c) { c.dtype_k = 0; }, BITNET_UNSUPPORTED},
      {"int8 blocks longer than a head", [](bitnet_kv_config& c) { c.dtype_k = BITNET_DTYPE_Q8_0; },
       BITNET_UNSUPPORTED},
      {"int8 heads of 100",
       [](bitnet_kv_config& c) {
         c.dtype_v = BITNET_DTYPE_Q8_0, c.head_dim_k = c.head_dim_v = 100;
       },
       BITNET_UNSUPPORTED},
      {"heads of 80 in blocks of 4 bits",
       [](bitnet_kv_config& c) { c.dtype_v = BITNET_DTYPE_Q4_0, c.head_dim_k = c.head_dim_v = 80; },
       BITNET_UNSUPPORTED},
      {"int8 heads of nothing",
       [](bitnet_kv_config& c) { c.dtype_v = BITNET_DTYPE_Q8_0, c.head_dim_k = c.head_dim_v = 0; },
       BITNET_INVALID_ARGUMENT},
      {"int8 blocks whose product wraps",
       [](bitnet_kv_config& c) {
         c.dtype_k = c.dtype_v = BITNET_DTYPE_Q8_0;
         c.n_layers = c.n_kv_heads = c.n_blocks = ~0u;
         c.head_dim_k = c.head_dim_v = ~31u;
       },
       BITNET_INVALID_ARGUMENT},
      {"keys that are not as wide as values", [](bitnet_kv_config& c) { c.head_dim_v = 8; },
       BITNET_UNSUPPORTED},
      {"no layers", [](bitnet_kv_config& c) { c.n_layers = 0; }, BITNET_INVALID_ARGUMENT},
      {"no blocks", [](bitnet_kv_config& c) { c.n_blocks = 0; }, BITNET_INVALID_ARGUMENT},
      {"states of nothing", [](bitnet_kv_config& c) { c.n_states = 1; }, BITNET_INVALID_ARGUMENT},
      {"states whose product wraps",
       [](bitnet_kv_config& c) { c.n_states = c.state_elements = ~0u; }, BITNET_INVALID_ARGUMENT},
      {"a product that wraps",
       [](bitnet_kv_config& c) {
         c.n_layers = c.n_kv_heads = c.head_dim_k = c.head_dim_v = c.n_blocks = ~0u;
       },
       BITNET_INVALID_ARGUMENT},
      {"slots past 31 bits", [](bitnet_kv_config& c) { c.n_blocks = 1u << 30, c.block_tokens = 4; },
       BITNET_INVALID_ARGUMENT},
      {"a short struct", [](bitnet_kv_config& c) { c.struct_size = 8; }, BITNET_INVALID_ARGUMENT},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    bitnet_kv_config config = good_pool;
    row.spoil(config);
    bitnet_kv_pool* pool = nullptr;
    EXPECT_EQ(attempt([&](bitnet_error* e) {
                return p.table.kv_pool_create(device, &config, &pool, e);
              }).status,
              row.status);
  }
  p.table.device_close(device);
}

TEST_P(each_plugin, hostile_blocks_are_rejected) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
  bitnet_kv_pool* pool = nullptr;
  must([&](bitnet_error* e) { return p.table.kv_pool_create(device, &good_pool, &pool, e); });
  const uint64_t bytes = 2 * 4 * (2 + 4);
  std::vector<uint8_t> block(bytes + 1, 7);
  bitnet_queue* queue = nullptr;
  must([&](bitnet_error* e) { return conformance::create_queue(p.table, device, &queue, e); });
  uint64_t signal = 0;
  const auto exported = [&](uint32_t index, uint64_t n) {
    ++signal;
    const bitnet_status s =
        attempt([&](bitnet_error* e) {
          return p.table.kv_export(queue, pool, &index, 1, block.data(), n, signal, e);
        }).status;
    if (s != BITNET_OK) return s;
    return attempt([&](bitnet_error* e) { return p.table.queue_wait(queue, signal, ~0u, e); })
        .status;
  };
  EXPECT_EQ(exported(3, bytes), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(exported(0, bytes - 1), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(exported(0, bytes + 1), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(exported(2, bytes), BITNET_OK);
  EXPECT_EQ(block[bytes], 7);
  const uint32_t from[] = {0, 1}, to[] = {1, 3};
  EXPECT_EQ(attempt([&](bitnet_error* e) {
              return p.table.kv_copy(queue, pool, from, to, 2, signal + 1, e);
            }).status,
            BITNET_INVALID_ARGUMENT);
  p.table.queue_destroy(queue);
  p.table.kv_pool_destroy(pool);
  p.table.device_close(device);
}

TEST_P(each_plugin, waiting_for_what_never_comes_ends) {
  tiny_host host(1);
  const plugin p(GetParam().path, host);
  const tiny_model model({});
  runner r(p.table, model);
  EXPECT_EQ(
      attempt([&](bitnet_error* e) { return p.table.queue_wait(r.queue, 5, 1000, e); }).status,
      BITNET_TIMEOUT);
}

INSTANTIATE_TEST_SUITE_P(backends, each_plugin, testing::ValuesIn(all_plugins()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace bitnet::parity
