// The op list of the demo model: well formed, complete, and with bodies that match the contract;
// and what a small Gemma has beside it.
#include "engine/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "../../scratch_folder.hpp"
#include "../model/small_hybrid.hpp"
#include "../model/small_model.hpp"

namespace bitnet::engine {
namespace {

using compute::graph;
using model::ending;

std::filesystem::path demo_model() {
  const char* source = std::getenv("BITNET_SOURCE_DIR");
  if (source == nullptr) return {};
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source) / "models"))
    if (entry.path().extension() == ".gguf") return entry.path();
  return {};
}

struct arity {
  uint32_t inputs, weights, outputs;
};

std::map<uint32_t, arity> arities() {
  return {
#define BITNET_ROW(name, id, inputs, weights, outputs, ints, floats) \
  {id, {inputs, weights, outputs}},
      BITNET_OP_LIST(BITNET_ROW)
#undef BITNET_ROW
  };
}

uint32_t used(const uint32_t (&indices)[4]) {
  uint32_t n = 0;
  while (n < 4 && indices[n] != BITNET_NONE) ++n;
  for (uint32_t i = n; i < 4; ++i) EXPECT_EQ(indices[i], BITNET_NONE) << "a hole in the indices";
  return n;
}

class graph_of_demo : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = demo_model();
    if (file.empty()) GTEST_SKIP() << "no demo model in models/";
    auto loaded = model::model::load(file, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    model_.emplace(std::move(*loaded));
    graph_ = graph_of(*model_, model_->shape().n_context);
  }
  std::optional<model::model> model_;
  graph graph_;
};

TEST_F(graph_of_demo, every_op_has_what_its_row_says) {
  const auto table = arities();
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const bitnet_op& o = graph_.ops[i];
    const auto row = table.find(o.op);
    ASSERT_NE(row, table.end()) << "op " << o.op;
    const std::string who = std::to_string(i) + " " + compute::op_name(o.op);
    EXPECT_EQ(used(o.inputs), row->second.inputs) << who;
    EXPECT_EQ(used(o.weights) + (o.op == BITNET_OP_ROPE && o.weights[0] == BITNET_NONE ? 1 : 0),
              row->second.weights)
        << who;
    EXPECT_EQ(used(o.outputs), row->second.outputs) << who;
    EXPECT_LE(i + o.body_count, graph_.ops.size() - 1) << who;
    EXPECT_EQ(o.body_count != 0, o.op >= BITNET_OP_FIRST_COMPOSITE) << who;
  }
}

TEST_F(graph_of_demo, bodies_alone_compute_every_value_once_before_it_is_read) {
  std::set<uint32_t> written;
  for (const bitnet_op& o : graph_.ops) {
    if (o.op >= BITNET_OP_FIRST_COMPOSITE) continue;
    for (const uint32_t v : o.inputs)
      if (v != BITNET_NONE) {
        ASSERT_TRUE(written.count(v)) << compute::op_name(o.op) << " reads value " << v;
      }
    for (const uint32_t v : o.outputs)
      if (v != BITNET_NONE) {
        EXPECT_TRUE(written.insert(v).second) << "value " << v << " twice";
      }
  }
  EXPECT_EQ(written.size(), graph_.values.size()) << "a value that no op writes";
  EXPECT_TRUE(written.count(graph_.logits()));
}

TEST_F(graph_of_demo, composites_take_and_give_what_their_bodies_do) {
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const bitnet_op& o = graph_.ops[i];
    if (o.body_count == 0) continue;
    std::set<uint32_t> inside;
    std::set<uint32_t> free;
    for (std::size_t j = i + 1; j <= i + o.body_count; ++j) {
      for (const uint32_t v : graph_.ops[j].inputs)
        if (v != BITNET_NONE && inside.count(v) == 0) free.insert(v);
      for (const uint32_t v : graph_.ops[j].outputs)
        if (v != BITNET_NONE) inside.insert(v);
    }
    std::set<uint32_t> inputs;
    for (const uint32_t v : o.inputs)
      if (v != BITNET_NONE) inputs.insert(v);
    EXPECT_EQ(inputs, free) << compute::op_name(o.op);
    for (const uint32_t v : o.outputs)
      if (v != BITNET_NONE) {
        EXPECT_TRUE(inside.count(v)) << compute::op_name(o.op);
      }
  }
}

