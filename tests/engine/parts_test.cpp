// A model that is cut into parts gives what the whole gives: the same bits where the arithmetic is
// the same, whatever a session does. The parts are on one backend, or on two copies of it, of which
// one pretends to be a device with little memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "engines.hpp"
#include "sequence/embedding.hpp"

namespace bitnet::test {
namespace {

class parts : public engines {
 protected:
  // Every single cut, one into three, and one at every border.
  [[nodiscard]] std::vector<cuts> all_cuts() const {
    std::vector<cuts> out;
    for (uint32_t n = 0; n < n_layers(); ++n) out.push_back({n});
    cuts every(n_layers());
    std::iota(every.begin(), every.end(), 0U);
    out.push_back(every);
    if (n_layers() > 2) out.push_back({1, 2});
    return out;
  }

  static floats rows(sequence::session& s, const ids& of, bool all = false) {
    floats out((all ? of.size() : 1) * s.row_floats());
    need(s.eval(of, all, out));
    return out;
  }
  // Prompts in steps of several sizes, single tokens, and going back.
  floats life_of(sequence::session& s) const {
    floats out;
    const auto note = [&](const floats& more) { out.insert(out.end(), more.begin(), more.end()); };
    note(rows(s, many(70)));
    for (int32_t i = 0; i < 4; ++i) note(rows(s, {5 + i}));
    note(rows(s, many(9), true));
    need(s.truncate(s.tokens().size() - 3));  // to where a state was kept, and on from there
    note(rows(s, {4}));
    need(s.truncate(40));
    note(rows(s, {6}));
    note(rows(s, many(3), true));
    need(s.truncate(0));
    note(rows(s, many(5)));
    return out;
  }
};

TEST_F(parts, give_the_bits_of_the_whole) {
  each_model([&] {
    const floats whole = life_of(*open(cut({})));
    EXPECT_TRUE(std::ranges::any_of(whole, [&](float x) { return x != whole[0]; }));
    for (const cuts& at : all_cuts()) {
      SCOPED_TRACE(testing::PrintToString(at));
      EXPECT_EQ(life_of(*open(cut(at))), whole);
    }
  });
}

TEST_F(parts, share_a_window) {
  engine::session_options o = wanted();
  o.window = 20;
  o.window_keep = 3;
  each_model([&] {
    const floats whole = life_of(*open(cut({}), o));
    EXPECT_NE(whole, life_of(*open(cut({})))) << "the window is seen";
    for (const cuts& at : all_cuts())
      EXPECT_EQ(life_of(*open(cut(at), o)), whole) << testing::PrintToString(at);
  });
}

TEST_F(parts, give_the_same_embeddings) {
  engine::session_options o = wanted();
  o.embeddings = true;
  each_model([&] {
    const auto vector = [&](const cuts& at) {
      const auto s = open(cut(at), o);
      floats out(s->row_floats());
      need(sequence::embed(*s, many(50), sequence::pooling::mean, out));
      return out;
    };
    const floats whole = vector({});
    for (const cuts& at : all_cuts()) EXPECT_EQ(vector(at), whole) << testing::PrintToString(at);
  });
}

TEST_F(parts, share_a_budget_and_evict_together) {
  each_model([&] {
    // For one session with its states and three blocks, which two cannot have at a time.
    const model::hyperparameters& h = model_->shape();
    const engine::limits one = need(engine::limits_of(h, wanted(), UINT32_MAX, 0));
    const engine::kv_budget budget{.bytes = one.states_bytes + 3 * one.block_bytes};
    engine::session_options o = wanted();
    o.n_context = 128;
    const auto lives = [&](const cuts& at) {
      const auto e = cut(at, budget);
      const auto a = open(e, o), b = open(e, o);
      floats out = rows(*a, many(70));
      for (sequence::session* s : {b.get(), a.get(), b.get()}) {
        const floats more = rows(*s, many(5));
        out.insert(out.end(), more.begin(), more.end());
      }
      const floats more = rows(*b, many(80));
      out.insert(out.end(), more.begin(), more.end());
      EXPECT_GT(need(a->report()).evictions, 0U);
      return out;
    };
    const floats whole = lives({});
    for (const cuts& at : all_cuts()) EXPECT_EQ(lives(at), whole) << testing::PrintToString(at);
  });
}

TEST_F(parts, take_keys_and_states_to_other_cuts) {
  each_model([&] {
    const auto moved = [&](const cuts& from, const cuts& to) {
      const auto s = open(cut(from));
      floats out = rows(*s, many(70));
      if (from != to) {
        need(s->move(cut(to), engine::moving::migrate, "a test"));
        EXPECT_STREQ(s->moves().back().method, "migrate");
      }
      for (int32_t i = 0; i < 3; ++i) {
        const floats more = rows(*s, {5 + i});
        out.insert(out.end(), more.begin(), more.end());
      }
      return out;
    };
    const floats whole = moved({}, {});
    const cuts last{n_layers() - 1}, every = all_cuts()[n_layers()];
    for (const auto& [from, to] : {std::pair<cuts, cuts>{{}, {1}},
                                   {{1}, {}},
                                   {{1}, last},
                                   {last, {0}},
                                   {every, {1}},
                                   {{0}, every}}) {
      if (from == to) continue;
      SCOPED_TRACE(testing::PrintToString(from) + " to " + testing::PrintToString(to));
      EXPECT_EQ(moved(from, to), whole);
    }
  });
}

TEST_F(parts, say_what_each_device_has) {
  each_model([&] {
    const auto whole = cut({});
    uint64_t file = 0;
    for (const model::weight& w : model_->weights()) file += w.data_bytes;
    const engine::part::uploaded& all = whole->main().has();
    EXPECT_EQ(all.all(), file);
    EXPECT_EQ(all.layers.size(), n_layers());
    const bool tied = model_->output() == model_->token_embedding();
    const uint64_t twice = tied ? all.embedding : 0;
    for (const cuts& at : all_cuts()) {
      SCOPED_TRACE(testing::PrintToString(at));
      const auto e = cut(at);
      uint64_t sum = 0;
      std::vector<uint64_t> layers;
      for (const auto& p : e->parts()) {
        sum += p->has().all();
        EXPECT_EQ(p->has().all(), p->weight_bytes());
        EXPECT_EQ(p->has().layers.size(), p->what().last - p->what().first);
        layers.insert(layers.end(), p->has().layers.begin(), p->has().layers.end());
      }
      EXPECT_EQ(sum, file + twice) << "each weight is uploaded once, but a tied embedding";
      EXPECT_EQ(layers, all.layers);
    }
  });
}

// ---- what fits ----------------------------------------------------------------------------------

class fitting : public parts {
 protected:
  void SetUp() override {
    parts::SetUp();
    // Another copy, so that it is another device.
    gpu_ = copy_of(BITNET_CPU_PLUGIN, "cpu");
    gpu_.device.device_class = BITNET_DEVICE_GPU;
    load(tests::small_hybrid());
  }
  void has(uint64_t bytes) { gpu_.device.memory_total_bytes = bytes; }
  result<engine::placement> split_as(engine::split_options how) {
    log_.clear();
    how.planned = wanted();
    return engine::split(gpu_, *model_, how, {}, false, keeper_);
  }
  // What the device needs for the last n layers; more than there are: the whole.
  uint64_t needs(uint32_t n) {
    engine::split_options how;
    how.n_layers = n;
    has(UINT64_MAX);
    const engine::placement where = need(split_as(how));
    const engine::limits most = need(engine::limits_of(model_->shape(), wanted(), UINT32_MAX, 0));
    return need(where.parts.back()->needs(wanted(), most,
                                          engine::pool_of(model_->shape(), wanted(), most, 0)))
        .all();
  }
  // "0 1-4": where the parts' layers begin and end, the last one on the device.
  static std::string layers_of(const engine::placement& where) {
    std::string out;
    for (const auto& p : where.parts)
      out += fmt::format("{}{}-{}", out.empty() ? "" : " ", p->what().first, p->what().last);
    return out;
  }

