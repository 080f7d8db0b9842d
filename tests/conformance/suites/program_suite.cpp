// Whole models: the same logits however the work is cut, and the right ones.

#include <algorithm>
#include <cstring>

#include "model/formats.hpp"
#include "model/requests.hpp"
#include "reference/evaluate.hpp"
#include "reference/names.hpp"
#include "suites/blame.hpp"
#include "suites/program.hpp"

namespace bitnet::conformance {

std::string program::culprits(const tiny_shape& shape) {
  tiny_shape plain = shape;
  plain.composites = false;
  if (const auto wrong = first_wrong_op(device_, tiny_model(plain), prompt, few_codes))
    return wrong->text;
  std::string out;
  for (const uint32_t composite :
       {BITNET_OP_QKV_ROPE_KV, BITNET_OP_ATTN_OUT, BITNET_OP_FFN_RELU2_GATED,
        BITNET_OP_FFN_SILU_GATED, BITNET_OP_LM_HEAD}) {
    tiny_shape one = shape;
    one.only_composite = composite;
    const tiny_model m(one);
    if (nmse(logits_of(m, {11}, options()), evaluate(m, prompt)) <= few_codes) continue;
    out += (out.empty() ? "" : ", ") + op_name(composite);
  }
  return out.empty() ? "every op by itself is right"
                     : "every op by itself is right, but not " + out;
}

namespace {

struct shape_row {
  const char* why;
  tiny_shape shape;
};
const shape_row shape_rows[] = {
    {"BitNet b1.58 2B: sub-norms, squared ReLU, F16 head", {}},
    {"llama with ternary weights: SiLU, no sub-norms, neighbours turn",
     {.sub_norms = false, .relu2 = false, .neox = false, .head_format = BITNET_FORMAT_Q8_0}},
    {"scale groups, K-quant embedding and head",
     {.embedding = 256,
      .head_dim = 64,
      .ff = 512,
      .scale_group = 256,
      .embed_format = BITNET_FORMAT_Q6_K,
      .head_format = BITNET_FORMAT_Q4_K}},
    {"small scale groups, frequency factors, f32 and bf16",
     {.ff = 384,
      .rope_factors = true,
      .scale_group = 32,
      .embed_format = BITNET_FORMAT_F32,
      .head_format = BITNET_FORMAT_BF16}},
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

// A model of two layers as two: what the first writes last, the second takes in.
struct cut_model {
  model lower, upper;
  uint32_t value = BITNET_NONE;  // that crosses
  uint64_t width = 0;

  explicit cut_model(const model& whole) : lower(whole), upper(whole) {
    // Layer 1 begins behind the second ADD, the residual of layer 0.
    std::size_t at = 0;
    for (int adds = 0; adds < 2; ++at) adds += whole.ops[at].op == BITNET_OP_ADD ? 1 : 0;
    value = whole.ops[at - 1].outputs[0];
    width = static_cast<uint64_t>(whole.values[value].dims[1]);
    const auto cut = whole.ops.begin() + static_cast<std::ptrdiff_t>(at);
    lower.ops.assign(whole.ops.begin(), cut);
    upper.ops.assign(cut, whole.ops.end());
    lower.logits = BITNET_NONE;
    lower.more_ports.push_back({BITNET_PORT_VALUE_OUT, value});
    upper.more_ports.push_back({BITNET_PORT_VALUE_IN, value});
  }
};

TEST_F(program, computes_what_the_reference_does) {
  uint64_t ran = 0;
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const tiny_model m(row.shape);
    if (!missing_ops(device_, m).empty()) continue;
    ++ran;
    const std::vector<float> found = logits_of(m, {7, 1, 3}, options());
    const std::vector<float> expected = evaluate(m, prompt);
    EXPECT_LE(nmse(found, expected), few_codes) << culprits(row.shape);
  }
  if (ran == 0) GTEST_SKIP() << "graph_query answers none for a primitive of each model";
}

TEST_F(program, batches_agree_bit_for_bit) {
  uint64_t ran = 0;
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const tiny_model m(row.shape);
    if (!missing_ops(device_, m).empty()) continue;
    ++ran;
    const std::vector<float> batch = logits_of(m, {11}, options());
    EXPECT_TRUE(same_bits(batch, logits_of(m, std::vector<uint64_t>(11, 1), options())));
    EXPECT_TRUE(same_bits(batch, logits_of(m, {5, 1, 4, 1}, options())));
  }
  if (ran == 0) GTEST_SKIP() << "graph_query answers none for a primitive of each model";
}

// With the flag a fixed order of sums, without it the same within a few codes.
TEST_F(program, order_of_sums_may_be_free) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.flags = 0;
  EXPECT_LE(nmse(logits_of(m, {5, 1, 4, 1}, o), logits_of(m, {11}, options())), few_codes);
}

