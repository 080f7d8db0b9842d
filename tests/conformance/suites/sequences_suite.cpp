// Many sequences on one device: each as if alone, and nothing else in the pool touched.

#include "suites/sequences.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "model/kv_types.hpp"
#include "model/recurrent_model.hpp"

namespace bitnet::conformance {
namespace {

constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                   q4 = BITNET_DTYPE_Q4_0;

TEST_F(sequences, random_steps_with_each_kv_type) {
  const uint32_t types = device_.info().kv_dtypes;
  const std::pair<uint32_t, uint32_t> pairs[] = {{f32, f32}, {f16, f16}, {q8, q8},
                                                 {q4, q4},   {f16, q8},  {q8, q4}};
  uint32_t seed = 1;
  for (const auto& [k, v] : pairs) {
    if (!keeps(types, k) || !keeps(types, v)) continue;
    SCOPED_TRACE("keys and values of types " + std::to_string(k) + ", " + std::to_string(v));
    traffic_options t;
    t.seed = seed++;
    run_keys(t, k, v, 16);
    if (IsSkipped() || HasFatalFailure()) return;
  }
  if (seed == 1) GTEST_SKIP() << "the device has no such KV pools";
}

// Blocks of another size, fewer than there are sequences' rows, more tokens in a step.
TEST_F(sequences, random_steps_with_long_prompts) {
  traffic_options t;
  t.max_tokens = t.max_outputs = 70;
  t.max_sequences = 5;
  t.max_blocks = 5;
  t.block_tokens = 16;
  t.n_blocks = 14;
  t.live = 5;
  t.seed = 21;
  run_keys(t, f16, f16, 16);
}

TEST_F(sequences, random_steps_with_windows) {
  if ((device_.info().attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_WINDOW";
  traffic_options t;
  t.windows = true;
  t.seed = 31;
  run_keys(t, f16, f16, 24);
}

TEST_F(sequences, random_steps_with_windows_of_layers) {
  if ((device_.info().attention_flags & BITNET_ATTENTION_LAYER_WINDOW) == 0)
    GTEST_SKIP() << "the device does not declare BITNET_ATTENTION_LAYER_WINDOW";
  traffic_options t;
  t.windows = (device_.info().attention_flags & BITNET_ATTENTION_WINDOW) != 0;
  t.seed = 41;
  run_keys(t, f16, f16, 24, 6);
}

traffic_options many(uint32_t n, uint32_t seed) {
  traffic_options t;
  t.max_tokens = t.max_outputs = n + 8;
  t.max_sequences = t.live = n;
  t.max_blocks = 4;
  t.n_blocks = 2 * n + 5;
  t.seed = seed;
  return t;
}

TEST_F(sequences, sixty_five_in_a_step) {
  run_keys(many(65, 51), f16, f16, 10);
}

TEST_F(sequences, two_hundred_and_fifty_seven_in_a_step) {
  run_keys(many(257, 61), f16, f16, 6);
}

TEST_F(sequences, random_steps_with_states) {
  traffic_options t;
  t.seed = 71;
  run_states(t, 32);
}

TEST_F(sequences, sixty_five_with_states) {
  run_states(many(65, 81), 10);
}

// The lists that move blocks: some blocks and states, in any order; the others keep each byte.
TEST_F(sequences, what_moves_touches_nothing_beside_it) {
  model m = recurrent_model();  // with blocks of keys that no op of it writes
  need(m);
  if (IsSkipped()) return;
  traffic_options t;
  t.n_blocks = 13;
  runner_options o = bounds_of(t);
  o.opened = device_.device;
  sequences_runner r(device_.table(), m, o, 1);
  std::mt19937 random(91);
  pool_contents pool = r.room();
  pool.fill(random);
  ASSERT_EQ(r.wrong_restore(pool.bytes()), "");
  const auto n = static_cast<uint32_t>(pool.blocks.size() + pool.states.size());
  for (int round = 0; round < 24; ++round) {
    SCOPED_TRACE(round);
    std::vector<uint32_t> list(n);
    for (uint32_t i = 0; i < n; ++i) list[i] = i;
    std::ranges::shuffle(list, random);
    list.resize(1 + random() % n);
    ASSERT_EQ(r.wrong_export(pool, list), "") << "kv_export";
    pool_contents fresh = pool;
    fresh.fill(random);
    ASSERT_EQ(r.wrong_import(fresh, list, pool), "") << "kv_import";
    ASSERT_EQ(r.wrong_contents(pool), "") << "kv_import";
    ASSERT_EQ(r.wrong_copy(list, pool, random), "") << "kv_copy";
    ASSERT_EQ(r.wrong_contents(pool), "") << "kv_copy";
  }
}

// ---- whole models ------------------------------------------------------------------------------

// Each logits row that a step gave, by sequence and position.
using seen_rows = std::map<std::pair<uint64_t, uint32_t>, std::vector<float>>;

void note_rows(const planned_step& plan, const runner& r, seen_rows& to) {
  std::vector<std::pair<uint64_t, uint32_t>> places;
  for (const slice& s : plan.slices)
    for (uint32_t i = 0; i < s.tokens.size(); ++i) places.emplace_back(s.id, s.first + i);
  for (std::size_t i = 0; i < plan.output_rows.size(); ++i) {
    const float* row = r.logits + i * r.vocabulary();
    to[places[plan.output_rows[i]]] = {row, row + r.vocabulary()};
  }
}

// Which rows differ from those of the sequence alone, in words; "" if none.
std::string wrong_alone(const bitnet_backend_v0& table, const model& m, const traffic_options& t,
                        const runner_options& how, const traffic& scheduler,
                        const seen_rows& seen) {
  runner_options o = how;
  o.max_sequences = 1;
  o.max_tokens = o.max_outputs = t.max_blocks * t.block_tokens;
  o.guarded = false;
  for (uint64_t id = 0; id < scheduler.begun(); ++id) {
    const auto first = seen.lower_bound({id, 0}), last = seen.lower_bound({id + 1, 0});
    if (first == last) continue;
    runner alone(table, m, o);
    std::vector<token_in> in;
    for (const int32_t token : scheduler.history(id)) in.push_back({token, 0});
    const std::vector<float> rows = alone.run(in);
    for (auto row = first; row != last; ++row) {
      const auto at = static_cast<std::ptrdiff_t>(row->first.second * m.vocabulary());
      const std::vector<float> one(rows.begin() + at,
                                   rows.begin() + at + static_cast<std::ptrdiff_t>(m.vocabulary()));
      if (!same_bits(one, row->second))
        return "sequence " + std::to_string(id) + ", position " +
               std::to_string(row->first.second) + " has other logits than alone";
    }
  }
  return "";
}

void run_models(opened_device& device, const model& m, traffic_options t, uint32_t steps) {
  t.vocabulary = static_cast<uint32_t>(m.vocabulary() < 32 ? m.vocabulary() : 32);
  runner_options o = bounds_of(t);
  o.opened = device.device;
  sequences_runner r(device.table(), m, o, t.seed);
  traffic scheduler(t);
  seen_rows seen;
  for (uint32_t n = 0; n < steps; ++n) {
    const planned_step plan = scheduler.next();
    SCOPED_TRACE("step " + std::to_string(n));
    const outcome moved = r.move(plan);
    ASSERT_EQ(moved.status, BITNET_OK) << moved.message;
    if (plan.n_tokens() == 0) continue;
    const outcome done = r.take(plan);
    ASSERT_EQ(done.status, BITNET_OK) << done.message;
    note_rows(plan, r, seen);
  }
  EXPECT_EQ(wrong_alone(device.table(), m, t, o, scheduler, seen), "");
  EXPECT_TRUE(r.guards_are_intact()) << "memory beside that of a port was written";
}

TEST_F(sequences, models_give_each_what_it_has_alone) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  traffic_options t;
  t.seed = 101;
  run_models(device_, m, t, 24);
}

TEST_F(sequences, models_with_groups_give_each_what_it_has_alone) {
  const tiny_model m({.ff = 384,
                      .sub_norms = false,
                      .head_norms = true,
                      .relu2 = false,
                      .scale_group = 128,
                      .activation_group = 128,
                      .head_format = BITNET_FORMAT_Q8_0});
  need(m);
  if (IsSkipped()) return;
  traffic_options t;
  t.seed = 111;
  run_models(device_, m, t, 24);
}

TEST_F(sequences, models_with_states_give_each_what_it_has_alone) {
  const model m = recurrent_model();
  need(m);
  if (IsSkipped()) return;
  traffic_options t;
  t.seed = 121;
  run_models(device_, m, t, 24);
}

TEST_F(sequences, models_of_sixty_five_give_each_what_it_has_alone) {
  const tiny_model m({.layers = 1});
  need(m);
  if (IsSkipped()) return;
  run_models(device_, m, many(65, 131), 6);
}

// ---- cancelling --------------------------------------------------------------------------------

// One step that is cancelled at different moments, and what it does without a cancellation.
class cancelled_step {
 public:
  cancelled_step(opened_device& device, const model& m, uint32_t seed)
      : host_(device.host()), table_(device.table()), options_(seed), how_(bounds(device)) {
    r_ = std::make_unique<sequences_runner>(device.table(), m, how_, seed);
    traffic scheduler(options_);
    for (int n = 0; n < 6; ++n) {
      plan_ = scheduler.next();
      const outcome moved = r_->move(plan_);
      if (moved.status != BITNET_OK) throw call_failed(moved);
      before_ = r_->contents();
      const outcome done = submit();
      if (done.status != BITNET_OK) throw call_failed(done);
    }
    wanted_ = results();
    after_ = r_->contents();
    written_ = r_->written_by(plan_);
    restore();
    host_.cancel_after(-1);
    submit();
    questions_ = host_.cancel_questions();
  }

  [[nodiscard]] int64_t questions() const { return questions_; }
  std::string wrong_restore() { return r_->wrong_restore(before_); }

  // What is wrong with a step whose question number k, from 0 on, is the first to be answered with
  // yes; "" if nothing.
  std::string wrong_at(int64_t k) {
    leave_others();
    uint64_t at = 0, then = 0;
    must([&](bitnet_error* e) { return table_.queue_poll(r_->queue, &at, e); });
    host_.cancel_after(k);
    const bitnet_step step = r_->write(plan_);
    const std::vector<int32_t> facts = r_->facts();
    const outcome o = r_->submit(step);
    const int64_t asked = host_.cancel_questions();
    host_.cancel_after(-1);
    settle(table_);  // what a device still does after the answer counts, too
    if (r_->facts() != facts) return "a fact of the step is another one afterwards";
    must([&](bitnet_error* e) { return table_.queue_poll(r_->queue, &then, e); });
    if (!o.complaint.empty()) return o.complaint;
    if (o.status == BITNET_OK) {
      if (then != step.signal_value) return "OK, but the timeline is not at the step's value";
      if (!right()) return "OK, but its results are not those of a step that is not cancelled";
      return r_->contents() == after_ ? "" : "OK, but keys, values or states are other ones";
    }
    if (o.status != BITNET_CANCELLED)
      return "status " + std::to_string(o.status) + ": " + o.message;
    if (asked <= k) return "BITNET_CANCELLED without a cancellation";
    if (then != at) return "cancelled, but the timeline moved";
    const std::vector<uint8_t> found = r_->contents();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!written_[i] && found[i] != before_[i])
        return "cancelled, but " + r_->difference(i, before_, found) +
               ", though the step does not write it";
    leave_others();
    const outcome again = submit();
    if (again.status != BITNET_OK) return "the step after it fails: " + again.message;
    return right() && r_->contents() == after_ ? "" : "the step after it computes something else";
  }

 private:
  runner_options bounds(opened_device& device) {
    runner_options o = bounds_of(options_);
    o.opened = device.device;
    return o;
  }
  struct seeded : traffic_options {
    explicit seeded(uint32_t with) {
      seed = with;
      vocabulary = 30;
      n_blocks = 24;
    }
  };
  outcome submit() { return r_->take(plan_); }
  // Runs the step with other tokens, so that neither the logits nor what the plugin keeps between
  // steps has what the step is to give: results that are left from before would be taken for it.
  void leave_others() {
    restore();
    planned_step other = plan_;
    for (slice& one : other.slices)
      for (int32_t& token : one.tokens)
        token = (token + 1) % static_cast<int32_t>(options_.vocabulary);
    const outcome done = r_->take(other);
    if (done.status != BITNET_OK) throw call_failed(done);
    restore();
  }
  void restore() { r_->restore(before_); }
  [[nodiscard]] std::vector<float> results() const {
    return {r_->logits, r_->logits + plan_.output_rows.size() * r_->vocabulary()};
  }
  [[nodiscard]] bool right() const { return same_bits(results(), wanted_); }

  host_services& host_;
  const bitnet_backend_v0& table_;
  seeded options_;
  runner_options how_;
  std::unique_ptr<sequences_runner> r_;
  planned_step plan_;
  std::vector<uint8_t> before_, after_;
  std::vector<bool> written_;
  std::vector<float> wanted_;
  int64_t questions_ = 0;
};

void cancel_everywhere(opened_device& device, const model& m, uint32_t seed) {
  cancelled_step step(device, m, seed);
  EXPECT_GT(step.questions(), 0) << "queue_submit never asks host->cancelled";
  ASSERT_EQ(step.wrong_restore(), "");
  constexpr int64_t most = 64;  // of one step; beyond, some of them
  const int64_t stride = step.questions() / most + 1;
  for (int64_t k = 0; k <= step.questions(); k += k < most / 2 ? 1 : stride)
    ASSERT_EQ(step.wrong_at(k), "")
        << "queue_submit, cancelled at question " << k << " of " << step.questions();
}

TEST_F(sequences, a_step_can_be_cancelled_at_each_question) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  cancel_everywhere(device_, m, 141);
}

TEST_F(sequences, a_step_with_states_can_be_cancelled_at_each_question) {
  const model m = recurrent_model();
  need(m);
  if (IsSkipped()) return;
  cancel_everywhere(device_, m, 151);
}

}  // namespace
}  // namespace bitnet::conformance
