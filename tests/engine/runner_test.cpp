// A model_runner with many sequences: each row has the bits that its sequence has alone, whatever
// else is in the step, however its tokens are cut into steps, and whatever blocks it has.

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

#include "engines.hpp"
#include "runner/model_runner.hpp"

namespace bitnet::runner {
namespace {

using test::cuts;
using test::engines;
using test::floats;
using test::ids;
using test::need;

constexpr uint32_t n_sequences = 33;  // more than any kernel takes together
constexpr uint32_t blocks_each = 2;

class runner : public engines {
 protected:
  std::unique_ptr<model_runner> open_runner(const std::shared_ptr<engine::engine>& e,
                                            uint32_t most_sequences = n_sequences) {
    const engine::session_options o = wanted();
    const engine::limits most = need(engine::limits_of(model_->shape(), o, UINT32_MAX, 0));
    bitnet_kv_config kv = engine::pool_of(model_->shape(), o, most, 0);
    kv.n_blocks = n_sequences * blocks_each;
    if (kv.n_states != 0) kv.n_states = n_sequences + 1;
    std::shared_ptr<const engine::kv_pools> pools;
    {
      const std::lock_guard device_lock(e->device_mutex());
      pools = need(engine::kv_pools::make(*e, kv));
    }
    return need(model_runner::open(e, o, most, most_sequences, std::move(pools), 0));
  }

  struct sequence {
    ids tokens;
    floats rows;  // of all of them, alone
    std::vector<uint32_t> blocks;
    uint32_t state = kv::no_block;
    std::size_t done = 0;
  };
  // With blocks and states in no order.
  std::vector<sequence> make_sequences(const std::shared_ptr<engine::engine>& e, bool with_states) {
    std::vector<uint32_t> blocks(n_sequences * blocks_each);
    std::iota(blocks.begin(), blocks.end(), 0U);
    std::ranges::shuffle(blocks, random_);
    const auto alone = open(e);
    std::vector<sequence> out(n_sequences);
    for (uint32_t i = 0; i < n_sequences; ++i) {
      sequence& s = out[i];
      const std::size_t n = 1 + (i * 29) % 90;
      for (std::size_t k = 0; k < n; ++k)
        s.tokens.push_back(static_cast<int32_t>((i * 31 + k * 7 + 3) % model_->shape().n_vocab));
      s.rows.resize(n * alone->row_floats());
      need(alone->truncate(0));
      need(alone->eval(s.tokens, true, s.rows));
      s.blocks.assign(blocks.begin() + i * blocks_each, blocks.begin() + (i + 1) * blocks_each);
      if (with_states) s.state = n_sequences - i;
    }
    return out;
  }

  // A step of some of those that have tokens left. False when none has.
  bool step(model_runner& r, std::vector<sequence>& all) {
    std::vector<schedule::slice> slices;
    std::vector<std::pair<sequence*, std::size_t>> wanted_rows;  // and which token
    uint32_t tokens_left = r.limits().max_tokens, outputs_left = r.limits().max_outputs;
    bool any = false;
    for (sequence& s : all) {
      const std::size_t left = s.tokens.size() - s.done;
      any = any || left != 0;
      if (left == 0 || tokens_left == 0 || random_() % 4 == 0) continue;
      const auto n = static_cast<uint32_t>(
          std::min<std::size_t>({left, tokens_left, random_() % 3 == 0 ? 20U : 1U}));
      const uint32_t n_outputs = std::min(outputs_left, static_cast<uint32_t>(random_() % (n + 1)));
      slices.push_back(
          {std::span(s.tokens).subspan(s.done, n), s.done, s.blocks, s.state, n_outputs});
      for (std::size_t k = s.done + n - n_outputs; k < s.done + n; ++k)
        wanted_rows.emplace_back(&s, k);
      s.done += n;
      tokens_left -= n;
      outputs_left -= n_outputs;
    }
    if (slices.empty()) return any;
    std::vector<generate::logits_row> rows;
    need(r.run(slices, 0, rows));
    EXPECT_EQ(rows.size(), wanted_rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& [s, k] = wanted_rows[i];
      const std::size_t width = rows[i].logits.size();
      EXPECT_TRUE(std::ranges::equal(rows[i].logits, std::span(s->rows).subspan(k * width, width)))
          << "sequence " << s - all.data() << ", token " << k << ", of " << slices.size();
    }
    return true;
  }

