// The first op that differs between two engines: one of them compiles a list in which the test has
// changed one op, or is a plugin whose attention is wrong.

#include "shadow/finding_op.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/graph/graph.hpp"
#include "engines.hpp"
#include "patched_slot.hpp"

namespace bitnet::shadow {
namespace {

using test::fail_with;
using test::ids;
using test::need;
using test::patched;
using found_op = std::optional<op_difference>;
using change = std::function<void(bitnet_op&)>;

bool is_same(const bitnet_op& a, const bitnet_op& b) {
  return a.op == b.op && std::ranges::equal(a.outputs, b.outputs) &&
         std::ranges::equal(a.inputs, b.inputs);
}

// Compiles lists in which an op is changed, wherever that op is in them.
class changed_list {
 public:
  changed_list(const plugin::backend& of, bitnet_op op, change to)
      : op_(op),
        to_(std::move(to)),
        builds_(of, [this](auto... given) { return build(given...); }) {}
  uint32_t built = 0;
  bool gives_int8 = true;  // as values that go out; else a list that has such is rejected
  uint32_t from = 0;       // lists before this one are compiled as they are

 private:
  bitnet_status build(bitnet_device* device, const bitnet_build_request* request,
                      bitnet_program** out, bitnet_error* err) {
    const bitnet_graph& g = *request->graph;
    for (uint32_t i = 0; i < g.n_ports; ++i)
      if (const uint32_t v = g.ports[i].value;
          !gives_int8 && v != BITNET_NONE && g.values[v].dtype == BITNET_DTYPE_I8)
        return fail_with(err, BITNET_UNSUPPORTED, "no int8 goes out");
    std::vector<bitnet_op> ops(g.ops, g.ops + g.n_ops);
    for (bitnet_op& o : ops)
      if (built >= from && is_same(o, op_)) to_(o);
    ++built;
    bitnet_graph other = g;
    other.ops = ops.data();
    bitnet_build_request changed = *request;
    changed.graph = &other;
    return builds_.sound(device, &changed, out, err);
  }
  const bitnet_op op_;
  const change to_;
  patched<&bitnet_backend_v0::program_build> builds_;
};

class finding_op : public test::engines {
 protected:
  void SetUp() override {
    engines::SetUp();
    other_ = copy_of(BITNET_OTHER_PLUGIN, "cpu");
    wrong_ = copy_of(BITNET_WRONG_PLUGIN, "cpu");
  }
  std::shared_ptr<engine::engine> made_on(const select::choice& device) {
    engine::placement where;
    where.parts.push_back(need(engine::part::open(device, *model_)));
    return on(std::move(where));
  }
  // Two engines of the plain backend, of which the tests change the second.
  void open_plain() {
    live_ = made_on(other_);
    shadow_ = made_on(wrong_table());
  }
  // Another copy of the plain backend, with a table of its own.
  const select::choice& wrong_table() {
    if (!second_) second_ = copy_of(BITNET_OTHER_PLUGIN, "cpu");
    return *second_;
  }
  [[nodiscard]] compute::graph list() const {
    return live_->main().graph(256, model::ending::logits);
  }
  found_op find(std::size_t n_tokens, double tolerance = 0) {
    return need(first_op_that_differs(live_, shadow_, many(n_tokens), tolerance));
  }
  [[nodiscard]] std::size_t place_of(uint32_t op, std::size_t nth) const {
    const compute::graph g = list();
    for (std::size_t i = 0; i < g.ops.size(); ++i)
      if (g.ops[i].op == op && nth-- == 0) return i;
    throw std::runtime_error("there is no such op");
  }
  // Tokens in two blocks, where the model has room for them.
  [[nodiscard]] std::size_t most() const { return std::min(70U, model_->shape().n_context); }
  // An op that computes something else on what it gets; nothing if there is no way to have one.
  [[nodiscard]] change other_than(const bitnet_op& o) const;

