// Graphs, steps and calls that cannot be done, or are cancelled, are rejected in words, and what
// follows works.

#include <algorithm>
#include <chrono>

#include "model/requests.hpp"
#include "model/tiny_model.hpp"
#include "suites/robustness.hpp"

namespace bitnet::conformance {
namespace {

TEST_F(robustness, devices_that_are_not_there_are_rejected) {
  uint32_t n = 0;
  must([&](bitnet_error* e) { return table().device_count(table().self, &n, e); });
  auto* const mark = reinterpret_cast<bitnet_device*>(&n);
  for (const uint32_t index : {n, n + 1000, ~0u}) {
    bitnet_device* out = mark;
    expect_rejected(attempt([&](bitnet_error* e) { return open_device(table(), index, &out, e); }),
                    "a device that is not there");
    EXPECT_EQ(out, mark) << "an out parameter was written by a call that failed";
    uint32_t count = 0;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return table().kernels(table().self, index, nullptr, 0, &count, e);
                    }),
                    "kernels of a device that is not there");
  }
}

TEST_F(robustness, graphs_with_unknown_ops_are_rejected) {
  tiny_model m({.composites = false});
  need(m);
  if (IsSkipped()) return;
  uint64_t changed = 0;
  for (bitnet_op& op : m.ops)
    if (op.op == BITNET_OP_RELU2) {
      op.op = 200;
      ++changed;
    }
  ASSERT_NE(changed, 0u);
  try {
    const runner r(table(), m, options());
    ADD_FAILURE() << "a graph with op 200 was built";
  } catch (const call_failed& e) {
    EXPECT_EQ(e.status, BITNET_UNSUPPORTED) << e.what();
  }
}

TEST_F(robustness, an_unknown_composite_runs_as_its_body) {
  const tiny_model honest({});
  tiny_model later({});
  need(honest);
  if (IsSkipped()) return;
  uint64_t changed = 0;
  for (bitnet_op& op : later.ops)
    if (op.op == BITNET_OP_QKV_ROPE_KV) {
      op.op = 4242;
      ++changed;
    }
  ASSERT_NE(changed, 0u);
  runner a(table(), honest, options()), b(table(), later, options());
  // A fused kernel may round differently from its body.
  EXPECT_LE(nmse(a.run({{1}, {2}, {3}}), b.run({{1}, {2}, {3}})), few_codes);
}

TEST_F(robustness, a_composite_may_stand_in_another_one) {
  const tiny_model honest({.composites = false});
  tiny_model nested({.only_composite = BITNET_OP_ATTN_OUT});
  need(honest);
  if (IsSkipped()) return;
  // The quantised product within each ATTN_OUT, as a BIT_LINEAR.
  uint64_t made = 0;
  for (std::size_t i = 0; i < nested.ops.size(); ++i) {
    if (nested.ops[i].op != BITNET_OP_ATTN_OUT) continue;
    for (std::size_t j = i + 1; j <= i + nested.ops[i].body_count; ++j) {
      if (nested.ops[j].op != BITNET_OP_ACT_QUANT_I8) continue;
      bitnet_op inner = nested.ops[j];
      inner.op = BITNET_OP_BIT_LINEAR;
      inner.body_count = 2;
      std::ranges::copy(nested.ops[j + 1].outputs, inner.outputs);
      nested.ops.insert(nested.ops.begin() + static_cast<std::ptrdiff_t>(j), inner);
      ++nested.ops[i].body_count;
      ++made;
      break;
    }
  }
  ASSERT_NE(made, 0u);
  runner a(table(), honest, options()), b(table(), nested, options());
  // A fused kernel may round differently from its body.
  EXPECT_LE(nmse(a.run({{1}, {2}, {3}}), b.run({{1}, {2}, {3}})), few_codes);
}

void expect_unsupported(const outcome& o, const char* what) {
  EXPECT_EQ(o.status, BITNET_UNSUPPORTED) << what << ": " << o.message;
  EXPECT_EQ(o.complaint, "") << what;
}