  // check(engine's runner, its sequences), for each model as a whole and in two parts.
  template <class Check>
  void each_runner(const Check& check) {
    each_model([&] {
      for (const cuts& at : {cuts{}, cuts{1}}) {
        SCOPED_TRACE(testing::PrintToString(at));
        const auto e = cut(at);
        const auto r = open_runner(e);
        auto all = make_sequences(e, r->limits().n_states != 0);
        check(*r, all);
      }
    });
  }

  // A sequence computes a block, move(runner, it, another) moves that to the other one, and the
  // other one has the same row next.
  template <class Move>
  void goes_on_elsewhere(const Move& move) {
    each_runner([&](model_runner& r, std::vector<sequence>& all) {
      sequence& parent =
          *std::ranges::max_element(all, {}, [](auto& s) { return s.tokens.size(); });
      ASSERT_GT(parent.tokens.size(), 64U);
      std::vector<generate::logits_row> rows;
      for (std::size_t first = 0; first < 64; first += 32) {
        const schedule::slice part{std::span(parent.tokens).subspan(first, 32), first,
                                   parent.blocks, parent.state, 0};
        need(r.run({&part, 1}, 0, rows));
      }
      sequence child = parent;
      const sequence& giver = &parent == &all[0] ? all[1] : all[0];
      child.blocks = giver.blocks;
      if (parent.state != kv::no_block) child.state = giver.state;
      move(r, parent, child);
      const schedule::slice next{std::span(child.tokens).subspan(64, 1), 64, child.blocks,
                                 child.state, 1};
      need(r.run({&next, 1}, 0, rows));
      ASSERT_EQ(rows.size(), 1U);
      const std::size_t width = rows[0].logits.size();
      EXPECT_TRUE(
          std::ranges::equal(rows[0].logits, std::span(child.rows).subspan(64 * width, width)));
    });
  }

  std::mt19937 random_{20261127};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same course each time
};

TEST_F(runner, gives_each_of_many_the_bits_that_it_has_alone) {
  each_runner([&](model_runner& r, std::vector<sequence>& all) {
    while (step(r, all) && !HasFailure()) {
    }
  });
}

// What the plugin was asked to prepare: tokens, outputs, sequences.
using prepared = std::array<uint32_t, 3>;
std::vector<prepared> asked_for;
decltype(bitnet_backend_v0::binding_prepare) sound_prepare;

// The slot of the plugin, with a note of each call, for as long as this lives.
class watched_prepare {
 public:
  explicit watched_prepare(const plugin::backend& of)
      : table_(const_cast<bitnet_backend_v0&>(of.table())) {
    asked_for.clear();
    sound_prepare = std::exchange(
        table_.binding_prepare,
        [](bitnet_binding* b, const bitnet_prepare_request* r, bitnet_error* e) -> bitnet_status {
          asked_for.push_back({r->n_tokens, r->n_outputs, r->n_sequences});
          return sound_prepare(b, r, e);
        });
  }
  ~watched_prepare() { table_.binding_prepare = sound_prepare; }
  watched_prepare(const watched_prepare&) = delete;
  watched_prepare& operator=(const watched_prepare&) = delete;