TEST_F(program, runs_repeat_bit_for_bit) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> first = logits_of(m, {7, 1, 3}, options());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(first, logits_of(m, {7, 1, 3}, options())));
}

TEST_F(program, every_size_up_to_the_bound_runs) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.buckets = {1, 2, 4, 16};
  o.max_blocks = 40;
  o.n_blocks = 130;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, o);
  for (const uint32_t bucket : o.buckets)
    for (const uint32_t outputs : {0u, bucket})
      must(
          [&](bitnet_error* e) { return prepare(device_.table(), r.binding, bucket, outputs, e); });
  for (uint64_t n = 1; n <= o.max_tokens; ++n) {
    SCOPED_TRACE(n);
    runner one(device_.table(), m, o);
    std::vector<token_in> in;
    for (uint64_t i = 0; i < n; ++i) in.push_back({prompt[i % prompt.size()], 0});
    const std::vector<float> rows = one.run(in);
    const uint64_t known = std::min<uint64_t>(n, prompt.size()) * m.vocabulary();
    EXPECT_TRUE(
        std::equal(rows.begin(), rows.begin() + static_cast<int64_t>(known), whole.begin()));
  }
}

TEST_F(program, sizes_past_the_bound_are_rejected) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options());
  const outcome o = attempt(
      [&](bitnet_error* e) { return prepare(device_.table(), r.binding, 1'000'000, 1, e); });
  EXPECT_NE(o.status, BITNET_OK);
  EXPECT_EQ(o.complaint, "");
}

TEST_F(program, only_the_wanted_rows_are_written) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  const uint64_t vocab = m.vocabulary();
  bitnet_step step = r.prepare(tokens_of(0));
  step.n_outputs = 2;
  r.output_rows[0] = 10;
  r.output_rows[1] = 3;
  r.output_rows[2] = 99'999;  // it is not read
  constexpr float mark = 12345.0f;
  std::fill_n(r.logits, 16 * vocab, mark);
  const outcome o = r.submit(step);
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  EXPECT_EQ(std::memcmp(r.logits, &whole[10 * vocab], vocab * 4), 0) << "row 10";
  EXPECT_EQ(std::memcmp(r.logits + vocab, &whole[3 * vocab], vocab * 4), 0) << "row 3";
  for (uint64_t i = 2 * vocab; i < 16 * vocab; ++i)
    ASSERT_EQ(r.logits[i], mark) << "a row that was not requested was written";
}

TEST_F(program, sequences_do_not_see_each_other) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> alone = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  const auto vocab = static_cast<int64_t>(m.vocabulary());
  std::vector<float> mixed;
  for (const token_in& t : tokens_of(1)) {
    const std::vector<float> rows = r.run({{7, 0}, t, {11, 2}});
    mixed.insert(mixed.end(), rows.begin() + vocab, rows.begin() + 2 * vocab);
  }
  EXPECT_TRUE(same_bits(alone, mixed));
}

