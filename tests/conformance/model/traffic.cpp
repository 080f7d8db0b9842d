#include "model/traffic.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::conformance {

uint32_t planned_step::n_tokens() const {
  uint32_t n = 0;
  for (const slice& s : slices) n += static_cast<uint32_t>(s.tokens.size());
  return n;
}

traffic::traffic(const traffic_options& options)
    : options_(options), random_(options.seed), owners_(options.n_blocks, 0) {
  for (uint32_t b = 0; b < options.n_blocks; ++b) free_blocks_.push_back(b);
  // Two states more than sequences in a step: their places differ from the rows.
  for (uint32_t s = 0; s < options.max_sequences + 2; ++s) free_states_.push_back(s);
  std::ranges::shuffle(free_blocks_, random_);
  std::ranges::shuffle(free_states_, random_);
}

uint32_t traffic::take_block() {
  const uint32_t at = below(static_cast<uint32_t>(free_blocks_.size()));
  std::swap(free_blocks_[at], free_blocks_.back());
  const uint32_t b = free_blocks_.back();
  free_blocks_.pop_back();
  owners_[b] = 1;
  return b;
}

void traffic::end_some() {
  for (std::size_t i = 0; i < live_.size();) {
    const bool full = live_[i].length == most_tokens();
    if (!full && !one_in(16)) {
      ++i;
      continue;
    }
    for (const uint32_t b : live_[i].blocks)
      if (--owners_[b] == 0) free_blocks_.push_back(b);
    free_states_.push_back(live_[i].state);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Whole blocks are shared; the last one, which both go on writing, is copied.
void traffic::fork(const sequence& parent, sequence& child, planned_step& to) {
  const uint32_t whole = parent.length / options_.block_tokens;
  child.length = parent.length;
  child.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + whole);
  for (const uint32_t b : child.blocks) ++owners_[b];
  if (parent.length % options_.block_tokens != 0) {
    child.blocks.push_back(take_block());
    to.blocks.push_back({parent.blocks[whole], child.blocks.back()});
  }
  to.states.push_back({parent.state, child.state});
  histories_.back() = histories_[parent.id];
}

void traffic::begin_some(planned_step& to) {
  const std::size_t before = live_.size();
  while (live_.size() < std::min(options_.live, options_.max_sequences) && !free_blocks_.empty()) {
    sequence s;
    s.id = histories_.size();
    histories_.emplace_back();
    s.state = free_states_.back();
    free_states_.pop_back();
    // Of those that began before: what a copy reads was written by steps that are over.
    if (before != 0 && one_in(3)) {
      const sequence& parent = live_[below(static_cast<uint32_t>(before))];
      if (parent.length != 0 && parent.length < most_tokens()) fork(parent, s, to);
    }
    live_.push_back(std::move(s));
  }
}

// Up to `wanted` tokens more, as many as there are blocks for.
uint32_t traffic::grow(sequence& s, uint32_t wanted, slice& to) {
  to.first = s.length;
  for (uint32_t n = 0; n < wanted && s.length < most_tokens(); ++n) {
    if (s.length % options_.block_tokens == 0) {
      if (free_blocks_.empty()) break;
      s.blocks.push_back(take_block());
    }
    to.tokens.push_back(static_cast<int32_t>(below(options_.vocabulary)));
    ++s.length;
  }
  to.id = s.id;
  to.state = s.state;
  to.blocks = s.blocks;
  std::vector<int32_t>& history = histories_[s.id];
  history.insert(history.end(), to.tokens.begin(), to.tokens.end());
  return static_cast<uint32_t>(to.tokens.size());
}

void traffic::choose_outputs(planned_step& to) {
  const uint32_t n = to.n_tokens();
  for (uint32_t row = 0; row < n; ++row)
    if (!one_in(3)) to.output_rows.push_back(row);
  std::ranges::shuffle(to.output_rows, random_);
  if (!to.output_rows.empty() && one_in(2))
    to.output_rows.push_back(to.output_rows[below(static_cast<uint32_t>(to.output_rows.size()))]);
  if (to.output_rows.size() > options_.max_outputs) to.output_rows.resize(options_.max_outputs);
}

planned_step traffic::next() {
  planned_step out;
  end_some();
  begin_some(out);
  std::vector<uint32_t> rows(options_.max_sequences);
  for (uint32_t r = 0; r < rows.size(); ++r) rows[r] = r;
  std::ranges::shuffle(rows, random_);
  std::vector<std::size_t> order(live_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random_);
  const bool everyone = one_in(2);  // decodes one token
  uint32_t left = options_.max_tokens, highest = 0;
  for (const std::size_t i : order) {
    if (left == 0) break;
    if (!everyone && one_in(3)) continue;
    const bool prompt = !everyone && one_in(2);
    const uint32_t wanted = prompt ? 2 + below(2 * options_.block_tokens + 3) : 1;
    slice s;
    left -= grow(live_[i], std::min(wanted, left), s);
    if (s.tokens.empty()) continue;
    s.row = rows[out.slices.size()];
    highest = std::max(highest, s.row);
    out.slices.push_back(std::move(s));
  }
  out.n_sequences = one_in(2) ? options_.max_sequences : highest + 1;
  choose_outputs(out);
  if (options_.windows && one_in(2)) {
    out.window = 1 + below(3 * options_.block_tokens);
    out.window_keep = one_in(2) ? 0 : below(2 * options_.block_tokens);
  }
  return out;
}

}  // namespace bitnet::conformance
