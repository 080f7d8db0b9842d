// The op list of the demo model: well formed, complete, and with bodies that match the contract.
#include "program/graph.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace bitnet::program {
namespace {

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
    graph_ = describe(*model_, model_->shape().n_context);
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
  EXPECT_EQ(written.size(), graph_.values.size()) << "a value that nobody writes";
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

TEST(names, of_ops_are_those_of_the_list) {
  EXPECT_EQ(compute::op_name(BITNET_OP_LINEAR_TERNARY), "linear_ternary");
  EXPECT_EQ(compute::op_name(BITNET_OP_FFN_RELU2_GATED), "ffn_relu2_gated");
  EXPECT_EQ(compute::op_name(9999), "op 9999");
}

}  // namespace
}  // namespace bitnet::program
