// A session's place on an engine, on devices of the test's own: its rows, the state that it keeps,
// the blocks that it takes from another place, and what it gives back.

#include "runner/session_runner.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "kv/blocks.hpp"
#include "patched_slot.hpp"

namespace bitnet::runner {
namespace {

using test::cuts;
using test::fail_with;
using test::floats;
using test::ids;
using test::need;
using test::patched;

class places : public test::hybrid_engines {
 protected:
  static std::unique_ptr<session_runner> open_on(const std::shared_ptr<engine::engine>& e,
                                                 const engine::session_options& o = wanted()) {
    return need(session_runner::open(e, o, 0));
  }
  // A turn in which it has blocks for so many tokens, and states.
  static void hold(session_runner& r, uint64_t n_tokens) {
    need(r.store().begin(r.kv(), kv::blocks_for(n_tokens), [] { return true; }));
  }
  // Rows of `of`, which come behind `first` other tokens, from row `first_output` on.
  static floats step(session_runner& r, uint64_t first, const ids& of, uint32_t first_output = 0) {
    EXPECT_TRUE(r.kv().spare.resize(r.kv().table, first + of.size()));
    floats rows((of.size() - first_output) * r.most().row_floats);
    need(r.step(first, of, first_output, {.rows = rows}));
    return rows;
  }
  [[nodiscard]] ids tokens_from(std::size_t first, std::size_t n) const {
    const ids all = many(first + n);
    return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
  }
  // Rows of many(70), of single tokens behind them, and of what comes after a step back to there.
  floats life_of(session_runner& r) const {
    hold(r, 75);
    floats out;
    const auto note = [&](const floats& more) { out.insert(out.end(), more.begin(), more.end()); };
    for (std::size_t first = 0; first < 70; first += 14)
      note(step(r, first, tokens_from(first, 14)));
    need(r.keep_state());
    note(step(r, 70, {3, 4, 5}, 1));
    need(r.restore_state());
    note(step(r, 70, {6}));
    r.store().end(r.kv());
    return out;
  }
};

// The reference is a session of the same model, which evaluates each prefix from its begin.
TEST_F(places, give_the_rows_of_their_tokens_and_go_back_to_a_kept_state) {
  for (const cuts& at : {cuts{}, cuts{1}, cuts{2, 3}}) {
    SCOPED_TRACE(testing::PrintToString(at));
    const auto r = open_on(cut(at));
    const floats got = life_of(*r);
    const auto s = open(cut({}));
    const std::size_t width = s->row_floats();
    floats expected(70 * width);
    need(s->eval(many(70), true, expected));
    const auto expect_rows = [&](std::size_t row, std::span<const float> want) {
      EXPECT_TRUE(std::ranges::equal(std::span(got).subspan(row * width, want.size()), want))
          << "from row " << row;
    };
    expect_rows(0, expected);
    ids behind = many(70);
    behind.insert(behind.end(), {3, 4, 5});
    floats rows(behind.size() * width);
    need(s->truncate(0));
    need(s->eval(behind, true, rows));
    expect_rows(70, std::span(rows).subspan(71 * width));
    behind.resize(70);
    behind.push_back(6);
    rows.resize(width);
    need(s->truncate(0));
    need(s->eval(behind, false, rows));
    expect_rows(72, rows);
  }
}

TEST_F(places, take_blocks_and_states_from_another_place) {
  for (const auto& [from, to] : {std::pair<cuts, cuts>{{}, {}}, {{}, {1}}, {{1}, {2, 3}}}) {
    SCOPED_TRACE(testing::PrintToString(from) + " to " + testing::PrintToString(to));
    const auto a = open_on(cut(from)), b = open_on(cut(to));
    for (const auto& r : {a.get(), b.get()}) hold(*r, 140);
    for (std::size_t first = 0; first < 130; first += 26)
      step(*a, first, tokens_from(first, 26), 26);
    need(b->copy_blocks(*a));
    EXPECT_EQ(b->kv().table.size(), 3U);
    EXPECT_EQ(step(*b, 130, {9}), step(*a, 130, {9}));
  }
}

TEST_F(places, reject_what_does_not_fit_and_pass_failures_on) {
  const auto a = open_on(cut({}));
  engine::session_options small = wanted();
  small.n_context = 64;
  const auto b = open_on(cut({}), small);
  hold(*a, 140);
  hold(*b, 64);
  for (std::size_t first = 0; first < 96; first += 32) step(*a, first, tokens_from(first, 32), 32);
  const auto full = b->copy_blocks(*a);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().status, BITNET_OUT_OF_MEMORY);
  EXPECT_TRUE(b->kv().table.empty());
  const auto c = open_on(cut({}));
  hold(*c, 140);
  const auto broken = [](auto&&... all) {
    return fail_with(std::get<sizeof...(all) - 1>(std::tie(all...)), BITNET_INTERNAL, "no copy");
  };
  {
    const patched<&bitnet_backend_v0::kv_export> fails(*cpu_.backend, broken);
    EXPECT_EQ(c->copy_blocks(*a).error().status, BITNET_INTERNAL);
  }
  c->kv().spare.resize(c->kv().table, 0);
  {
    const patched<&bitnet_backend_v0::kv_import> fails(*cpu_.backend, broken);
    const auto ok = c->copy_blocks(*a);
    ASSERT_FALSE(ok);
    EXPECT_NE(ok.error().message.find("reading KV in"), std::string::npos) << ok.error().message;
  }
  {
    const patched<&bitnet_backend_v0::kv_copy> fails(*cpu_.backend, broken);
    EXPECT_FALSE(a->keep_state());
    EXPECT_FALSE(a->restore_state());
  }
  EXPECT_TRUE(a->keep_state());
}

TEST_F(places, ask_for_types_and_windows_that_their_devices_have) {
  const auto message_of = [&](const engine::session_options& o) -> std::string {
    const auto made = session_runner::open(cut({1}), o, 0);
    return made ? "opened" : made.error().message;
  };
  cpu_.device.kv_dtypes = 1U << BITNET_DTYPE_F16;
  engine::session_options types = wanted();
  types.dtype_k = BITNET_DTYPE_Q8_0;
  EXPECT_NE(message_of(types).find("backend cpu"), std::string::npos) << message_of(types);
  EXPECT_NE(message_of(types).find("use kv_k f16"), std::string::npos) << message_of(types);
  cpu_.device.attention_flags = 0;
  engine::session_options window = wanted();
  window.window = 20;
  EXPECT_NE(message_of(window).find("leave window 0"), std::string::npos) << message_of(window);
  EXPECT_EQ(message_of(wanted()), "opened");
}

// Sessions that share a budget share a pool, whose blocks come back when a place goes.
TEST_F(places, share_a_budget_and_give_back_what_they_had) {
  const engine::limits one = need(engine::limits_of(model_->shape(), wanted(), UINT32_MAX, 0));
  const engine::kv_budget budget{.bytes = 2 * (one.states_bytes + 2 * one.block_bytes)};
  const auto e = cut({1}, budget);
  engine::session_options o = wanted();
  o.n_context = 128;
  auto a = open_on(e, o);
  const auto b = open_on(e, o);
  EXPECT_EQ(&a->store(), &b->store());
  hold(*a, 128);
  hold(*b, 128);
  engine::session_options longer = wanted();
  longer.n_context = 512;
  const auto rejected = session_runner::open(e, longer, 0);
  ASSERT_FALSE(rejected) << "the budget has no room for its context";
  EXPECT_EQ(rejected.error().status, BITNET_OUT_OF_MEMORY);
  const auto stopped = open_on(e, o);
  EXPECT_EQ(stopped->store().begin(stopped->kv(), 2, [] { return true; }).error().status,
            BITNET_CANCELLED)
      << "all blocks are in use";
  a.reset();
  EXPECT_TRUE(stopped->store().begin(stopped->kv(), 2, [] { return true; }));
}

// A step that hangs may still write: its blocks go to no other session.
TEST_F(places, that_hang_keep_their_blocks_from_others) {
  const engine::limits one = need(engine::limits_of(model_->shape(), wanted(), UINT32_MAX, 0));
  const engine::kv_budget budget{.bytes = 2 * (one.states_bytes + 2 * one.block_bytes)};
  const auto e = cut({}, budget);
  engine::session_options o = wanted();
  o.n_context = 128;
  auto a = open_on(e, o);
  const auto b = open_on(e, o), c = open_on(e, o);
  hold(*a, 128);
  {
    const patched<&bitnet_backend_v0::queue_wait> hangs(
        *cpu_.backend,
        [](auto*, auto, auto, auto* err) { return fail_with(err, BITNET_TIMEOUT, "not yet"); });
    EXPECT_TRUE(a->kv().spare.resize(a->kv().table, 5));
    floats row(a->most().row_floats);
    EXPECT_EQ(a->step(0, many(5), 4, {.rows = row}).error().status, BITNET_TIMEOUT);
  }
  a.reset();
  hold(*b, 128);
  EXPECT_EQ(c->store().begin(c->kv(), 2, [] { return true; }).error().status, BITNET_CANCELLED);
}

}  // namespace
}  // namespace bitnet::runner