  select::choice gpu_;
  std::string log_;
  engine::split_access keeper_{
      .cpu = [this]() -> result<select::choice> { return cpu_; },
      .of_backend = [this](uint32_t i) -> result<select::choice> {
        if (i > 2) return fail(BITNET_UNAVAILABLE, "there is none");
        select::choice c = gpu_;
        return c;
      },
      .log = [this](uint32_t, const std::string& text) { log_ += text + "\n"; }};
};

TEST_F(fitting, auto_takes_as_many_layers_as_there_is_room_for) {
  std::vector<uint64_t> needed;  // by layers
  for (uint32_t n = 0; n <= n_layers() + 1; ++n) needed.push_back(n == 0 ? 0 : needs(n));
  EXPECT_TRUE(std::ranges::is_sorted(needed));
  EXPECT_LT(needed[1], needed[2]);
  EXPECT_LT(needed[2], needed[3]);
  has(needed[n_layers() + 1]);
  EXPECT_EQ(layers_of(need(split_as({}))), "0-4");
  EXPECT_EQ(log_, "") << "nothing is said of what fits";
  for (uint32_t n = n_layers(); n > 0; --n) {
    if (needed[n] == needed[n + 1]) continue;  // one more has room, too
    for (const uint64_t room : {needed[n], needed[n + 1] - 1}) {
      has(room);
      const engine::placement where = need(split_as({}));
      EXPECT_EQ(layers_of(where), fmt::format("0-{} {}-4", n_layers() - n, n_layers() - n));
      EXPECT_EQ(where.main, 1U);
      const uint64_t lacks = needed[n_layers() + 1] - room;
      EXPECT_NE(log_.find(fmt::format("needs {} bytes", needed[n_layers() + 1])), log_.npos);
      EXPECT_NE(log_.find(fmt::format("{} are missing; so {} of 4 layers are there", lacks, n)),
                log_.npos)
          << log_;
    }
  }
  has(needed[1] - 1);
  const auto none = split_as({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_NE(none.error().message.find("and has " + std::to_string(needed[1] - 1) +
                                      " free: 1 are missing; not even its last layer does"),
            std::string::npos)
      << none.error().message;
  keeper_.may_leave = true;
  EXPECT_EQ(layers_of(need(split_as({}))), "0-4");
  EXPECT_NE(log_.find("not one layer fits"), log_.npos) << log_;
}

TEST_F(fitting, what_was_asked_for_and_does_not_fit_is_rejected_with_the_bytes) {
  struct {
    const char* why;
    engine::split_options how;
    uint32_t layers;  // that are to fit
  } rows[] = {{"all", {.n_layers = UINT32_MAX}, 5},
              {"a number", {.n_layers = 2}, 2},
              {"all but the embedding", {.n_layers = 4}, 4},
              {"no split", {.whole_only = true}, 5}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const uint64_t needed = needs(row.layers);
    has(needed);
    EXPECT_TRUE(split_as(row.how));
    has(needed - 3);
    const auto made = split_as(row.how);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().status, BITNET_OUT_OF_DEVICE_MEMORY);
    for (const std::string& text :
         {fmt::format("needs {} bytes", needed), fmt::format("has {} free", needed - 3),
          std::string(": 3 are missing; use")})
      EXPECT_NE(made.error().message.find(text), std::string::npos) << made.error().message;
  }
}

TEST_F(fitting, a_number_of_layers_is_taken_at_its_word) {
  has(0);  // not reported
  const std::pair<uint32_t, const char*> rows[] = {{0, "0-4"},     {1, "0-3 3-4"}, {3, "0-1 1-4"},
                                                   {4, "0-0 0-4"}, {5, "0-4"},     {99, "0-4"}};
  for (const auto& [n, layers] : rows)
    EXPECT_EQ(layers_of(need(split_as({.n_layers = n}))), layers) << n;
  EXPECT_EQ(need(split_as({.n_layers = 0})).parts[0]->choice().backend, cpu_.backend);
  keeper_.is_required = true;
  EXPECT_FALSE(split_as({.n_layers = 0}));
  keeper_.cpu = [this]() -> result<select::choice> { return gpu_; };
  EXPECT_EQ(layers_of(need(split_as({.n_layers = 2}))), "0-4") << "one device is not cut";
  EXPECT_NE(log_.find("cuts nothing"), log_.npos) << log_;
  keeper_.cpu = []() -> result<select::choice> { return fail(BITNET_UNAVAILABLE, "no cpu"); };
  EXPECT_FALSE(split_as({.n_layers = 2}));
}

TEST_F(fitting, shares_cut_layers_over_devices) {
  has(0);
  const std::tuple<engine::split_options, const char*> rows[] = {
      {{.shares = {1, 1}}, "0-2 2-4"},
      {{.shares = {3, 1}}, "0-3 3-4"},
      {{.shares = {0, 5}}, "0-4"},
      {{.shares = {1, 1, 1}}, "0-1 1-3 3-4"},
      {{.shares = {1000, 1}}, "0-4"},
      {{.n_layers = 2, .shares = {1, 1}}, "0-2 2-3 3-4"},
      {{.n_layers = 4, .shares = {1, 1}}, "0-0 0-2 2-4"}};
  const floats whole = life_of(*open(cut({})));
  for (const auto& [how, layers] : rows) {
    engine::placement where = need(split_as(how));
    EXPECT_EQ(layers_of(where), layers);
    EXPECT_EQ(life_of(*open(on(std::move(where)))), whole);
  }
  EXPECT_FALSE(split_as({.shares = {1, 1, 1, 1}})) << "there are three devices";
}

TEST_F(fitting, shares_that_mean_nothing_are_rejected) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rows[] = {
      {0, 0}, {0}, {nan}, {1, nan}, {-1, 2}, {inf}, std::vector<float>(65, 1.0F)};
  for (const auto& shares : rows) EXPECT_FALSE(engine::check_shares(shares));
  EXPECT_TRUE(engine::check_shares({}));
  EXPECT_TRUE(engine::check_shares({3e38F, 3e38F})) << "their sum is a double";
  EXPECT_EQ(engine::share_out(0, 4, {3e38F, 3e38F}), (std::vector<uint32_t>{0, 2, 4}));
}

}  // namespace
}  // namespace bitnet::test
