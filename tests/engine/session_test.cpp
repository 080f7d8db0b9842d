// One session on a device of the tests' own: what it rejects, what a failure leaves of it, and how
// it goes on elsewhere when its device is lost or another one is offered.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engines.hpp"

namespace bitnet::sequence {
namespace {

using test::floats;
using test::ids;
using test::need;

class sessions : public test::engines {
 protected:
  // A model whose layers keep keys, and one of which half keep states.
  void each(const std::function<void()>& check) {
    {
      SCOPED_TRACE("keys");
      load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding()));
      check();
    }
    SCOPED_TRACE("keys and states");
    load(tests::small_hybrid());
    check();
  }
  // On the device "cpu:0", which works.
  std::shared_ptr<engine::engine> sound() { return cut({}); }
  // On "fragile:0", which is lost in the place of its step number `steps`, from 0.
  std::shared_ptr<engine::engine> lost_after(int steps) {
    host_.given = {{"steps", std::to_string(steps)}};
    const select::choice fragile = copy_of(BITNET_FRAGILE_PLUGIN, "fragile");
    host_.given.clear();
    engine::placement where;
    where.parts.push_back(need(engine::part::open(fragile, *model_)));
    where.parts.back()->take(model_->shape().whole());
    return on(std::move(where));
  }
  // Without a row.
  static result<void> feed(session& s, const ids& of) {
    return s.eval(of, false, std::span<float>());
  }
  static floats row(session& s, const ids& of) {
    floats out(s.row_floats());
    need(s.eval(of, false, out));
    return out;
  }
  // A prompt of three steps, single tokens, going back, and rows of all tokens.
  floats life_of(session& s) const {
    floats out;
    const auto note = [&](const floats& more) { out.insert(out.end(), more.begin(), more.end()); };
    note(row(s, many(70)));
    note(row(s, {5}));
    need(s.truncate(60));
    note(row(s, {6}));
    floats all(3 * s.row_floats());
    need(s.eval(many(3), true, all));
    note(all);
    return out;
  }
};

TEST_F(sessions, reject_what_they_cannot_evaluate_and_stay_as_they_were) {
  each([&] {
    const auto s = open(sound()), other = open(sound());
    floats rows(s->row_floats());
    EXPECT_EQ(s->eval({}, false, rows).error().status, BITNET_INVALID_ARGUMENT)
        << "no token has a row yet";
    EXPECT_TRUE(feed(*s, {})) << "nothing was asked for";
    EXPECT_EQ(row(*s, many(40)), row(*other, many(40)));
    const auto n_vocab = static_cast<int32_t>(model_->shape().n_vocab);
    const struct {
      ids asked;
      bool all_rows;
      bitnet_status status;
      const char* why;
    } rejected[] = {
        {many(217), false, BITNET_CONTEXT_FULL, "the context has 256 tokens"},
        {{5, -1}, false, BITNET_INVALID_ARGUMENT, "no token is below 0"},
        {{5, n_vocab}, false, BITNET_INVALID_ARGUMENT, "the first that is in no vocabulary"},
        {{5, 6}, true, BITNET_INVALID_ARGUMENT, "there is room for one row"},
    };
    for (const auto& r : rejected) {
      EXPECT_EQ(s->eval(r.asked, r.all_rows, rows).error().status, r.status) << r.why;
      EXPECT_EQ(s->tokens().size(), 40U) << r.why;
    }
    EXPECT_EQ(s->truncate(41).error().status, BITNET_INVALID_ARGUMENT);
    EXPECT_EQ(row(*s, {7}), row(*other, {7}));
    EXPECT_TRUE(feed(*s, many(215))) << "to the end of the context";
    EXPECT_EQ(s->append(5).error().status, BITNET_CONTEXT_FULL);
  });
}

