#pragma once
// A device of numbers: its blocks keep token ids, and a row of logits is a hash of the whole
// history of the sequence as read through its blocks. So a wrong block, position, copy, share or
// state gives other tokens; and what the scheduler promises to a runner is checked in every step.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kv/blocks.hpp"
#include "schedule/step.hpp"

namespace bitnet::schedule::testing_support {

// Time that only steps move.
struct fake_clock {
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
};

inline uint64_t mix(uint64_t h, uint64_t value) {
  h ^= value + 0x9E3779B97F4A7C15U + (h << 6U) + (h >> 2U);
  h *= 0xBF58476D1CE4E5B9U;
  return h ^ (h >> 29U);
}

// The row behind a history; of a model with a window, the tokens that the last one sees.
inline uint64_t hash_of(std::span<const int32_t> history, const step_limits& most) {
  uint64_t h = 1;
  const uint64_t n = history.size();
  for (uint64_t i = 0; i < n; ++i)
    if (most.window == 0 || i < most.window_keep || i + most.window >= n)
      h = mix(mix(h, i), static_cast<uint64_t>(history[i]));
  return h;
}

// A token that no row lets come.
inline constexpr int32_t poison = 251;

inline void fill_row(uint64_t h, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(mix(h, i) % 4096U) / 512.0F;
  out[poison] = -1000;
}

class fake_runner final : public step_runner {
 public:
  fake_runner(const step_limits& most, fake_clock& clock)
      : most_(most),
        clock_(clock),
        cells_(std::size_t{most.n_blocks} * kv::block_tokens),
        states_(most.n_states) {
    its_form.block_bytes = kv::block_tokens * sizeof(cell);
    its_form.state_bytes = most.n_states == 0 ? 0 : sizeof(state);
    its_form.facts = {{"device", "fake", "use the fake one"}};
  }

  // What a step takes: of its decodes, and of each token beside them.
  std::chrono::nanoseconds base{1000}, per_token{10};
  bool does_nothing = false;  // for what the scheduler itself costs
  std::function<std::optional<failure>(std::span<const slice>)> fails;
  std::function<std::optional<failure>()> fails_to_copy;
  std::function<std::optional<failure>()> fails_to_move;
  kv::saved_form its_form;
  int n_moves = 0;  // of blocks or states, to the host's memory or from there

  struct step_note {
    std::vector<std::pair<uint64_t, uint32_t>> parts;  // first, n tokens
    uint32_t top_logits;
  };
  std::vector<step_note> notes;
  bool keeps_notes = false;

  [[nodiscard]] const step_limits& limits() const override { return most_; }

