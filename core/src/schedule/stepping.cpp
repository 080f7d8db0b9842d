// One step: its plan and its run.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "schedule/contents.hpp"
#include "speculate/verification.hpp"

namespace bitnet::schedule {
namespace {

// A sequence fails after this many failed copies; it was computed anew after each.
constexpr uint32_t most_failed_copies = 3;

// After this many steps with drafts, one without is measured.
constexpr uint32_t most_drafted_in_a_row = speculate::plain_time::most_unmeasured;

// How many of the largest logits both rows of a step must have; 0: all.
uint32_t widest(uint32_t a, uint32_t b) {
  return a == 0 || b == 0 ? 0 : std::max(a, b);
}

bool ends_in(const kv::copy_list& copies, const sequence& s, uint32_t n_blocks) {
  return std::ranges::any_of(copies.to, [&](uint32_t to) {
    if (to >= n_blocks) return s.table.state() == to - n_blocks;
    return std::ranges::find(s.table.blocks(), to) != s.table.blocks().end();
  });
}

}  // namespace

bool scheduler::contents::step() {
  if (runner_ == nullptr) return false;
  collect();
  if (step_.able.empty()) return false;
  plan();
  prepare_rows();
  keep_states();
  grow();
  if (step_.shares.empty()) return true;  // the sequences that were to run have ended
  if (copy()) run();
  return true;
}

// --- the plan ---

// If a sequence may be the reason why a step failed, it runs alone.
void scheduler::contents::collect() {
  step_.able.clear();
  for (sequence* s : running_)
    if (!s->of->is_paused()) step_.able.push_back(s);
  const auto suspect = std::ranges::find_if(step_.able, &sequence::is_suspect);
  if (suspect != step_.able.end()) step_.able = {*suspect};
  const uint64_t chunk = memory_->most().window != 0 ? most_chunk_of(memory_->most()) : 0;
  step_.to_do.clear();
  const auto shorter = [](uint64_t a, uint64_t b) {
    return a == 0 || b == 0 ? a + b : std::min(a, b);
  };
  const uint64_t rows = most_scored();
  for (const sequence* s : step_.able) {
    if (s->ahead) s->ahead->forget();  // left from a step that was not run
    uint64_t border = shorter(s->replays ? 0 : memory_->break_at(*s), chunk);
    // The last token of the prompt has a step of its own, as without scores.
    if (s->is_scoring() && s->left() > 1)
      border = shorter(border, std::min(s->left() - 1, s->left_unscored() + rows));
    step_.to_do.push_back({s->left(), border, s->replays});
  }
}

// The most rows of each prompt in a step: all but those of the other sequences' last tokens, at
// least 1.
uint64_t scheduler::contents::most_scored() const {
  const auto n = static_cast<uint64_t>(std::ranges::count_if(step_.able, &sequence::is_scoring));
  if (n == 0) return 0;
  const uint64_t others = step_.able.size() - n;
  const uint64_t all = memory_->most().max_outputs;
  return std::max<uint64_t>((all - std::min(all, others)) / n, 1);
}

// Orders the prompts that share the rest of a step: by rank, then clients that were served less
// lately first, so that a long prompt does not delay short prompts of other clients. In every
// second step the order of admission decides, so that short prompts do not delay a long one without
// limit.
void scheduler::contents::order_prompts() {
  step_.prompts.clear();
  for (uint32_t i = 0; i < step_.to_do.size(); ++i)
    if (!step_.to_do[i].is_decode()) step_.prompts.push_back(i);
  if (counts_.steps % 2 != 0) return;
  const auto key = [&](uint32_t i) {
    return std::tuple(-step_.able[i]->rank, served_.order_of(step_.able[i]->of->client), i);
  };
  std::ranges::sort(step_.prompts, std::less{}, key);
}

void scheduler::contents::plan() {
  order_prompts();
  step_.n_decodes = static_cast<uint32_t>(step_.to_do.size() - step_.prompts.size());
  const step_bounds most{.tokens = memory_->most().max_tokens,
                         .prompt_tokens = cost_.prompt_tokens(step_.n_decodes)};
  draft();
  plan_step(step_.to_do, step_.prompts, most, step_.shares);
}

// Drafts for sequences that decode, with the tokens and rows that the step has left. A step with
// prompts has no drafts: prompts use the rest, and none of it is wasted.
void scheduler::contents::draft() {
  if (!step_.prompts.empty() || cost_.decode_ns(step_.n_decodes) <= 0 ||
      drafted_since_ >= most_drafted_in_a_row)
    return;
  uint64_t tokens = 0;
  for (const work& w : step_.to_do) tokens += w.tokens;
  const step_limits& most = memory_->most();
  uint64_t room =
      std::min(most.max_tokens - std::min<uint64_t>(most.max_tokens, tokens),
               most.max_outputs - std::min<uint64_t>(most.max_outputs, step_.to_do.size()));
  for (std::size_t i = 0; i < step_.to_do.size(); ++i) {
    sequence& s = *step_.able[i];
    if (!s.ahead || !s.has_begun() || !s.wish || s.is_suspect()) continue;
    const bool has_failed = !s.ahead->failed().empty();
    s.ahead->propose(s.tokens, static_cast<uint32_t>(std::min(room, memory_->room_ahead(s))));
    if (!has_failed && !s.ahead->failed().empty()) {
      ++counts_.drafters_failed;
      counts_.drafter_failure = s.ahead->failed();
    }
    if (s.n_drafted() == 0) continue;
    step_.to_do[i].tokens += s.n_drafted();
    step_.to_do[i].is_ahead = true;
    room -= s.n_drafted();
  }
}

// Gets from each generation, before the step, which logits its row must have. A generation that
// ends in this call leaves the step.
void scheduler::contents::prepare_rows() {
  std::erase_if(step_.shares, [&](const share& one) {
    sequence*& s = step_.able[one.index];
    if (one.n_tokens < s->left()) return false;
    if (s->is_scoring() && !score(*s, {})) return true;  // a prompt of one token
    s = prepare_row(*s);
    return s == nullptr;
  });
}

// Gets this from `s`, and from the choices of its request that begin with the same row. Returns the
// sequence that holds the tokens from now on: `s` or, if that ended, the choice that took them
// over. nullptr: no choice needs the row.
sequence* scheduler::contents::prepare_row(sequence& s) {
  if (s.rows) return &s;
  for (sequence& other : s.of->choices) {
    if ((&other != &s && other.at != phase::pending) || other.wish) continue;
    const auto wants = other.generation.wants();
    if (wants && wants->more) {
      other.wish = wants->top_logits;
      continue;
    }
    sequence* next = &other != &s ? nullptr : s.of->find_pending();
    if (next != nullptr) {
      sequence& now_has = hand_over(s, *next);
      deliver_last(s, wants ? nullptr : &wants.error());
      return prepare_row(now_has);
    }
    deliver_last(other, wants ? nullptr : &wants.error());
  }
  return s.at == phase::ended ? nullptr : &s;
}

// If the first choice ends before the others begin, one of them takes over its tokens and blocks.
sequence& scheduler::contents::hand_over(sequence& from, sequence& to) {
  to.tokens = std::move(from.tokens);
  to.table = std::move(from.table);
  to.computed = std::exchange(from.computed, 0);
  to.ever_computed = from.ever_computed;
  to.alone_until = std::exchange(from.alone_until, 0);
  to.slot = std::exchange(from.slot, no_slot);
  to.rank = from.rank;
  to.used = from.used;
  to.waited = from.waited;
  to.since = from.since;
  to.at = std::exchange(from.at, phase::pending);
  std::ranges::replace(running_, &from, &to);
  return to;
}

// --- the step ---

// Drops a draft if its sequence's state cannot be kept, since the draft could not be taken back.
void scheduler::contents::keep_states() {
  for (share& one : step_.shares) {
    sequence& s = *step_.able[one.index];
    if (s.n_drafted() == 0 || memory_->keep_state(s)) continue;
    s.ahead->forget();
    one.n_tokens = static_cast<uint32_t>(s.left());
  }
}

void scheduler::contents::grow() {
  std::erase_if(step_.shares, [&](const share& one) {
    sequence& s = *step_.able[one.index];
    if (memory_->grow(s, one.n_tokens)) return false;
    fail(s, {BITNET_INTERNAL,
             fmt::format("a sequence of {} tokens lacks the blocks that it reserved for {} more",
                         s.computed, one.n_tokens)});
    return true;
  });
}

// Runs the copies. Returns whether the step can follow.
bool scheduler::contents::copy() {
  kv::copy_list& copies = memory_->copies();
  if (copies.empty()) return true;
  const std::span from(copies.from), to(copies.to);
  for (std::size_t begin = 0; begin < from.size();) {
    const std::size_t n = copies.independent_until(begin) - begin;
    if (auto ok = runner_->copy(from.subspan(begin, n), to.subspan(begin, n)); !ok) {
      fail_copies(ok.error());
      return false;
    }
    begin += n;
  }
  counts_.copied_blocks += copies.from.size();
  copies.clear();
  return true;
}

// After failed copies, the blocks that they were to fill have no valid contents. Sequences that
// need these blocks compute them again.
void scheduler::contents::fail_copies(const failure& why) {
  ++counts_.failed_steps;
  if (is_loss(why.status)) {
    lose_runner(why);
    return;
  }
  const kv::copy_list copies = std::exchange(memory_->copies(), {});
  memory_->forget();
  begin_transfer_again();
  step_.able = running_;
  for (sequence* s : step_.able) {
    if (s->at != phase::running || !ends_in(copies, *s, memory_->most().n_blocks)) continue;
    if (++s->failed_copies >= most_failed_copies)
      fail(*s, why);
    else
      requeue(*s);
  }
}

void scheduler::contents::run() {
  step_.slices.clear();
  std::optional<uint32_t> top_logits;
  std::size_t n_rows = 0;
  for (const share& one : step_.shares) {
    sequence& s = *step_.able[one.index];
    const auto n_draft = static_cast<uint32_t>(s.n_drafted());
    const uint32_t n_outputs = n_draft != 0 ? 1 + n_draft : s.rows_of(one.n_tokens);
    std::span<const int32_t> tokens = s.tokens;
    tokens = tokens.subspan(s.computed, one.n_tokens - n_draft);
    if (n_draft != 0) {
      s.step_tokens.assign(tokens.begin(), tokens.end());
      s.step_tokens.insert(s.step_tokens.end(), s.ahead->draft().begin(), s.ahead->draft().end());
      tokens = s.step_tokens;
    }
    step_.slices.push_back({.tokens = tokens,
                            .first = s.computed,
                            .blocks = s.table.blocks(),
                            .state = s.table.state(),
                            .n_outputs = n_outputs});
    n_rows += n_outputs;
    s.is_heard = false;
    if (n_outputs == 0 || s.rows) continue;
    s.is_heard = is_listened_to(s);
    if (s.is_scoring() || s.is_heard) {
      top_logits = 0;
      continue;
    }
    for (const sequence& c : s.of->choices)
      if (&c == &s || c.at == phase::pending) {
        const uint32_t top = speculate::top_logits_of(*c.wish, n_draft, !s.of->grammars.empty());
        top_logits = widest(top_logits.value_or(top), top);
      }
  }
  step_.top_logits = top_logits.value_or(0);
  follow_step();
  begin_step();
  const time_point start = now();
  auto ok = runner_->run(step_.slices, step_.top_logits, step_.rows);
  const bool is_cancelled = in_.end_step();
  const nanoseconds took = now() - start;
  counts_.step_ns += static_cast<uint64_t>(took.count());
  if (ok && step_.rows.size() != n_rows)
    ok = bitnet::fail(BITNET_INTERNAL, fmt::format("a step gave {} rows where {} were asked for",
                                                   step_.rows.size(), n_rows));
  if (ok)
    finish_step(took);
  else if (is_cancelled && ok.error().status == BITNET_CANCELLED)
    drop_step();
  else
    fail_step(ok.error());
}

// No token is sampled from the rows of a scored prompt, so they are not offered.
bool scheduler::contents::is_listened_to(const sequence& s) const {
  return listener_ && !s.is_scoring() && listener_->wants_next();
}

// From now on a cancel by another thread, or a deadline, may end the step early.
void scheduler::contents::begin_step() {
  step_.requests.clear();
  for (const share& one : step_.shares) {
    const job& j = *step_.able[one.index]->of;
    step_.requests.push_back({j.id, j.deadline.value_or(time_point::max())});
  }
  in_.begin_step(step_.requests);
}

// Called after a step that was ended early; the next tick ends its cancelled requests. Keys and
// values of the step are undefined and do not count as computed. A state cannot go back, so its
// sequence is computed again.
void scheduler::contents::drop_step() {
  ++counts_.cancelled_steps;
  if (memory_->most().n_states == 0) return;
  for (const share& one : step_.shares) requeue(*step_.able[one.index]);
}

// A step of one sequence fails that sequence. A step of several does not show which of them is at
// fault, and its results are undefined: each sequence is computed again, alone.
void scheduler::contents::fail_step(const failure& why) {
  ++counts_.failed_steps;
  if (is_loss(why.status)) {
    lose_runner(why);
    return;
  }
  if (step_.shares.size() == 1) {
    fail(*step_.able[step_.shares.front().index], why);
    return;
  }
  for (const share& one : step_.shares) {
    sequence& s = *step_.able[one.index];
    s.alone_until = s.computed + one.n_tokens - s.n_drafted();
    if (memory_->most().n_states != 0) requeue(s);  // the state before the step is gone
  }
}

void scheduler::contents::finish_step(nanoseconds took) {
  losses_ = 0;
  ++counts_.steps;
  learn(took);
  for (const share& one : step_.shares) {
    sequence& s = *step_.able[one.index];
    const std::size_t n_draft = s.n_drafted();
    if (n_draft == 0 || !memory_->has_states()) note_computed(s, one.n_tokens - n_draft);
  }
  const trace::sampling_span sampling(runner_->recorder());
  std::span<const generate::logits_row> rows = step_.rows;
  for (std::size_t i = 0; i < step_.shares.size(); ++i) {
    const auto own = rows.first(step_.slices[i].n_outputs);
    rows = rows.subspan(own.size());
    if (own.empty()) continue;
    sequence& s = *step_.able[step_.shares[i].index];
    if (s.is_heard) listener_->offer({s.of->id, s.choice}, s.tokens, own.front().logits);
    if (s.rows)
      embed(s, own);
    else if (s.n_drafted() != 0)
      verify(s, step_.shares[i].n_tokens, own);
    else if (s.is_scoring())
      static_cast<void>(score(s, own));
    else
      sample(s, own.front());
  }
}

// A step with more than one token of a decode measures neither prompts nor decodes.
void scheduler::contents::learn(nanoseconds took) {
  step_.ns = static_cast<double>(took.count());
  uint32_t n_tokens = 0;
  step_.n_extra = 0;
  bool has_drafts = false;
  for (const share& one : step_.shares) {
    const sequence& s = *step_.able[one.index];
    n_tokens += one.n_tokens;
    has_drafts |= s.n_drafted() != 0;
    if (s.n_drafted() != 0 || s.replays) step_.n_extra += one.n_tokens - 1;
  }
  const auto bound = std::ranges::lower_bound(step_token_bounds, n_tokens);
  ++counts_.steps_by_tokens[static_cast<std::size_t>(bound - step_token_bounds.begin())];
  counts_.step_tokens += n_tokens;
  drafted_since_ = has_drafts ? drafted_since_ + 1 : 0;
  if (step_.n_extra == 0)
    cost_.learn(step_.n_decodes, n_tokens - std::min(n_tokens, step_.n_decodes), took);
  for (const share& one : step_.shares) {
    const sequence& s = *step_.able[one.index];
    if (s.ahead && s.n_drafted() == 0) s.ahead->note_plain();
  }
}

void scheduler::contents::note_computed(sequence& s, uint64_t n_tokens) {
  const uint64_t end = s.computed + n_tokens;
  const uint64_t again = std::min(end, std::max(s.ever_computed, s.computed)) - s.computed;
  s.used.recomputed_tokens += again;
  counts_.recomputed_tokens += again;
  const uint64_t new_from = s.computed + again;
  if (new_from < s.of->n_prompt)
    counts_.prompt_tokens += std::min<uint64_t>(end, s.of->n_prompt) - new_from;
  served_.serve(s.of->client, n_tokens, now());
  memory_->note_computed(s, n_tokens);
  s.failed_copies = 0;
}

}  // namespace bitnet::schedule