// Of a buffer that a later host asks for.
void look_at_buffers(const bitnet_backend_v0& t, bitnet_device* device) {
  struct later_buffer {
    bitnet_buffer_request request;
    uint64_t more;
  } buffer{{}, 1};
  buffer.request.struct_size = sizeof buffer;
  buffer.request.bytes = 64;
  bitnet_buffer* b = nullptr;
  const auto create = [&] {
    return attempt(
        [&](bitnet_error* e) { return t.buffer_create(device, &buffer.request, &b, e); });
  };
  expect_unsupported(create(), "a buffer with more to it");
  buffer.more = 0;
  buffer.request.usage = 0x80000000u;
  expect_unsupported(create(), "a use of a buffer that must be understood");
  buffer.request.usage = 0x8000;
  EXPECT_EQ(create().status, BITNET_OK) << "a hint that it does not know";
  if (b != nullptr) t.buffer_destroy(b);
}

TEST_F(robustness, what_is_not_understood_is_unsupported) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  bitnet_step step = r.prepare({{1}});
  step.reserved_0 = 1;
  expect_unsupported(
      attempt([&](bitnet_error* e) { return table().queue_submit(r.queue, &step, e); }),
      "reserved_0 of a step");
  struct later_step {
    bitnet_step step;
    uint64_t more;
  } later{step, 1};
  later.step.reserved_0 = 0;
  later.step.struct_size = sizeof later;
  expect_unsupported(
      attempt([&](bitnet_error* e) { return table().queue_submit(r.queue, &later.step, e); }),
      "a step with more to it");
  later.more = 0;
  const outcome plain =
      attempt([&](bitnet_error* e) { return table().queue_submit(r.queue, &later.step, e); });
  EXPECT_EQ(plain.status, BITNET_OK) << "zeros behind what it knows: " << plain.message;
  EXPECT_EQ(r.wait(later.step.signal_value).status, BITNET_OK);

  look_at_buffers(table(), device_.device);
  bitnet_kv_config kv{
      sizeof(bitnet_kv_config), BITNET_DTYPE_F16, BITNET_DTYPE_F16, 1, 1, 32, 32, 4, 3, 1, 0, 0};
  bitnet_kv_pool* pool = nullptr;
  expect_unsupported(attempt([&](bitnet_error* e) {
                       return table().kv_pool_create(device_.device, &kv, &pool, e);
                     }),
                     "reserved_0 of a pool");
  bitnet_tensor_desc desc = m.descs()[0];
  desc.reserved_0 = 1;
  bitnet_weight_plan plan{};
  plan.struct_size = sizeof plan;
  expect_unsupported(attempt([&](bitnet_error* e) {
                       return table().weight_plan(device_.device, &desc, &plan, e);
                     }),
                     "reserved_0 of a tensor");
}

TEST_F(robustness, a_weight_of_rank_3_is_unsupported) {
  if (table().abi_minor < 2) GTEST_SKIP() << "it speaks ABI 0.1, which does not say it of ranks";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  bitnet_tensor_desc desc = m.descs()[0];
  desc.rank = 3;
  desc.ne[2] = 2;
  desc.data_bytes *= 2;
  bitnet_weight_plan plan{};
  plan.struct_size = sizeof plan;
  expect_unsupported(attempt([&](bitnet_error* e) {
                       return table().weight_plan(device_.device, &desc, &plan, e);
                     }),
                     "a tensor of rank 3");
}

// A cancelled build makes nothing, and what it was made of can be built once more. Those
// that take no time need not ask.
TEST_F(robustness, a_cancelled_build_makes_nothing) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  bitnet_weights* const sealed = r.weights();
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const bitnet_program_options o = least_options();
  bitnet_build_request request = build_request(graph, {&sealed, 1}, o);
  bitnet_program* program = nullptr;
  const auto build = [&] {
    return attempt([&](bitnet_error* e) {
      return table().program_build(device_.device, &request, &program, e);
    });
  };
  request.cancel_token = 1;
  for (const int64_t after : {0, 2}) {
    SCOPED_TRACE(after);
    device_.host().cancel_after(after);
    const outcome stopped = build();
    const int64_t questions = device_.host().cancel_questions();
    device_.host().cancel_after(-1);
    if (questions > after) {
      EXPECT_EQ(stopped.status, BITNET_CANCELLED) << stopped.message;
      EXPECT_EQ(stopped.complaint, "");
      EXPECT_EQ(program, nullptr) << "a program of a build that was cancelled";
    } else {
      EXPECT_EQ(stopped.status, BITNET_OK) << stopped.message;
    }
    if (program != nullptr) table().program_destroy(program);
    program = nullptr;
  }
  const outcome built = build();
  EXPECT_EQ(built.status, BITNET_OK) << built.message;
  if (program != nullptr) table().program_destroy(program);
}