TEST_F(program, prefill_and_decode_share_a_step) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> alone = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  const auto vocab = static_cast<int64_t>(m.vocabulary());
  r.run(tokens_of(0, 0, 10));
  std::vector<token_in> in = tokens_of(1, 0, 6);  // a prompt, with the other's last token between
  in.insert(in.begin() + 4, tokens_of(0, 10).front());
  const std::vector<float> rows = r.run(in);
  EXPECT_TRUE(same_bits({rows.begin() + 4 * vocab, rows.begin() + 5 * vocab},
                        {alone.end() - vocab, alone.end()}))
      << "the decoded token";
  EXPECT_TRUE(same_bits({rows.begin(), rows.begin() + 4 * vocab},
                        {alone.begin(), alone.begin() + 4 * vocab}))
      << "the prompt";
}

TEST_F(program, the_largest_logits_are_those_of_all) {
  const tiny_model m({.vocab = 300});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {1}, options());
  for (const uint32_t top : {1u, 5u, 40u, 300u, 100'000u}) {
    SCOPED_TRACE(top);
    runner r(device_.table(), m, options());
    EXPECT_EQ(wrong_largest(whole, largest_of(r, tokens_of(0, 0, 1), top), top), "");
  }
}

// What a device lists by ids instead of whole rows. It may leave rows out, not all of them.
TEST_F(program, the_largest_logits_are_listed) {
  if ((device_.info().logits_flags & BITNET_LOGITS_LARGEST) == 0)
    GTEST_SKIP() << "the device lists no logits (BITNET_LOGITS_LARGEST)";
  tiny_model m({.layers = 1, .vocab = 1500, .embedding = 256, .head_format = BITNET_FORMAT_F16});
  need(m);
  if (IsSkipped()) return;
  const std::vector<token_in> in = tokens_of(0, 0, 3);
  const std::vector<float> whole = logits_of(m, {3}, options());
  m.more_ports.push_back({BITNET_PORT_LARGEST, BITNET_NONE});
  uint64_t n_listed = 0;
  for (const uint32_t top : {1u, 5u, 40u, 1023u, 0u}) {
    SCOPED_TRACE(top);
    runner r(device_.table(), m, options());
    auto* rows = static_cast<bitnet_largest*>(r.more.back());
    bitnet_step step = r.prepare(in);
    step.top_logits = top;
    for (uint64_t i = 0; i < in.size(); ++i) rows[i].count = BITNET_NONE;
    const outcome o = r.submit(step);
    ASSERT_EQ(o.status, BITNET_OK) << o.message;
    for (uint64_t i = 0; i < in.size(); ++i) {
      SCOPED_TRACE("row " + std::to_string(i));
      const auto from = static_cast<std::ptrdiff_t>(i * r.vocabulary());
      const auto vocab = static_cast<std::ptrdiff_t>(r.vocabulary());
      const std::vector<float> all(whole.begin() + from, whole.begin() + from + vocab);
      std::vector<float> found(r.logits + from, r.logits + from + vocab);
      if (rows[i].count <= BITNET_MOST_LARGEST) {
        ++n_listed;
        EXPECT_NE(top, 0u) << "listed in a step that wants all logits";
        EXPECT_EQ(wrong_list(rows[i], top, found), "");
      }
      EXPECT_EQ(wrong_largest(all, found, top), "");
    }
  }
  EXPECT_NE(n_listed, 0u) << "it says that it lists the largest logits, and listed none";
}