  select::choice other_, wrong_;
  std::optional<select::choice> second_;
  std::shared_ptr<engine::engine> live_, shadow_;
};

change finding_op::other_than(const bitnet_op& o) const {
  switch (o.op) {
    case BITNET_OP_RMS_NORM:
    case BITNET_OP_RMS_NORM_HEADS:
      return [](bitnet_op& x) { x.floats[0] += 1; };
    case BITNET_OP_ROPE:
    case BITNET_OP_ATTN_PAGED:
    case BITNET_OP_SCALE:
    case BITNET_OP_DELTA_RULE:
      return [](bitnet_op& x) { x.floats[0] *= 3; };
    case BITNET_OP_ADD:
    case BITNET_OP_MUL:
      return [](bitnet_op& x) { x.inputs[1] = x.inputs[0]; };
    case BITNET_OP_RELU2:
    case BITNET_OP_GELU:
    case BITNET_OP_SIGMOID:
      return [](bitnet_op& x) { x.op = BITNET_OP_SILU; };
    case BITNET_OP_SILU:
      return [](bitnet_op& x) { x.op = BITNET_OP_RELU2; };
    case BITNET_OP_KV_WRITE:
    case BITNET_OP_DELTA_GATES:
      return [](bitnet_op& x) { std::swap(x.inputs[0], x.inputs[1]); };
    default:
      return {};
  }
}

TEST_F(finding_op, equal_engines_have_none) {
  each_model([&] {
    open_plain();
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, most()}) EXPECT_FALSE(find(n)) << n;
  });
}

// One runs composites by kernels of its own, the other one their bodies.
TEST_F(finding_op, fused_ops_and_their_bodies_have_none) {
  each_model([&] {
    live_ = made_on(cpu_);
    shadow_ = made_on(other_);
    for (const std::size_t n : {std::size_t{1}, most()}) {
      const auto found = find(n);
      EXPECT_FALSE(found) << n << " " << found->op << " " << found->max_abs;
    }
  });
}

TEST_F(finding_op, each_op_of_a_list_is_found_where_it_is_changed) {
  each_model([&] {
    open_plain();
    const compute::graph g = list();
    uint32_t changed = 0;
    uint32_t gone = 0;  // at the end: the weights of a small model are all alike
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
      const change to = other_than(g.ops[i]);
      if (!to) continue;
      SCOPED_TRACE(fmt::format("op {} of {}: {}", i, g.ops.size(), compute::op_name(g.ops[i].op)));
      const changed_list wrong(*wrong_table().backend, g.ops[i], to);
      const found_op found = find(5);
      ++changed;
      if (!found && ++gone <= 3) continue;
      ASSERT_TRUE(found);
      EXPECT_EQ(found->index, i);
      EXPECT_EQ(found->of, g.ops.size());
      EXPECT_EQ(found->op, compute::op_name(g.ops[i].op));
      EXPECT_GT(found->max_abs, 0);
    }
    EXPECT_GT(changed, g.ops.size() / 4);
  });
}

TEST_F(finding_op, a_plugin_with_wrong_attention_is_named_with_its_layer) {
  load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding()));
  live_ = made_on(other_);
  shadow_ = made_on(wrong_);
  EXPECT_FALSE(find(1)) << "it is right at the first position";
  const found_op found = find(9);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->op, "attn_paged");
  EXPECT_EQ(found->layer_or_name, "layer 0");
  EXPECT_EQ(found->index, place_of(BITNET_OP_ATTN_PAGED, 0));
}

TEST_F(finding_op, a_composite_that_one_side_fuses_is_named_as_a_whole) {
  if (test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  load(test::demo_model());
  live_ = made_on(cpu_);
  shadow_ = made_on(other_);
  const compute::graph g = list();
  const bitnet_op attention = g.ops[place_of(BITNET_OP_ATTN_PAGED, 1)];
  const changed_list wrong(*other_.backend, attention, other_than(attention));
  const found_op found = find(9);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->op, "attn_out");
  EXPECT_EQ(found->layer_or_name, "layer 1");
  EXPECT_EQ(found->index, place_of(BITNET_OP_ATTN_OUT, 1));
}

