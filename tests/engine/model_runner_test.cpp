// A model_runner on a backend whose slots the test watches or breaks: what a step says to each
// part, and what a failure, a hang, a cancel or a wrong answer leaves of the runner.

#include "runner/model_runner.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel_flags.hpp"
#include "engines.hpp"
#include "patched_slot.hpp"

namespace bitnet::runner {
namespace {

using test::cuts;
using test::fail_with;
using test::floats;
using test::ids;
using test::need;
using test::patched;
using submits = patched<&bitnet_backend_v0::queue_submit>;
using waits = patched<&bitnet_backend_v0::queue_wait>;

class steps : public test::hybrid_engines {
 protected:
  // Of four sequences of at most four blocks each.
  std::unique_ptr<model_runner> open_on(const std::shared_ptr<engine::engine>& e,
                                        engine::session_options o = wanted()) {
    const engine::limits most = need(engine::limits_of(model_->shape(), o, UINT32_MAX, 0, 4));
    bitnet_kv_config kv = engine::pool_of(model_->shape(), o, most, 0);
    kv.n_blocks = 16;
    kv.n_states = 4;
    std::shared_ptr<const engine::kv_pools> pools;
    {
      const std::lock_guard device_lock(e->device_mutex());
      pools = need(engine::kv_pools::make(*e, kv));
    }
    return need(model_runner::open(e, o, most, 4, std::move(pools), token_));
  }
  // The tokens `of` behind `first` others of sequence `n`, and a row of the last one.
  schedule::slice slice(std::span<const int32_t> of, uint64_t first = 0, uint32_t n = 0) const {
    static const std::vector<uint32_t> blocks = {7, 3, 1, 12, 0, 9, 4, 15};
    return {of, first, std::span(blocks).subspan(n * 4, 4), n, 1};
  }
  static floats row_of(const std::vector<generate::logits_row>& rows) {
    return {rows.at(0).logits.begin(), rows.at(0).logits.end()};
  }
  // Of a step with the first tokens of an unused sequence.
  floats step(model_runner& r) {
    const ids tokens = many(5);
    const schedule::slice one = slice(tokens, 0, 1);
    std::vector<generate::logits_row> rows;
    need(r.run({&one, 1}, 0, rows));
    return row_of(rows);
  }
  // The same step fails.
  static failure failed_step(model_runner& r, const schedule::slice& one) {
    std::vector<generate::logits_row> rows(3);
    const auto ok = r.run({&one, 1}, 0, rows);
    EXPECT_FALSE(ok);
    EXPECT_TRUE(rows.empty()) << "no row is left of the step before";
    return ok ? failure{} : ok.error();
  }