TEST_F(robustness, opening_and_preparing_can_be_cancelled) {
  const auto answered = [&](const auto& call, int64_t after) {
    device_.host().cancel_after(after);
    const outcome found = attempt(call);
    const int64_t questions = device_.host().cancel_questions();
    device_.host().cancel_after(-1);
    EXPECT_EQ(found.status, questions > after ? BITNET_CANCELLED : BITNET_OK) << found.message;
    EXPECT_EQ(found.complaint, "");
    return found.status;
  };
  bitnet_device_request request{};
  request.struct_size = sizeof request;
  request.cancel_token = 1;
  bitnet_device* other = nullptr;
  const auto open = [&](bitnet_error* e) {
    return table().device_open(table().self, &request, &other, e);
  };
  if (answered(open, 0) != BITNET_OK) {
    EXPECT_EQ(other, nullptr) << "a device of a call that was cancelled";
  } else {
    table().device_close(other);
  }

  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.max_tokens = 16;
  runner r(table(), m, o);
  const auto prepare_all = [&](bitnet_error* e) {
    return prepare(table(), r.binding, 16, 1, e, 1);
  };
  for (const int64_t after : {0, 2}) answered(prepare_all, after);
  std::vector<token_in> in;
  for (int32_t t = 0; t < 3; ++t) in.push_back({t, 0});
  EXPECT_EQ(r.run(in), runner(table(), m, o).run(in)) << "the binding is not as good as before";
}

TEST_F(robustness, waiting_for_what_never_comes_ends) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  const auto begin = std::chrono::steady_clock::now();
  const outcome o =
      attempt([&](bitnet_error* e) { return table().queue_wait(r.queue, 5, 20'000'000, e); });
  EXPECT_EQ(o.status, BITNET_TIMEOUT) << o.message;
  EXPECT_EQ(o.complaint, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(r.run({{1}}).size(), m.vocabulary()) << "and the queue goes on";
}

TEST_F(robustness, a_rejected_step_does_not_move_the_timeline) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  const std::vector<float> first = r.run({{1}});
  uint64_t before = 0, after = 0;
  must([&](bitnet_error* e) { return table().queue_poll(r.queue, &before, e); });
  EXPECT_EQ(before, 1u);
  bitnet_step past = r.prepare({{2}});
  past.signal_value = 1;
  expect_rejected(attempt([&](bitnet_error* e) { return table().queue_submit(r.queue, &past, e); }),
                  "a signal that the timeline has reached already");
  bitnet_step large = r.prepare({{2}});
  large.n_tokens = 17;
  expect_rejected(
      attempt([&](bitnet_error* e) { return table().queue_submit(r.queue, &large, e); }),
      "more tokens than the program was built for");
  settle(table());
  must([&](bitnet_error* e) { return table().queue_poll(r.queue, &after, e); });
  EXPECT_EQ(after, before) << "a failed submit moved the timeline";
}

TEST_F(robustness, a_step_without_tokens_is_rejected_or_does_nothing) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  bitnet_step step = r.prepare({});
  step.n_tokens = step.n_outputs = 0;
  const outcome o = r.submit(step);
  EXPECT_EQ(o.complaint, "");
  runner fresh(table(), m, options());
  EXPECT_TRUE(same_bits(r.run({{1}, {2}}), fresh.run({{1}, {2}})));
}

TEST_F(robustness, bindings_that_do_not_fit_are_rejected) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(table(), m, options());
  bitnet_buffer* large = nullptr;
  constexpr uint64_t bytes = 1u << 20;
  must([&](bitnet_error* e) { return create_buffer(table(), device_.device, bytes, &large, e); });
  const std::vector<bitnet_bound> good(m.ports().size(), {large, 0, bytes});
  const auto bind = [&](const std::vector<bitnet_bound>& bound, bitnet_kv_pool* pool) {
    const bitnet_bind_request request = bind_request(bound, pool);
    bitnet_binding* out = nullptr;
    outcome o = attempt(
        [&](bitnet_error* e) { return table().program_bind(r.program, &request, &out, e); });
    if (out != nullptr) table().binding_destroy(out);
    return o;
  };
  const struct {
    const char* what;
    bitnet_bound bound;
  } rows[] = {{"no buffer", {nullptr, 0, bytes}},
              {"too little of a buffer", {large, 0, 1}},
              {"a part that ends past its buffer", {large, 4096, bytes}},
              {"a part that begins past its buffer", {large, bytes + 4096, 4096}},
              {"a part whose end wraps", {large, ~uint64_t{0} - 4095, 8192}},
              {"a part that is not aligned", {large, 1, bytes / 2}}};
  for (const auto& row : rows) {
    for (std::size_t port = 0; port < good.size(); ++port) {
      std::vector<bitnet_bound> bound = good;
      bound[port] = row.bound;
      expect_rejected(bind(bound, r.pool), row.what);
    }
  }
  expect_rejected(bind({good.begin(), good.end() - 1}, r.pool), "a port without a place");
  expect_rejected(bind(good, nullptr), "no pool");
  EXPECT_EQ(bind(good, r.pool).status, BITNET_OK) << "and a binding that fits";
  table().buffer_destroy(large);
  EXPECT_EQ(r.run({{1}}).size(), m.vocabulary()) << "the first binding goes on";
}