TEST_F(finding_op, an_op_with_one_weight_is_named_by_it) {
  load(tests::small_hybrid());
  open_plain();
  const compute::graph g = list();
  for (const auto& [nth, name] :
       {std::pair{0U, "blk.0.attn_norm.weight"}, {8U, "output_norm.weight"}}) {
    const bitnet_op norm = g.ops[place_of(BITNET_OP_RMS_NORM, nth)];
    const changed_list wrong(*wrong_table().backend, norm, other_than(norm));
    const found_op found = find(3);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->layer_or_name, name);
  }
}

TEST_F(finding_op, what_is_within_the_tolerance_is_no_difference) {
  load(tests::small_hybrid());
  open_plain();
  const compute::graph g = list();
  const bitnet_op norm = g.ops[place_of(BITNET_OP_RMS_NORM, 2)];
  const changed_list wrong(*wrong_table().backend, norm,
                           [](bitnet_op& x) { x.floats[0] += 1e-4F; });
  const found_op found = find(4);
  ASSERT_TRUE(found);
  EXPECT_GT(found->max_abs, 0);
  EXPECT_LT(found->max_abs, 1e-2);
  EXPECT_FALSE(find(4, 0.1));
}

// The op that reads int8 is named, as these are not compared where there is a tolerance.
TEST_F(finding_op, with_a_tolerance_quantisers_are_left_out) {
  if (test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  load(test::demo_model());
  open_plain();
  const compute::graph g = list();
  const std::size_t at = place_of(BITNET_OP_ACT_QUANT_I8, 4);
  const bitnet_op norm = g.ops[at - 1];
  ASSERT_EQ(norm.op, BITNET_OP_RMS_NORM);
  const changed_list wrong(*wrong_table().backend, g.ops[at],
                           [&](bitnet_op& x) { x.inputs[0] = norm.inputs[0]; });
  const found_op exact = find(4), rough = find(4, 1e-3);
  ASSERT_TRUE(exact && rough);
  EXPECT_EQ(exact->index, at);
  EXPECT_EQ(rough->index, at + 1);
  EXPECT_EQ(rough->op, "linear_ternary");
}

// A device that gives no int8 out: cuts that such values cross count with the next one.
TEST_F(finding_op, what_cannot_be_read_counts_with_what_follows) {
  if (test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  load(test::demo_model());
  open_plain();
  const compute::graph g = list();
  const auto product = [&](std::size_t nth) { return place_of(BITNET_OP_LINEAR_TERNARY, nth); };
  const uint32_t earlier = g.ops[product(0)].weights[0];  // of the same form, of layer 0
  changed_list wrong(*wrong_table().backend, g.ops[product(7)],
                     [&](bitnet_op& x) { x.weights[0] = earlier; });
  const found_op all = find(4);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->index, product(7));
  EXPECT_EQ(all->layer_or_name, "blk.1.attn_q.weight");
  wrong.gives_int8 = false;
  const found_op readable = find(4);
  ASSERT_TRUE(readable);
  EXPECT_EQ(readable->index, product(9)) << "values of the layer, behind which none crosses";
}

// A device that begins to differ while it is looked at.
TEST_F(finding_op, an_op_before_the_found_one_that_differs_is_followed_back) {
  load(tests::small_hybrid());
  live_ = made_on(other_);
  shadow_ = made_on(wrong_);  // whose attention is wrong at all times
  const compute::graph g = list();
  const std::size_t early = place_of(BITNET_OP_DELTA_GATES, 0);
  const std::size_t attention = place_of(BITNET_OP_ATTN_PAGED, 0);
  ASSERT_LT(early, attention);
  uint32_t before = 0;
  {
    const changed_list counted(*wrong_.backend, g.ops[early], [](bitnet_op&) {});
    const found_op found = find(4);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->index, attention);
    before = counted.built;
  }
  changed_list wrong(*wrong_.backend, g.ops[early], other_than(g.ops[early]));
  wrong.from = before - 1;  // all but the check at the end are as before
  const found_op found = find(4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, early);
}