TEST_F(graph_of_demo, has_one_of_each_composite_per_layer) {
  std::map<uint32_t, uint32_t> count;
  for (const bitnet_op& o : graph_.ops) ++count[o.op];
  const uint32_t layers = model_->shape().n_layers;
  EXPECT_EQ(count[BITNET_OP_QKV_ROPE_KV], layers);
  EXPECT_EQ(count[BITNET_OP_ATTN_OUT], layers);
  EXPECT_EQ(count[BITNET_OP_FFN_RELU2_GATED], layers);
  EXPECT_EQ(count[BITNET_OP_LM_HEAD], 1U);
  EXPECT_EQ(count[BITNET_OP_LINEAR_TERNARY], 7 * layers);
  EXPECT_EQ(count[BITNET_OP_ACT_QUANT_I8], 4 * layers)
      << "q, k, v share one quantisation, gate and up another";
  EXPECT_EQ(count[BITNET_OP_RMS_NORM], 4 * layers + 1) << "two norms and two sub-norms a layer";
}

TEST_F(graph_of_demo, may_end_in_what_is_behind_the_last_norm) {
  const graph hidden = graph_of(*model_, model_->shape().n_context, ending::hidden);
  EXPECT_EQ(hidden.logits(), BITNET_NONE);
  const auto port =
      std::ranges::find(hidden.ports, uint32_t{BITNET_PORT_VALUE_OUT}, &bitnet_port::role);
  ASSERT_NE(port, hidden.ports.end());
  const bitnet_op& last = hidden.ops.back();
  EXPECT_EQ(last.op, BITNET_OP_RMS_NORM);
  EXPECT_EQ(last.weights[0], model_->output_norm());
  EXPECT_EQ(last.outputs[0], port->value);
  EXPECT_EQ(hidden.values[port->value].dims[0], BITNET_DIM_OUTPUTS);
  EXPECT_EQ(hidden.values[port->value].dims[1], int64_t{model_->shape().n_embedding});
  for (std::size_t i = 0; i + 2 < hidden.ops.size(); ++i)
    EXPECT_EQ(hidden.ops[i].op, graph_.ops[i].op) << "up to there it is the same";
}