// A plugin that packs second forms of weights uses them where only the largest logits are wanted.
// Heads of so many rows that they do not stay in a cache: for less no backend packs anything.
TEST_F(program, packed_weights_give_the_same_largest_logits) {
  uint64_t packed = 0;
  std::string missing;
  for (const format& f : all_formats()) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    SCOPED_TRACE(std::string("a head of ") + f.name);
    const tiny_model m({.layers = 1, .vocab = 1500, .embedding = 256, .head_format = f.id});
    if (const std::string one = missing_ops(device_, m); !one.empty()) {
      missing = one;
      continue;
    }
    runner r(device_.table(), m, options());
    const std::vector<packed_weight> forms = r.pack(m);
    if (forms.empty()) continue;
    ++packed;
    const std::vector<float> whole = logits_of(m, {1}, options());
    constexpr uint32_t top = 40;
    EXPECT_EQ(wrong_largest(whole, largest_of(r, tokens_of(0, 0, 1), top), top), "");
    // What was packed once is brought the next time, and packing it again gives the same.
    runner_options brought = options();
    brought.packed = &forms;
    runner other(device_.table(), m, brought);
    EXPECT_EQ(wrong_largest(whole, largest_of(other, tokens_of(0, 0, 1), top), top), "")
        << "packed weights that were brought";
    runner again(device_.table(), m, options());
    const std::vector<packed_weight> twice = again.pack(m);
    ASSERT_EQ(twice.size(), forms.size());
    for (std::size_t i = 0; i < forms.size(); ++i)
      EXPECT_TRUE(twice[i].data == forms[i].data) << forms[i].layout_id << " has other bytes again";
  }
  if (packed == 0 && !missing.empty()) GTEST_SKIP() << "graph_query answers none for " << missing;
  if (packed == 0) GTEST_SKIP() << "it packs no second form of a head (bitnet/abi/packed.h)";
}

TEST_F(program, weights_in_place_give_the_same) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.alias = true;
  EXPECT_TRUE(same_bits(logits_of(m, {11}, options()), logits_of(m, {11}, o)));
}

// Two steps under way at once, each with memory of its own, one program.
TEST_F(program, two_bindings_are_in_flight_together) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  step_memory second = r.bind();
  const auto vocab = static_cast<int64_t>(m.vocabulary());
  std::vector<float> first_rows, second_rows;
  for (uint64_t at = 0; at < prompt.size(); ++at) {
    const bitnet_step a = r.prepare(tokens_of(0, at, at + 1));
    const bitnet_step b = r.prepare(tokens_of(1, at, at + 1), second);
    must([&](bitnet_error* e) { return device_.table().queue_submit(r.queue, &a, e); });
    must([&](bitnet_error* e) { return device_.table().queue_submit(r.queue, &b, e); });
    const outcome done = r.wait(b.signal_value);
    ASSERT_EQ(done.status, BITNET_OK) << done.message;
    first_rows.insert(first_rows.end(), r.logits, r.logits + vocab);
    second_rows.insert(second_rows.end(), second.logits, second.logits + vocab);
  }
  EXPECT_TRUE(same_bits(whole, first_rows)) << "the first binding";
  EXPECT_TRUE(same_bits(whole, second_rows)) << "the second binding";
}

// Cut between two layers: the hidden state leaves one program and enters another one.
TEST_F(program, a_model_can_be_cut_in_two) {
  const tiny_model m({.composites = false});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  const cut_model cut(m);
  runner lower(device_.table(), cut.lower, options()), upper(device_.table(), cut.upper, options());
  std::vector<float> found;
  for (uint64_t at = 0; at < prompt.size(); at += 4) {
    const uint64_t end = std::min<uint64_t>(at + 4, prompt.size());
    const std::vector<token_in> in = tokens_of(0, at, end);
    const outcome below = lower.submit(lower.prepare(in));
    ASSERT_EQ(below.status, BITNET_OK) << below.message;
    std::memcpy(upper.more[0], lower.more[0], in.size() * cut.width * sizeof(float));
    const outcome above = upper.submit(upper.prepare(in));
    ASSERT_EQ(above.status, BITNET_OK) << above.message;
    found.insert(found.end(), upper.logits, upper.logits + in.size() * m.vocabulary());
  }
  EXPECT_TRUE(same_bits(whole, found));
}

