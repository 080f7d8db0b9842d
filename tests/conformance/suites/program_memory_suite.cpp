// What steps leave for later ones: keys and values in blocks, states, and windows over them.

#include <algorithm>
#include <limits>

#include "model/kv_types.hpp"
#include "model/recurrent_model.hpp"
#include "reference/evaluate.hpp"
#include "suites/program.hpp"

namespace bitnet::conformance {
namespace {

TEST_F(program, a_step_without_outputs_fills_the_cache) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  bitnet_step step = r.prepare(tokens_of(0, 0, 10));
  step.n_outputs = 0;
  const outcome o = r.submit(step);
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  const std::vector<float> last = r.run(tokens_of(0, 10));
  EXPECT_TRUE(same_bits(last, {whole.end() - static_cast<int64_t>(m.vocabulary()), whole.end()}));
}

TEST_F(program, places_of_blocks_do_not_matter) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  for (const int32_t order : {0, 1}) {
    runner r(device_.table(), m, options());
    for (int32_t b = 0; b < 8; ++b) r.block_tables[b] = order == 0 ? b : 29 - b;
    EXPECT_TRUE(same_bits(whole, r.run(tokens_of(0))));
  }
}

// Two sequences whose first two blocks are the same blocks.
TEST_F(program, a_prefix_can_be_shared) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  r.run(tokens_of(0, 0, 8));  // blocks of four
  r.block_tables[8] = r.block_tables[0];
  r.block_tables[9] = r.block_tables[1];
  // The second sequence goes on at position 8.
  bitnet_step step = r.prepare(tokens_of(1, 8));
  for (int32_t t = 0; t < 3; ++t) {
    r.positions[t] = 8 + t;
    r.slots[t] = r.block_tables[10] * 4 + t;
  }
  const outcome o = r.submit(step);
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  const uint64_t vocab = m.vocabulary();
  EXPECT_TRUE(same_bits({r.logits, r.logits + 3 * vocab},
                        {whole.end() - static_cast<int64_t>(3 * vocab), whole.end()}));
  // And the first is where it was.
  EXPECT_TRUE(same_bits(r.run(tokens_of(0, 8)),
                        {whole.end() - static_cast<int64_t>(3 * vocab), whole.end()}));
}

TEST_F(program, blocks_are_copied) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  r.run(tokens_of(0, 0, 10));
  const auto block = [&](int b) { return static_cast<uint32_t>(r.block_tables[b]); };
  const uint32_t from[] = {block(0), block(1), block(2)}, to[] = {block(8), block(9), block(10)};
  const outcome copied = r.copy_blocks(from, to);
  ASSERT_EQ(copied.status, BITNET_OK) << copied.message;
  for (int b = 0; b < 3; ++b) r.block_tables[b] = r.block_tables[8 + b];
  bitnet_step step = r.prepare(tokens_of(0, 10));
  const outcome o = r.submit(step);
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  const uint64_t vocab = m.vocabulary();
  EXPECT_TRUE(same_bits({r.logits, r.logits + vocab},
                        {whole.end() - static_cast<int64_t>(vocab), whole.end()}));
}

// What a step leaves in the state the next one goes on from, and a sequence that begins anew finds
// zeros.
TEST_F(program, states_go_on_however_the_work_is_cut) {
  const model m = recurrent_model();
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  EXPECT_TRUE(same_bits(whole, logits_of(m, {5, 1, 4, 1}, options())));
  EXPECT_TRUE(same_bits(whole, logits_of(m, std::vector<uint64_t>(11, 1), options())));
  runner r(device_.table(), m, options());
  r.run(tokens_of(1));
  EXPECT_TRUE(same_bits(whole, r.run(tokens_of(0)))) << "another sequence, before in the pool";
  r.rewind(0);
  EXPECT_TRUE(same_bits(whole, r.run(tokens_of(0)))) << "from the beginning again";
  // Two sequences in one step, each as if alone.
  runner both(device_.table(), m, options());
  both.run(tokens_of(1, 0, 6));
  std::vector<token_in> in = tokens_of(0, 0, 4);
  const std::vector<token_in> rest = tokens_of(1, 6);
  in.insert(in.end(), rest.begin(), rest.end());
  const std::vector<float> found = both.run(in);
  const auto vocab = static_cast<int64_t>(m.vocabulary());
  EXPECT_TRUE(same_bits({found.begin(), found.begin() + 4 * vocab},
                        {whole.begin(), whole.begin() + 4 * vocab}));
  EXPECT_TRUE(same_bits({found.begin() + 4 * vocab, found.end()},
                        {whole.begin() + 6 * vocab, whole.end()}));
}