TEST_F(sessions, evaluate_what_was_appended_and_the_last_token_once_more) {
  each([&] {
    const auto s = open(sound()), other = open(sound());
    need(feed(*s, many(40)));
    need(s->append(5));
    need(s->append(6));
    EXPECT_EQ(s->tokens().size(), 42U);
    ids all = many(40);
    all.insert(all.end(), {5, 6, 7});
    const floats expected = row(*other, all);
    EXPECT_EQ(row(*s, {7}), expected);
    EXPECT_EQ(row(*s, {}), expected) << "of the last token again";
    EXPECT_EQ(s->tokens().size(), 43U);
  });
}

TEST_F(sessions, go_on_elsewhere_when_the_device_is_lost) {
  each([&] {
    const floats expected = life_of(*open(sound()));
    for (int steps = 0; steps < 6; ++steps) {
      SCOPED_TRACE(std::to_string(steps));
      engine::session_options o = wanted();
      int asked = 0;
      o.on_loss = [&](const std::shared_ptr<engine::engine>& lost, const failure& why) {
        ++asked;
        EXPECT_EQ(lost->choice().device_name(), "fragile:0");
        EXPECT_EQ(why.status, BITNET_DEVICE_LOST);
        return result<std::shared_ptr<engine::engine>>(sound());
      };
      const auto s = open(lost_after(steps), o);
      EXPECT_EQ(life_of(*s), expected);
      EXPECT_EQ(asked, 1);
      ASSERT_EQ(s->n_moves(), 1U);
      EXPECT_EQ(s->moves().back().from, "fragile:0");
      EXPECT_EQ(s->moves().back().to, "cpu:0");
      EXPECT_STREQ(s->moves().back().method, "recompute");
    }
  });
}

TEST_F(sessions, try_the_next_device_when_that_one_is_lost_too) {
  each([&] {
    engine::session_options o = wanted();
    int asked = 0;
    o.on_loss = [&](const std::shared_ptr<engine::engine>&, const failure&) {
      return result<std::shared_ptr<engine::engine>>(++asked == 1 ? lost_after(1) : sound());
    };
    const auto s = open(lost_after(2), o);
    EXPECT_EQ(life_of(*s), life_of(*open(sound())));
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(s->n_moves(), 2U);
  });
}

TEST_F(sessions, fail_and_stay_as_they_were_where_there_is_no_other_device) {
  each([&] {
    engine::session_options o = wanted();
    for (const auto status : {BITNET_DEVICE_LOST, BITNET_UNAVAILABLE}) {
      if (status == BITNET_UNAVAILABLE)
        o.on_loss = [](const auto&, const failure&) -> result<std::shared_ptr<engine::engine>> {
          return fail(BITNET_UNAVAILABLE, "there is no other");
        };
      const auto s = open(lost_after(2), o);
      need(feed(*s, many(40)));
      const ids five = {5};
      floats rows(s->row_floats());
      for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(s->eval(five, false, rows).error().status, status);
        EXPECT_EQ(s->tokens().size(), 40U);
        EXPECT_EQ(s->owner().choice().device_name(), "fragile:0");
        EXPECT_EQ(s->n_moves(), 0U);
      }
    }
  });
}

TEST_F(sessions, take_the_last_offer_before_their_next_step) {
  each([&] {
    for (const auto how : {engine::moving::migrate, engine::moving::recompute}) {
      const auto s = open(sound()), other = open(sound());
      EXPECT_EQ(row(*s, many(40)), row(*other, many(40)));
      const auto before = s->headed_for(), first = sound(), second = sound();
      need(s->offer(first, how, "one"));
      EXPECT_EQ(s->headed_for(), first);
      need(s->offer(second, how, "another"));
      EXPECT_EQ(s->headed_for(), second);
      EXPECT_EQ(&s->owner(), before.get()) << "it did not evaluate yet";
      EXPECT_EQ(s->n_moves(), 0U);
      EXPECT_EQ(row(*s, {5}), row(*other, {5}));
      EXPECT_EQ(&s->owner(), second.get());
      ASSERT_EQ(s->n_moves(), 1U);
      EXPECT_EQ(s->moves().back().why, "another");
      EXPECT_STREQ(s->moves().back().method,
                   how == engine::moving::migrate ? "migrate" : "recompute");
    }
  });
}

}  // namespace
}  // namespace bitnet::sequence