 private:
  bitnet_backend_v0& table_;
};

// So that the first request does not wait for what a plugin compiles for a size of step.
TEST_F(runner, prepares_the_steps_of_decoding) {
  load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding()));
  const struct {
    uint32_t most_sequences;
    std::vector<prepared> of_head;
    const char* why;
  } rows[] = {
      {1, {{1, 1, 1}}, "a session decodes one token at a time"},
      {3, {{1, 1, 1}, {2, 2, 2}, {4, 4, 3}}, "up to the power of two behind the most sequences"},
      {8, {{1, 1, 1}, {2, 2, 2}, {4, 4, 4}, {8, 8, 8}}, "a power of two is the last"},
      {33,
       {{1, 1, 1}, {2, 2, 2}, {4, 4, 4}, {8, 8, 8}, {16, 16, 16}, {32, 32, 32}},
       "a batch of 32 tokens is the largest step"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const auto e = cut({1});
    const watched_prepare watched(*cpu_.backend);
    const auto r = open_runner(e, row.most_sequences);
    std::vector<prepared> wanted;  // of the part without the head, then of that with it
    for (auto [tokens, outputs, sequences] : row.of_head) wanted.push_back({tokens, 0, sequences});
    wanted.insert(wanted.end(), row.of_head.begin(), row.of_head.end());
    EXPECT_EQ(asked_for, wanted);
  }
}

// A block, and a state, that was copied is as good as the one that was computed.
TEST_F(runner, copies_blocks_and_states_of_all_parts) {
  goes_on_elsewhere([](model_runner& r, const sequence& parent, const sequence& child) {
    std::vector<uint32_t> from = {parent.blocks[0]}, to = {child.blocks[0]};
    if (parent.state != kv::no_block) {
      from.push_back(r.limits().n_blocks + parent.state);
      to.push_back(r.limits().n_blocks + child.state);
    }
    need(r.copy(from, to));
  });
}

// So is one that went through the host's memory, as a saved sequence does.
TEST_F(runner, writes_out_and_reads_in_blocks_and_states_of_all_parts) {
  goes_on_elsewhere([&](model_runner& r, const sequence& parent, const sequence& child) {
    const std::array from = {parent.blocks[1], parent.blocks[0]};
    const std::array to = {child.blocks[1], child.blocks[0]};
    std::vector<std::byte> keys(from.size() * r.block_bytes());
    need(r.write_out(from, schedule::pool_content::keys, keys));
    need(r.read_in(to, schedule::pool_content::keys, keys));
    if (parent.state == kv::no_block) return;
    std::vector<std::byte> state(model_->shape().state_elements() * sizeof(float));
    need(r.write_out({&parent.state, 1}, schedule::pool_content::states, state));
    need(r.read_in({&child.state, 1}, schedule::pool_content::states, state));
  });
}

TEST_F(runner, lists_the_largest_logits_of_each_row) {
  each_model([&] {
    const auto e = cut({});
    const auto r = open_runner(e);
    auto all = make_sequences(e, r->limits().n_states != 0);
    std::vector<schedule::slice> slices;
    for (sequence& s : all) {
      const auto n = std::min<uint32_t>(1, static_cast<uint32_t>(s.tokens.size()));
      slices.push_back({std::span(s.tokens).first(n), 0, s.blocks, s.state, 1});
      if (slices.size() == r->limits().max_tokens) break;
    }
    std::vector<generate::logits_row> rows;
    need(r->run(slices, 3, rows));
    ASSERT_EQ(rows.size(), slices.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t width = rows[i].logits.size();
      const auto whole = std::span(all[i].rows).first(width);
      const auto best = std::ranges::max_element(whole) - whole.begin();
      if (rows[i].ids.empty()) {
        EXPECT_EQ(rows[i].logits[static_cast<std::size_t>(best)], *std::ranges::max_element(whole));
        continue;
      }
      EXPECT_GE(rows[i].ids.size(), 3U);
      const auto at = std::ranges::find(rows[i].ids, static_cast<int32_t>(best));
      ASSERT_NE(at, rows[i].ids.end());
      EXPECT_EQ(rows[i].listed[static_cast<std::size_t>(at - rows[i].ids.begin())],
                whole[static_cast<std::size_t>(best)]);
    }
  });
}

TEST_F(runner, rejects_a_step_beyond_its_limits) {
  load(tests::small_hybrid());
  const auto e = cut({});
  const auto r = open_runner(e, 2);
  const ids tokens = many(40);
  const std::vector<uint32_t> blocks = {0, 1};
  const auto slice = [&](std::size_t n, uint64_t first, uint32_t n_outputs, uint32_t state) {
    return schedule::slice{std::span(tokens).first(n), first, blocks, state, n_outputs};
  };
  const std::pair<const char*, std::vector<schedule::slice>> rows[] = {
      {"nothing", {}},
      {"too many sequences", {slice(1, 0, 1, 0), slice(1, 0, 1, 1), slice(1, 0, 1, 2)}},
      {"too many tokens", {slice(33, 0, 1, 0)}},
      {"no token", {slice(0, 0, 0, 0)}},
      {"more outputs than tokens", {slice(2, 0, 3, 0)}},
      {"behind its blocks", {slice(3, 126, 1, 0)}}};
  std::vector<generate::logits_row> out;
  for (const auto& [what, slices] : rows) {
    const auto ran = r->run(slices, 0, out);
    ASSERT_FALSE(ran) << what;
    EXPECT_EQ(ran.error().status, BITNET_INTERNAL) << what;
    EXPECT_NE(ran.error().message.find("is not within 2, 32"), std::string::npos)
        << what << ": " << ran.error().message;
  }
  const auto good = slice(3, 0, 1, 0);
  EXPECT_TRUE(r->run({&good, 1}, 0, out));
}

}  // namespace
}  // namespace bitnet::runner