// Any value of a graph can leave it, beside the logits or without them.
TEST_F(program, hidden_states_leave_beside_the_logits) {
  tiny_model m({.composites = false});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  const cut_model cut(m);
  runner lower(device_.table(), cut.lower, options());
  const outcome below = lower.submit(lower.prepare(tokens_of(0)));
  ASSERT_EQ(below.status, BITNET_OK) << below.message;
  m.more_ports.push_back({BITNET_PORT_VALUE_OUT, cut.value});
  runner both(device_.table(), m, options());
  const std::vector<float> logits = both.run(tokens_of(0));
  EXPECT_TRUE(same_bits(whole, logits));
  EXPECT_EQ(std::memcmp(both.more[0], lower.more[0], 11 * cut.width * sizeof(float)), 0);
}

// What it says before there are weights is what it does afterwards.
TEST_F(program, graph_query_agrees_with_program_build) {
  uint64_t ran = 0;
  for (const shape_row& row : shape_rows) {
    SCOPED_TRACE(row.why);
    const tiny_model m(row.shape);
    const std::vector<bitnet_port> ports = m.ports();
    const bitnet_graph graph = m.graph(ports);
    std::vector<bitnet_tensor_desc> descs = m.descs();
    for (bitnet_tensor_desc& d : descs) d.scales = nullptr;
    bitnet_kv_config kv{};
    kv.struct_size = sizeof kv;
    kv.dtype_k = kv.dtype_v = BITNET_DTYPE_F16;
    kv.n_layers = m.kv_layers;
    kv.n_kv_heads = m.kv_heads;
    kv.head_dim_k = kv.head_dim_v = m.head_dim;
    kv.block_tokens = 4;
    std::vector<uint32_t> levels(m.ops.size(), 99);
    uint64_t least = 0;
    for (const uint32_t tokens : {1u, 16u}) {
      bitnet_program_options o = least_options();
      o.max_tokens = o.max_outputs = tokens;
      o.max_blocks = 8;
      const bitnet_query_request r = query_request(graph, descs, o, &kv);
      bitnet_graph_estimate estimate{};
      estimate.struct_size = sizeof estimate;
      must([&](bitnet_error* e) {
        return device_.table().graph_query(device_.device, &r, levels.data(), &estimate, e);
      });
      const char* wrong = bitnet_wrong_levels(levels.data(), static_cast<uint32_t>(levels.size()));
      ASSERT_EQ(wrong, nullptr) << "graph_query " << wrong;
      if (!missing_ops(device_, m).empty()) break;
      EXPECT_EQ(bitnet_wrong_estimate(&estimate, 1), nullptr);
      EXPECT_GE(estimate.scratch_bytes, least) << "a larger step needs less";
      least = estimate.scratch_bytes;
    }
    if (!missing_ops(device_, m).empty()) continue;
    ++ran;
    EXPECT_NO_THROW(runner(device_.table(), m, options())) << "and program_build does not take it";
  }
  if (ran == 0) GTEST_SKIP() << "graph_query answers none for a primitive of each model";
}

TEST_F(program, statistics_count_what_ran) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options());
  for (const bitnet_kernel_stat& s : r.stats()) EXPECT_EQ(s.calls, 0u) << "before the first step";
  const auto calls = [&] {
    uint64_t n = 0;
    for (const bitnet_kernel_stat& s : r.stats()) n += s.calls;
    return n;
  };
  r.run(tokens_of(0, 0, 4));
  const uint64_t once = calls();
  EXPECT_GT(once, 0u) << "nothing is counted";
  r.run(tokens_of(0, 4, 8));
  EXPECT_EQ(calls(), 2 * once) << "the same step again";
  EXPECT_EQ(broken_claim(device_.kernels(), r.stats(), BITNET_OP_NONE, 0), "");
}

}  // namespace
}  // namespace bitnet::conformance