  cancel_flags flags_;
  cancel_flags::owned flag_ = flags_.make();
  uint64_t token_ = cancel_flags::token_of(*flag_);
};

TEST_F(steps, say_to_each_part_what_it_computes) {
  engine::session_options o = wanted();
  o.window = 100;
  o.window_keep = 3;
  cpu_.device.attention_flags |= BITNET_ATTENTION_WINDOW;
  const auto e = cut({1, 3});
  const auto r = open_on(e, o);
  const ids first = many(6), second = many(3);
  schedule::slice both[] = {slice(first), slice(second, 0, 1)};
  both[1].n_outputs = 2;
  std::vector<bitnet_step> said;
  std::vector<generate::logits_row> rows;
  {
    submits watched(*cpu_.backend, [&](auto* queue, const auto* s, auto* err) {
      said.push_back(*s);
      return watched.sound(queue, s, err);
    });
    need(r->run(both, 5, rows));
  }
  ASSERT_EQ(said.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(said[i].n_tokens, 9U);
    EXPECT_EQ(said[i].n_sequences, 2U);
    EXPECT_EQ(said[i].n_outputs, i == 2 ? 3U : 0U) << "rows leave the last part alone";
    EXPECT_EQ(said[i].top_logits, i == 2 ? 5U : 0U);
    EXPECT_EQ(said[i].cancel_token, token_);
    EXPECT_EQ(said[i].window, 100U);
    EXPECT_EQ(said[i].window_keep, 3U);
  }
  EXPECT_NE(said[0].binding, said[1].binding);
  EXPECT_EQ(rows.size(), 3U);
}

// Each call of a step on each part fails once. The queue stays fit for more, so the next step has
// the row that it has without.
TEST_F(steps, that_fail_leave_the_runner_as_it_was) {
  const auto e = cut({1});
  const auto r = open_on(e);
  const floats expected = step(*r);
  for (const std::size_t part : {0U, 1U}) {
    SCOPED_TRACE(part);
    std::size_t n = 0;
    submits fails(*cpu_.backend, [&](auto* queue, const auto* s, auto* err) {
      if (n++ == part) return fail_with(err, BITNET_OUT_OF_DEVICE_MEMORY, "no room");
      return fails.sound(queue, s, err);
    });
    const ids tokens = many(5);
    const failure why = failed_step(*r, slice(tokens));
    EXPECT_EQ(why.status, BITNET_OUT_OF_DEVICE_MEMORY);
    for (const char* words : {"backend cpu: computing a step of 5 tokens", "no room"})
      EXPECT_NE(why.message.find(words), std::string::npos) << why.message;
    EXPECT_EQ(n, part + 1) << "no part behind it was asked";
    EXPECT_EQ(&e->failed_part(), e->parts()[part].get());
    EXPECT_FALSE(r->is_hung());
    n = 9;
    EXPECT_EQ(step(*r), expected);
  }
}

// The device asks for its token while it computes, and ends early.
TEST_F(steps, that_are_cancelled_end_and_others_follow) {
  const auto r = open_on(cut({}));
  const floats expected = step(*r);
  submits asks(*cpu_.backend, [&](auto* queue, const auto* s, auto* err) {
    if (cancel_flags::is_set(s->cancel_token)) return fail_with(err, BITNET_CANCELLED, "cancelled");
    return asks.sound(queue, s, err);
  });
  flag_->store(true);
  const ids tokens = many(5);
  const failure why = failed_step(*r, slice(tokens));
  EXPECT_EQ(why.status, BITNET_CANCELLED) << why.message;
  EXPECT_FALSE(r->is_hung());
  flag_->store(false);
  EXPECT_EQ(step(*r), expected);
}

// A device computes a token or a row less than it was asked for, and says that all is well.
TEST_F(steps, that_write_nothing_are_failures) {
  const auto e = cut({1});
  const auto r = open_on(e);
  for (const std::size_t part : {0U, 1U}) {
    std::size_t n = 0;
    submits skips(*cpu_.backend, [&](auto* queue, const auto* s, auto* err) {
      bitnet_step less = *s;
      if (n++ == part) (part == 0 ? less.n_tokens : less.n_outputs) -= 1;
      return skips.sound(queue, &less, err);
    });
    const ids tokens = many(5);
    const failure why = failed_step(*r, slice(tokens));
    EXPECT_NE(why.message.find(part == 0 ? "succeeds and writes no hidden states"
                                         : "succeeds and writes no logits"),
              std::string::npos)
        << why.message;
  }
}

// A step that does not end in its time: nothing that the device may still write to is given back.
TEST_F(steps, that_hang_are_reported_and_left_behind) {
  int n_destroyed = 0;
  // Before the runner is opened, which keeps the slot that takes its queues back.
  patched<&bitnet_backend_v0::queue_destroy> watched(*cpu_.backend, [&](auto* queue) {
    ++n_destroyed;
    watched.sound(queue);
  });
  ASSERT_EQ(setenv("BITNET_STEP_TIMEOUT", "7", 1), 0);
  const auto e = cut({1});
  auto r = open_on(e);
  ASSERT_EQ(unsetenv("BITNET_STEP_TIMEOUT"), 0);
  {
    uint64_t asked = 0;
    waits hangs(*cpu_.backend, [&](auto*, auto, auto timeout, auto* err) {
      asked = timeout;
      return fail_with(err, BITNET_TIMEOUT, "not yet");
    });
    const ids tokens = many(5);
    const failure why = failed_step(*r, slice(tokens));
    EXPECT_EQ(why.status, BITNET_TIMEOUT);
    EXPECT_EQ(asked, 7'000'000'000U);
    for (const char* words : {"backend cpu: computing a step of 5 tokens: it has not ended after",
                              "a larger BITNET_STEP_TIMEOUT"})
      EXPECT_NE(why.message.find(words), std::string::npos) << why.message;
    EXPECT_TRUE(r->is_hung());
    EXPECT_EQ(&e->failed_part(), e->parts()[0].get());
  }
  r.reset();
  EXPECT_EQ(n_destroyed, 0);
}

// Blocks and states go to the parts that have their layers, under the names that these know.
TEST_F(steps, copy_what_each_part_has) {
  const auto e = cut({1, 2});  // a state; keys; both
  const auto r = open_on(e);
  std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>> said;
  patched<&bitnet_backend_v0::kv_copy> watched(
      *cpu_.backend, [&](auto* queue, auto* pool, const auto* from, const auto* to, auto n,
                         auto signal, auto* err) {
        said.push_back({{from, from + n}, {to, to + n}});
        return watched.sound(queue, pool, from, to, n, signal, err);
      });
  const uint32_t state = r->limits().n_blocks;
  const std::vector<uint32_t> from = {2, state + 1, 5}, to = {6, state + 3, 7};
  need(r->copy(from, to));
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0].first, (std::vector<uint32_t>{1 + 1})) << "a pool of one block, and states";
  EXPECT_EQ(said[0].second, (std::vector<uint32_t>{1 + 3}));
  EXPECT_EQ(said[1].first, (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(said[1].second, (std::vector<uint32_t>{6, 7}));
  EXPECT_EQ(said[2].first, from);
  EXPECT_EQ(said[2].second, to);
  said.clear();
  need(r->copy(std::span(from).first(1), std::span(to).first(1)));
  EXPECT_EQ(said.size(), 2U) << "the first part has no keys";
}

// Each place where opening a runner can fail gives back what was made before.
TEST_F(steps, runners_that_cannot_be_opened_leave_nothing) {
  const auto e = cut({1});
  int alive = 0;
  int n = 0, fails_at = 0;
  const auto now = [&](bitnet_error* err) {
    return ++n == fails_at ? fail_with(err, BITNET_OUT_OF_DEVICE_MEMORY, "at its limit")
                           : bitnet_status{BITNET_OK};
  };
  using builds = patched<&bitnet_backend_v0::program_build>;
  builds build(*cpu_.backend, [&](auto* device, const auto* request, auto** out, auto* err) {
    if (const bitnet_status s = now(err); s != BITNET_OK) return s;
    ++alive;
    return build.sound(device, request, out, err);
  });
  patched<&bitnet_backend_v0::program_destroy> unbuild(*cpu_.backend, [&](auto* p) {
    --alive;
    unbuild.sound(p);
  });
  patched<&bitnet_backend_v0::program_bind> bind(
      *cpu_.backend, [&](auto* program, const auto* request, auto** out, auto* err) {
        if (const bitnet_status s = now(err); s != BITNET_OK) return s;
        ++alive;
        return bind.sound(program, request, out, err);
      });
  patched<&bitnet_backend_v0::binding_destroy> unbind(*cpu_.backend, [&](auto* b) {
    --alive;
    unbind.sound(b);
  });
  patched<&bitnet_backend_v0::queue_create> queue(
      *cpu_.backend, [&](auto* device, const auto* request, auto** out, auto* err) {
        if (const bitnet_status s = now(err); s != BITNET_OK) return s;
        ++alive;
        return queue.sound(device, request, out, err);
      });
  patched<&bitnet_backend_v0::queue_destroy> unqueue(*cpu_.backend, [&](auto* q) {
    --alive;
    unqueue.sound(q);
  });
  for (fails_at = 1; fails_at <= 6; ++fails_at) {
    SCOPED_TRACE(fails_at);
    n = 0;
    try {
      open_on(e);
      ADD_FAILURE() << "it was opened";
    } catch (const std::runtime_error& why) {
      EXPECT_NE(std::string(why.what()).find("backend cpu"), std::string::npos) << why.what();
      EXPECT_NE(std::string(why.what()).find("at its limit"), std::string::npos) << why.what();
    }
    EXPECT_EQ(alive, 0);
  }
  n = 0;
  {
    const auto r = open_on(e);
    EXPECT_EQ(alive, 6);
    step(*r);
  }
  EXPECT_EQ(alive, 0);
}

// A step of several short contexts has more tokens than one of them.
TEST_F(steps, of_several_sequences_are_longer_than_a_context) {
  engine::session_options o = wanted();
  o.n_context = 20;
  o.n_batch = 64;
  const auto e = cut({1});
  const auto r = open_on(e, o);
  EXPECT_EQ(r->limits().max_tokens, 64U);
  const ids tokens = many(20);
  std::vector<schedule::slice> slices;
  const std::vector<uint32_t> blocks = {5, 2, 11};
  for (uint32_t i = 0; i < 3; ++i)
    slices.push_back({tokens, 0, std::span(blocks).subspan(i, 1), i, 1});
  std::vector<generate::logits_row> rows;
  need(r->run(slices, 0, rows));
  const auto alone = open(e);
  floats row(alone->row_floats());
  need(alone->eval(tokens, false, row));
  ASSERT_EQ(rows.size(), 3U);
  for (const generate::logits_row& one : rows) EXPECT_TRUE(std::ranges::equal(one.logits, row));
}

}  // namespace
}  // namespace bitnet::runner