TEST_F(program, states_are_copied_and_moved) {
  const model m = recurrent_model();
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  const auto vocab = static_cast<int64_t>(m.vocabulary());
  const std::vector<float> last = {whole.end() - vocab, whole.end()};
  runner r(device_.table(), m, options());
  r.run(tokens_of(0, 0, 10));
  const uint32_t own = r.state_block(0), spare = r.spare_state_block();
  const outcome kept = r.copy_blocks({&own, 1}, {&spare, 1});
  ASSERT_EQ(kept.status, BITNET_OK) << kept.message;
  EXPECT_TRUE(same_bits(r.run(tokens_of(0, 10)), last));
  const outcome back = r.copy_blocks({&spare, 1}, {&own, 1});
  ASSERT_EQ(back.status, BITNET_OK) << back.message;
  r.rewind(0, 10);
  EXPECT_TRUE(same_bits(r.run(tokens_of(0, 10)), last)) << "from the copy";
  // Behind a block of keys in one list, on the way to another pool.
  std::vector<uint8_t> moved(r.block_bytes + m.state_elements * sizeof(float));
  const uint32_t list[] = {static_cast<uint32_t>(r.block_tables[0]), spare};
  const outcome out = r.export_blocks(list, moved);
  ASSERT_EQ(out.status, BITNET_OK) << out.message;
  runner other(device_.table(), m, options());
  const uint32_t there[] = {static_cast<uint32_t>(other.block_tables[0]), other.state_block(0)};
  const outcome in = other.import_blocks(there, moved);
  ASSERT_EQ(in.status, BITNET_OK) << in.message;
  other.rewind(0, 10);
  EXPECT_TRUE(same_bits(other.run(tokens_of(0, 10)), last)) << "in another pool";
  const outcome mixed = r.copy_blocks({&own, 1}, {list, 1});
  EXPECT_EQ(mixed.status, BITNET_INVALID_ARGUMENT) << "a state into a block of keys";
  const outcome past = r.copy_blocks({&own, 1}, std::vector<uint32_t>{spare + 99});
  EXPECT_EQ(past.status, BITNET_INVALID_ARGUMENT) << "a state that there is not";
}