// As the prompt is computed it does not differ.
TEST_F(finding_op, what_only_a_step_of_one_token_does_wrong_is_found) {
  load(tests::small_hybrid());
  open_plain();
  patched<&bitnet_backend_v0::queue_submit> steps(*wrong_table().backend,
                                                  [&](auto* queue, const auto* step, auto* err) {
                                                    bitnet_step other = *step;
                                                    if (other.n_tokens == 1) other.window = 1;
                                                    return steps.sound(queue, &other, err);
                                                  });
  EXPECT_FALSE(find(1)) << "it is the only one that it sees";
  const found_op found = find(6);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, place_of(BITNET_OP_ATTN_PAGED, 0));
}

TEST_F(finding_op, what_cannot_be_compared_is_rejected) {
  load(tests::small_hybrid());
  open_plain();
  const auto rejection = [&](std::span<const int32_t> tokens, double tolerance = 0) {
    const auto found = first_op_that_differs(live_, shadow_, tokens, tolerance);
    if (found) return std::string("found");
    EXPECT_EQ(found.error().status, BITNET_INVALID_ARGUMENT);
    return found.error().message;
  };
  EXPECT_THAT(rejection({}), testing::HasSubstr("1 to 512 tokens"));
  EXPECT_THAT(rejection(many(most_tokens_to_bisect + 1)), testing::HasSubstr("these are 513"));
  EXPECT_THAT(rejection(ids{1, -1}), testing::HasSubstr("token -1 is not one"));
  EXPECT_THAT(rejection(ids{1 << 20}), testing::HasSubstr("token 1048576 is not one"));
  for (const double tolerance : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(rejection(many(3), tolerance), testing::HasSubstr("the tolerance must be 0"));
  shadow_ = cut({2});
  EXPECT_THAT(rejection(many(3)), testing::HasSubstr("the shadow one is on 2"));
  std::swap(live_, shadow_);
  EXPECT_THAT(rejection(many(3)), testing::HasSubstr("the live one is on 2: cpu:0, cpu:0"));
}

TEST_F(finding_op, another_model_is_rejected) {
  load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding()));
  open_plain();
  const auto more = need(model::model::load(
      scratch_.write("more.gguf", tests::as_text(tests::small_model("minicpm", "gpt2", 3).build())),
      {}));
  engine::placement where;
  where.parts.push_back(need(engine::part::open(other_, more)));
  shadow_ = need(engine::engine::open(std::move(where), more, {}, nullptr));
  const auto found = first_op_that_differs(live_, shadow_, many(3), 0);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, testing::HasSubstr("must compute one list of ops"));
  shadow_.reset();
}

TEST_F(finding_op, what_a_context_has_no_room_for_is_rejected) {
  load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding()));
  open_plain();
  const auto found = first_op_that_differs(live_, shadow_, many(65), 0);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, testing::HasSubstr("65 tokens are more than the 64"));
}

// Whatever a step that never ends may still write to is not freed.
TEST_F(finding_op, a_device_that_hangs_is_left_alone) {
  load(tests::small_hybrid());
  open_plain();
  uint32_t freed = 0;
  const plugin::backend& device = *wrong_table().backend;
  patched<&bitnet_backend_v0::queue_wait> hangs(device, [](auto*, auto, auto, auto* err) {
    return fail_with(err, BITNET_TIMEOUT, "not yet");
  });
  patched<&bitnet_backend_v0::program_destroy> programs(device, [&](auto* program) {
    ++freed;
    programs.sound(program);
  });
  patched<&bitnet_backend_v0::kv_pool_destroy> pools(device, [&](auto* pool) {
    ++freed;
    pools.sound(pool);
  });
  const auto found = first_op_that_differs(live_, shadow_, many(3), 0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().status, BITNET_TIMEOUT);
  EXPECT_EQ(freed, 0U);
}

}  // namespace
}  // namespace bitnet::shadow