TEST(graph_of_an_embedder, norms_and_quantises_for_each_matrix_by_itself) {
  const test::scratch_folder scratch;
  for (const char* arch : {"qwen3", "gemma3"}) {
    SCOPED_TRACE(arch);
    const auto file =
        scratch.write("embedder.gguf", tests::as_text(tests::small_embedder(arch).build()));
    auto loaded = model::model::load(file, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    std::map<uint32_t, std::vector<bitnet_op>> of;
    for (const bitnet_op& o : graph_of(*loaded, 64).ops) of[o.op].push_back(o);
    ASSERT_EQ(of[BITNET_OP_LINEAR_TERNARY].size(), std::size_t{7} * tests::n_layers);
    ASSERT_EQ(of[BITNET_OP_ACT_QUANT_I8].size(), std::size_t{7} * tests::n_layers);
    std::map<uint32_t, uint32_t> factors;  // of the norm that makes a value
    for (const bitnet_op& o : of[BITNET_OP_RMS_NORM]) factors[o.outputs[0]] = o.weights[0];
    for (std::size_t i = 0; i < of[BITNET_OP_LINEAR_TERNARY].size(); ++i) {
      const bitnet_op& linear = of[BITNET_OP_LINEAR_TERNARY][i];
      const bitnet_op& quantised = of[BITNET_OP_ACT_QUANT_I8][i];
      EXPECT_EQ(linear.inputs[0], quantised.outputs[0]);
      EXPECT_EQ(factors[quantised.inputs[0]], loaded->weights()[linear.weights[0]].input_norm);
    }
    for (const uint32_t id : {BITNET_OP_QKV_ROPE_KV, BITNET_OP_ATTN_OUT, BITNET_OP_FFN_SILU_GATED})
      EXPECT_TRUE(of[id].empty()) << compute::op_name(id) << " has no such norms";
  }
}

TEST(graph_of_minicpm, scales_what_is_added_and_what_the_head_reads) {
  const tests::bytes content = tests::small_model("minicpm").build();
  const test::scratch_folder scratch;
  const auto file = scratch.write("minicpm.gguf",
                                  {reinterpret_cast<const char*>(content.data()), content.size()});
  const auto loaded = model::model::load(file, {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const graph all = graph_of(*loaded, 64);
  std::map<uint32_t, std::vector<bitnet_op>> of;
  for (const bitnet_op& o : all.ops) of[o.op].push_back(o);
  const auto& scales = of[BITNET_OP_SCALE];
  ASSERT_EQ(scales.size(), 2U + 2 * tests::n_layers);
  EXPECT_EQ(scales.front().inputs[0], of[BITNET_OP_EMBED_GATHER][0].outputs[0]);
  EXPECT_EQ(scales.back().inputs[0], of[BITNET_OP_RMS_NORM].back().outputs[0]);
  EXPECT_EQ(scales.back().outputs[0], of[BITNET_OP_LINEAR_DENSE].back().inputs[0]);
  for (std::size_t i = 0; i < of[BITNET_OP_ADD].size(); ++i)
    EXPECT_EQ(of[BITNET_OP_ADD][i].inputs[1], scales[i + 1].outputs[0]);
  EXPECT_EQ(of[BITNET_OP_QKV_ROPE_KV].size(), std::size_t{tests::n_layers});
  for (const uint32_t id : {BITNET_OP_ATTN_OUT, BITNET_OP_FFN_SILU_GATED, BITNET_OP_LM_HEAD})
    EXPECT_TRUE(of[id].empty()) << compute::op_name(id) << " has no scale";
}

class graph_of_gemma : public testing::Test {
 protected:
  void SetUp() override {
    tests::gguf_builder b = tests::small_model("gemma3", "llama", 7);
    b.u32("gemma3.attention.sliding_window", 5).f32("gemma3.rope.freq_base", 1e6F);
    b.text("gemma3.rope.scaling.type", "linear").f32("gemma3.rope.scaling.factor", 8);
    const tests::bytes content = b.build();
    const test::scratch_folder scratch;
    const auto file = scratch.write(
        "gemma.gguf", {reinterpret_cast<const char*>(content.data()), content.size()});
    auto loaded = model::model::load(file, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    graph_ = graph_of(*loaded, 64);
    for (const bitnet_op& o : graph_.ops) of_[o.op].push_back(o);
  }
  graph graph_;
  std::map<uint32_t, std::vector<bitnet_op>> of_;  // by id, in order
};

TEST_F(graph_of_gemma, scales_looked_up_embeddings_only) {
  ASSERT_EQ(of_[BITNET_OP_SCALE].size(), 1U);
  const bitnet_op& scale = of_[BITNET_OP_SCALE][0];
  EXPECT_EQ(scale.inputs[0], of_[BITNET_OP_EMBED_GATHER][0].outputs[0]);
  EXPECT_EQ(scale.floats[0], std::sqrt(static_cast<float>(tests::n_embd)));
  ASSERT_EQ(of_[BITNET_OP_LINEAR_DENSE].size(), 1U) << "the tied head";
  const uint32_t read = of_[BITNET_OP_LINEAR_DENSE][0].inputs[0];
  EXPECT_EQ(of_[BITNET_OP_RMS_NORM].back().outputs[0], read);
  EXPECT_EQ(of_[BITNET_OP_LINEAR_DENSE][0].outputs[0], graph_.logits());
}

TEST_F(graph_of_gemma, has_windows_and_a_rotation_of_their_own_in_all_but_each_sixth_layer) {
  ASSERT_EQ(of_[BITNET_OP_ATTN_PAGED].size(), 7U);
  for (uint32_t layer = 0; layer < 7; ++layer) {
    SCOPED_TRACE(layer);
    const bool all = layer == 5;
    EXPECT_EQ(of_[BITNET_OP_ATTN_PAGED][layer].ints[4], all ? 0 : 5);
    EXPECT_EQ(of_[BITNET_OP_ATTN_PAGED][layer].floats[0], 0.125F);
    for (const uint32_t which : {2 * layer, 2 * layer + 1}) {  // q and k
      EXPECT_EQ(of_[BITNET_OP_ROPE][which].floats[0], all ? 1e6F : 1e4F);
      EXPECT_EQ(of_[BITNET_OP_ROPE][which].floats[1], all ? 0.125F : 1.0F);
    }
  }
}

TEST_F(graph_of_gemma, norms_what_is_added_and_gates_by_gelu) {
  EXPECT_EQ(of_[BITNET_OP_GELU].size(), 7U);
  EXPECT_TRUE(of_[BITNET_OP_SILU].empty() && of_[BITNET_OP_RELU2].empty());
  EXPECT_EQ(of_[BITNET_OP_RMS_NORM].size(), 7U * 4 + 1);
  EXPECT_EQ(of_[BITNET_OP_RMS_NORM_HEADS].size(), 7U * 2);
  std::set<uint32_t> normed;
  for (const bitnet_op& o : of_[BITNET_OP_RMS_NORM]) normed.insert(o.outputs[0]);
  ASSERT_EQ(of_[BITNET_OP_ADD].size(), 7U * 2);
  for (const bitnet_op& o : of_[BITNET_OP_ADD]) EXPECT_EQ(normed.count(o.inputs[1]), 1U);
}

TEST_F(graph_of_gemma, has_no_composite_that_would_mean_something_else) {
  EXPECT_EQ(of_[BITNET_OP_QKV_ROPE_KV].size(), 7U);
  EXPECT_EQ(of_[BITNET_OP_LM_HEAD].size(), 1U);
  for (const uint32_t id :
       {BITNET_OP_ATTN_OUT, BITNET_OP_FFN_SILU_GATED, BITNET_OP_FFN_RELU2_GATED})
    EXPECT_TRUE(of_[id].empty()) << compute::op_name(id);
}

class graph_of_hybrid : public testing::Test {
 protected:
  void SetUp() override {
    const test::scratch_folder scratch;
    const auto file =
        scratch.write("hybrid.gguf", tests::as_text(tests::small_hybrid("gpt2", 1).build()));
    auto loaded = model::model::load(file, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    shape_ = loaded->shape();
    graph_ = graph_of(*loaded, 64);
    for (const bitnet_op& o : graph_.ops) of_[o.op].push_back(o);
  }
  model::hyperparameters shape_;
  graph graph_;
  std::map<uint32_t, std::vector<bitnet_op>> of_;  // by id, in order
};

TEST_F(graph_of_hybrid, counts_layers_with_keys_and_parts_of_states_by_themselves) {
  ASSERT_EQ(of_[BITNET_OP_ATTN_PAGED].size(), 2U);
  ASSERT_EQ(of_[BITNET_OP_DELTA_RULE].size(), 2U);
  const uint64_t layer = shape_.recurrence.elements(), rows = shape_.recurrence.rows_elements();
  for (int32_t n = 0; n < 2; ++n) {
    const auto at = static_cast<std::size_t>(n);
    EXPECT_EQ(of_[BITNET_OP_ATTN_PAGED][at].ints[0], n);
    EXPECT_EQ(of_[BITNET_OP_KV_WRITE][at].ints[0], n);
    EXPECT_EQ(of_[BITNET_OP_SHORT_CONV][at].ints[0], static_cast<int32_t>(at * layer));
    EXPECT_EQ(of_[BITNET_OP_DELTA_RULE][at].ints[0], static_cast<int32_t>(at * layer + rows));
  }
  EXPECT_EQ(2 * layer, shape_.state_elements());
  const auto has = [&](uint32_t role) {
    return std::ranges::count(graph_.ports, role, &bitnet_port::role);
  };
  EXPECT_EQ(has(BITNET_PORT_STATES), 1);
  EXPECT_EQ(has(BITNET_PORT_SLOTS), 1);
}

TEST_F(graph_of_hybrid, gates_what_attention_gives_and_turns_a_part_of_each_head) {
  ASSERT_EQ(of_[BITNET_OP_SIGMOID].size(), 2U);
  ASSERT_EQ(of_[BITNET_OP_COLUMNS].size(), 4U);
  const auto& parts = of_[BITNET_OP_COLUMNS];
  EXPECT_EQ(parts[0].inputs[0], parts[1].inputs[0]);
  EXPECT_EQ(parts[0].ints[1], 32) << "the gate stands behind its head";
  EXPECT_EQ(parts[1].ints[1], 0);
  EXPECT_EQ(of_[BITNET_OP_SIGMOID][0].inputs[0], parts[0].outputs[0]);
  EXPECT_EQ(of_[BITNET_OP_RMS_NORM_HEADS][1].inputs[0], parts[1].outputs[0]);
  for (const bitnet_op& o : of_[BITNET_OP_ROPE]) EXPECT_EQ(o.ints[2], 8);
  // Composites would leave the gates out.
  EXPECT_TRUE(of_[BITNET_OP_QKV_ROPE_KV].empty() && of_[BITNET_OP_ATTN_OUT].empty());
}

TEST(names, of_ops_are_those_of_the_list) {
  EXPECT_EQ(compute::op_name(BITNET_OP_LINEAR_TERNARY), "linear_ternary");
  EXPECT_EQ(compute::op_name(BITNET_OP_FFN_RELU2_GATED), "ffn_relu2_gated");
  EXPECT_EQ(compute::op_name(9999), "op 9999");
}

}  // namespace
}  // namespace bitnet::engine