TEST_F(robustness, ports_that_do_not_fit_are_rejected) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const struct {
    const char* what;
    void (*change)(std::vector<bitnet_port>& ports);
  } rows[] = {
      {"no tokens", [](auto& ports) { ports.erase(ports.begin()); }},
      {"no slots", [](auto& ports) { ports.erase(ports.begin() + 3); }},
      {"tokens twice", [](auto& ports) { ports.push_back(ports[0]); }},
      {"logits twice", [](auto& ports) { ports.push_back(ports.back()); }},
      {"logits of no value", [](auto& ports) { ports.back().value = BITNET_NONE; }},
      {"logits of a value that is not there", [](auto& ports) { ports.back().value = 1u << 30; }},
      {"logits for each token", [](auto& ports) { ports.back().value = 0; }},
      {"tokens with a value", [](auto& ports) { ports[0].value = 0; }},
      {"a value that comes in and is written",
       [](auto& ports) { ports.push_back({BITNET_PORT_VALUE_IN, 0}); }},
  };
  for (const auto& row : rows) {
    std::vector<bitnet_port> ports = m.ports();
    row.change(ports);
    const bitnet_graph graph = m.graph(ports);
    const std::vector<bitnet_tensor_desc> descs = m.descs();
    const bitnet_program_options o = least_options();
    const bitnet_query_request request = query_request(graph, descs, o);
    std::vector<uint32_t> levels(m.ops.size());
    bitnet_graph_estimate estimate{};
    estimate.struct_size = sizeof estimate;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return table().graph_query(device_.device, &request, levels.data(), &estimate,
                                                 e);
                    }),
                    row.what);
  }
}

// Cancelled after some of the questions that the plugin asks: the step is cancelled, or was all but
// done, and the next one is right. A step that is cancelled before it begins is not computed.
TEST_F(robustness, a_cancelled_step_leaves_a_working_program) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner honest(table(), m, options());
  const std::vector<float> expected = honest.run({{1}, {2}, {3}});
  for (const int64_t after : {0, 1, 5, 20}) {
    SCOPED_TRACE(after);
    runner r(table(), m, options());
    device_.host().cancel_after(after);
    const outcome o = r.submit(r.prepare({{1}, {2}, {3}}));
    const int64_t questions = device_.host().cancel_questions();
    device_.host().cancel_after(-1);
    EXPECT_TRUE(o.status == BITNET_OK || o.status == BITNET_CANCELLED) << o.message;
    if (after == 0) {
      EXPECT_GT(questions, 0) << "it never asks host->cancelled";
      EXPECT_EQ(o.status, BITNET_CANCELLED) << "the first answer was to stop";
    }
    // Workers may ask at the same time; a worker that got "cancelled" does not ask again.
    constexpr int64_t workers = 3;
    EXPECT_LE(questions, after + workers) << "it went on after it was cancelled";
    if (o.status == BITNET_CANCELLED) {
      EXPECT_GT(questions, after) << "BITNET_CANCELLED without a cancellation";
      EXPECT_EQ(o.complaint, "");
    }
    // The same places again, from the first position.
    bitnet_step step = r.prepare({{1}, {2}, {3}});
    for (int32_t t = 0; t < 3; ++t) {
      r.positions[t] = t;
      r.slots[t] = r.block_tables[0] * 4 + t;
    }
    const outcome next = r.submit(step);
    ASSERT_EQ(next.status, BITNET_OK) << next.message;
    EXPECT_TRUE(same_bits(expected, {r.logits, r.logits + expected.size()}));
  }
}

}  // namespace
}  // namespace bitnet::conformance