TEST_F(program, windows_hide_what_lies_before) {
  if ((device_.info().attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_WINDOW";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> everything = logits_of(m, {11}, options());
  const struct {
    uint32_t window, keep;
  } rows[] = {{1, 0}, {3, 0}, {4, 2}, {7, 4}, {11, 0}, {~0u, ~0u}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::to_string(row.window) + ", kept " + std::to_string(row.keep));
    runner_options o = options();
    o.window = row.window;
    o.window_keep = row.keep;
    const std::vector<float> found = logits_of(m, {11}, o);
    EXPECT_LE(nmse(found, evaluate(m, prompt, row.window, row.keep)), few_codes);
    EXPECT_TRUE(same_bits(found, logits_of(m, {5, 1, 4, 1}, o)));
    EXPECT_EQ(same_bits(found, everything), uint64_t{row.window} + row.keep >= 11);
  }
}

// A window of a layer is an attribute of its op: computed, or rejected in so many words.
TEST_F(program, windows_of_layers_hide_what_lies_before) {
  const bool declared = (device_.info().attention_flags & BITNET_ATTENTION_LAYER_WINDOW) != 0;
  tiny_model m({.composites = false});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> everything = logits_of(m, {11}, options());
  for (const int32_t window : {1, 4, 10, 11}) {
    SCOPED_TRACE(window);
    for (bitnet_op& op : m.ops)  // the second layer has none
      if (op.op == BITNET_OP_ATTN_PAGED && op.ints[0] == 0) op.ints[4] = window;
    if (!declared) {
      try {
        const runner r(device_.table(), m, options());
        ADD_FAILURE() << "a window of a layer was accepted and is not declared";
      } catch (const call_failed& e) {
        EXPECT_EQ(e.status, BITNET_UNSUPPORTED) << e.what();
      }
      continue;
    }
    const std::vector<float> found = logits_of(m, {11}, options());
    EXPECT_LE(nmse(found, evaluate(m, prompt)), few_codes);
    EXPECT_TRUE(same_bits(found, logits_of(m, {5, 1, 4, 1}, options())));
    EXPECT_EQ(same_bits(found, everything), window >= 11);
  }
}

TEST_F(program, blocks_that_no_token_sees_are_not_read) {
  if ((device_.info().attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_WINDOW";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.window = 3;
  const std::vector<float> whole = logits_of(m, {11}, o);
  runner r(device_.table(), m, o);
  r.run(tokens_of(0, 0, 10));
  r.block_tables[0] = -1;  // token 10 sees 8, 9 and itself, which are in the third block
  r.block_tables[1] = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(same_bits(r.run(tokens_of(0, 10)),
                        {whole.end() - static_cast<int64_t>(m.vocabulary()), whole.end()}));
}

TEST_F(program, each_kv_type_agrees_however_the_work_is_cut) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const uint32_t types = device_.info().kv_dtypes;
  for (const kv_type& k : all_kv_types)
    for (const kv_type& v : all_kv_types) {
      if (!keeps(types, k.dtype) || !keeps(types, v.dtype)) continue;
      SCOPED_TRACE(std::string(k.name) + ", " + v.name);
      runner_options o = options();
      o.dtype_k = k.dtype;
      o.dtype_v = v.dtype;
      EXPECT_TRUE(same_bits(logits_of(m, {11}, o), logits_of(m, {5, 1, 4, 1}, o)));
    }
}

// The step after it reads what the one before it wrote, without a wait in between.
TEST_F(program, steps_and_copies_keep_their_order_on_a_queue) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<float> whole = logits_of(m, {11}, options());
  runner r(device_.table(), m, options());
  step_memory second = r.bind();
  const auto block = [&](int b) { return static_cast<uint32_t>(r.block_tables[b]); };
  const uint32_t from[] = {block(0), block(1), block(2)}, to[] = {block(8), block(9), block(10)};
  for (int b = 0; b < 3; ++b) second.block_tables[b] = static_cast<int32_t>(to[b]);
  std::vector<uint8_t> bytes(3 * r.block_bytes);
  const bitnet_step begin = r.prepare(tokens_of(0, 0, 10));
  must([&](bitnet_error* e) { return device_.table().queue_submit(r.queue, &begin, e); });
  const uint64_t copied = r.next_signal();
  must([&](bitnet_error* e) {
    return device_.table().kv_copy(r.queue, r.pool, from, to, 3, copied, e);
  });
  const uint64_t exported = r.next_signal();
  must([&](bitnet_error* e) {
    return device_.table().kv_export(r.queue, r.pool, to, 3, bytes.data(), bytes.size(), exported,
                                     e);
  });
  const bitnet_step end = r.prepare(tokens_of(0, 10), second);
  must([&](bitnet_error* e) { return device_.table().queue_submit(r.queue, &end, e); });
  const outcome done = r.wait(end.signal_value);
  ASSERT_EQ(done.status, BITNET_OK) << done.message;
  const uint64_t vocab = m.vocabulary();
  EXPECT_TRUE(same_bits({second.logits, second.logits + vocab},
                        {whole.end() - static_cast<int64_t>(vocab), whole.end()}));
  // What was exported is what was copied, and goes back as it came.
  std::vector<uint8_t> again(bytes.size());
  const uint32_t elsewhere[] = {block(16), block(17), block(18)};
  EXPECT_EQ(r.import_blocks(elsewhere, bytes).status, BITNET_OK);
  EXPECT_EQ(r.export_blocks(elsewhere, again).status, BITNET_OK);
  EXPECT_TRUE(bytes == again);
  EXPECT_TRUE(std::ranges::any_of(bytes, [](uint8_t b) { return b != 0; }))
      << "nothing was written";
}

}  // namespace
}  // namespace bitnet::conformance