  result<void> copy(std::span<const uint32_t> from, std::span<const uint32_t> to) override {
    EXPECT_EQ(from.size(), to.size());
    for (std::size_t i = 0; i < to.size(); ++i) {  // as of a device that copies them in any order
      EXPECT_EQ(std::ranges::count(to, to[i]), 1);
      EXPECT_EQ(std::ranges::count(from, to[i]), 0);
    }
    if (fails_to_copy)
      if (auto why = fails_to_copy()) return std::unexpected(*std::move(why));
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= most_.n_blocks)
        states_.at(to[i] - most_.n_blocks) = states_.at(from[i] - most_.n_blocks);
      else
        std::ranges::copy(block(from[i]), block(to[i]).begin());
    }
    return {};
  }

  result<void> run(std::span<const slice> slices, uint32_t top_logits,
                   std::vector<generate::logits_row>& rows) override {
    clock_.now += base;
    if (does_nothing) return give_same_row(slices, rows);
    check(slices);
    if (keeps_notes) {
      notes.push_back({{}, top_logits});
      for (const slice& s : slices) notes.back().parts.emplace_back(s.first, s.tokens.size());
    }
    uint32_t n = 0;
    for (const slice& s : slices) {
      n += static_cast<uint32_t>(s.tokens.size());
      write(s);
    }
    clock_.now += per_token * (n - static_cast<uint32_t>(slices.size()));
    if (fails)
      if (auto why = fails(slices)) {
        for (const slice& s : slices) spoil(s);
        return std::unexpected(*std::move(why));
      }
    give_rows(slices, top_logits, rows);
    return {};
  }

  [[nodiscard]] const kv::saved_form& form() const override { return its_form; }
  result<void> write_out(std::span<const uint32_t> which, pool_content what,
                         std::span<std::byte> bytes) override {
    return each_moved(which, what, bytes, [](std::span<std::byte> here, std::byte* there) {
      std::ranges::copy(here, there);
    });
  }
  result<void> read_in(std::span<const uint32_t> which, pool_content what,
                       std::span<const std::byte> bytes) override {
    return each_moved(which, what, bytes, [](std::span<std::byte> here, const std::byte* there) {
      std::copy_n(there, here.size(), here.begin());
    });
  }

 private:
  template <class Bytes, class Move>
  result<void> each_moved(std::span<const uint32_t> which, pool_content what, Bytes bytes,
                          const Move& move) {
    ++n_moves;
    if (fails_to_move)
      if (auto why = fails_to_move()) return std::unexpected(*std::move(why));
    auto* at = bytes.data();
    for (const uint32_t i : which) {
      const std::span<std::byte> here = what == pool_content::keys
                                            ? std::as_writable_bytes(block(i))
                                            : std::as_writable_bytes(std::span(&states_.at(i), 1));
      move(here, at);
      at += here.size();
    }
    EXPECT_EQ(at, bytes.data() + bytes.size());
    return {};
  }

  struct cell {
    int32_t token = -1;
    uint64_t position = UINT64_MAX;
  };
  struct state {
    uint64_t hash = 0, tokens = UINT64_MAX;
  };

  std::span<cell> block(uint32_t b) {
    return std::span(cells_).subspan(std::size_t{b} * kv::block_tokens, kv::block_tokens);
  }
  cell& at(const slice& s, uint64_t position) {
    const uint32_t b = s.blocks[position / kv::block_tokens];
    return cells_.at(std::size_t{b} * kv::block_tokens + position % kv::block_tokens);
  }
  [[nodiscard]] bool sees(uint64_t from, uint64_t position) const {
    return most_.window == 0 || position < most_.window_keep || position + most_.window > from;
  }

  // What a runner may rely on.
  void check(std::span<const slice> slices) const {
    std::size_t n_tokens = 0;
    std::size_t n_outputs = 0;
    std::map<uint32_t, std::size_t> writers;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const slice& s = slices[i];
      ASSERT_FALSE(s.tokens.empty());
      const uint64_t end = s.first + s.tokens.size();
      ASSERT_LE(end, most_.n_context);
      ASSERT_LE(s.n_outputs, s.tokens.size());
      ASSERT_GE(s.blocks.size(), kv::blocks_for(end));
      ASSERT_EQ(s.state != kv::no_block, most_.n_states != 0);
      n_tokens += s.tokens.size();
      n_outputs += s.n_outputs;
      for (uint64_t b = s.first / kv::block_tokens; b <= (end - 1) / kv::block_tokens; ++b) {
        ASSERT_LT(s.blocks[b], most_.n_blocks);
        ASSERT_TRUE(writers.emplace(s.blocks[b], i).second) << "two slices write one block";
      }
    }
    for (std::size_t i = 0; i < slices.size(); ++i)
      for (const uint32_t b : slices[i].blocks) {
        const auto writer = writers.find(b);
        ASSERT_TRUE(writer == writers.end() || writer->second == i)
            << "a slice reads what another one writes";
      }
    ASSERT_LE(n_tokens, most_.max_tokens);
    ASSERT_LE(slices.size(), most_.max_sequences);
    ASSERT_LE(n_outputs, most_.max_outputs);
  }

  void write(const slice& s) {
    for (std::size_t i = 0; i < s.tokens.size(); ++i)
      at(s, s.first + i) = {s.tokens[i], s.first + i};
    if (most_.n_states == 0) return;
    state& kept = states_.at(s.state);
    if (s.first == 0) kept = {1, 0};
    EXPECT_EQ(kept.tokens, s.first) << "the state is of another position";
    for (std::size_t i = 0; i < s.tokens.size(); ++i)
      kept.hash = mix(mix(kept.hash, s.first + i), static_cast<uint64_t>(s.tokens[i]));
    kept.tokens = s.first + s.tokens.size();
  }

  void spoil(const slice& s) {
    for (std::size_t i = 0; i < s.tokens.size(); ++i) at(s, s.first + i) = {-7, UINT64_MAX};
    if (most_.n_states != 0) states_.at(s.state) = {7, UINT64_MAX};
  }

  // Of the token before `end`, by the blocks alone; of a model with states by both, which agree.
  uint64_t history_of(const slice& s, uint64_t end) {
    uint64_t h = 1;
    for (uint64_t p = 0; p < end; ++p) {
      if (!sees(end - 1, p)) continue;
      if (s.blocks[p / kv::block_tokens] == kv::no_block) {
        ADD_FAILURE() << "position " << p << " is seen from " << end - 1 << " and has no block";
        return 0;
      }
      const cell& c = at(s, p);
      EXPECT_EQ(c.position, p) << "a block that is read was not written, or for another position";
      h = mix(mix(h, p), static_cast<uint64_t>(c.token));
    }
    if (most_.n_states != 0 && end == s.first + s.tokens.size()) {
      EXPECT_EQ(states_.at(s.state).hash, h) << "the state is wrong";
    }
    return h;
  }

  void give_rows(std::span<const slice> slices, uint32_t top_logits,
                 std::vector<generate::logits_row>& rows) {
    std::size_t n = 0;
    for (const slice& s : slices) n += s.n_outputs;
    logits_.assign(n * most_.n_vocab, 0);
    ids_.assign(n, {});
    listed_.assign(n, {});
    rows.clear();
    for (const slice& s : slices) {
      const uint64_t end = s.first + s.tokens.size();
      for (uint64_t behind = end - s.n_outputs + 1; behind <= end; ++behind) {
        const std::size_t i = rows.size();
        const auto row = std::span(logits_).subspan(i * most_.n_vocab, most_.n_vocab);
        fill_row(history_of(s, behind), row);
        if (top_logits != 0 && i % 2 == 0) list(row, top_logits, i);  // devices may list or not
        rows.push_back({row, ids_[i], listed_[i]});
      }
    }
  }

  void list(std::span<float> row, uint32_t n, std::size_t i) {
    auto& ids = ids_[i];
    ids.resize(row.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::sort(ids, {}, [&](int32_t id) { return std::pair(-row[id], id); });
    ids.resize(std::min<std::size_t>(n, ids.size()));
    for (const int32_t id : ids) listed_[i].push_back(row[id]);
    std::ranges::fill(row, -1e9F);
  }

  result<void> give_same_row(std::span<const slice> slices,
                             std::vector<generate::logits_row>& rows) {
    if (logits_.empty()) {
      logits_.resize(most_.n_vocab);
      fill_row(1, logits_);
      same_ids_ = {65, 66, 67, 68, 69};
      same_listed_ = {5, 4, 3, 2, 1};
    }
    rows.clear();
    for (const slice& s : slices)
      if (s.n_outputs != 0) rows.push_back({logits_, same_ids_, same_listed_});
    return {};
  }

  const step_limits most_;
  fake_clock& clock_;
  std::vector<cell> cells_;
  std::vector<state> states_;
  std::vector<float> logits_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<std::vector<float>> listed_;
  std::vector<int32_t> same_ids_;
  std::vector<float> same_listed_;
};

}  // namespace bitnet::schedule::testing_support
