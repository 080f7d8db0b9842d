// One step: what it computes, its run, and what comes of its rows.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "schedule/contents.hpp"

namespace bitnet::schedule {
namespace {

// Copies that failed for a sequence, each time after it began anew, until it fails.
constexpr uint32_t most_failed_copies = 3;

// Of the logits that two rows must have, when one step gives both; 0: all.
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
  if (able_.empty()) return false;
  plan();
  prepare_rows();
  grow();
  if (shares_.empty()) return true;  // what was to run has ended
  if (copy()) run();
  return true;
}

// --- the plan ---

// A sequence that may be the reason why a step failed runs alone.
void scheduler::contents::collect() {
  able_.clear();
  for (sequence* s : running_)
    if (!s->of->is_paused()) able_.push_back(s);
  const auto suspect = std::ranges::find_if(able_, &sequence::is_suspect);
  if (suspect != able_.end()) able_ = {*suspect};
  const uint64_t chunk = memory_->most().window != 0 ? most_chunk_of(memory_->most()) : 0;
  work_.clear();
  for (const sequence* s : able_) {
    const uint64_t border = memory_->break_at(*s);
    work_.push_back(
        {s->left(), border == 0 || chunk == 0 ? border + chunk : std::min(border, chunk)});
  }
}

// Prompts share what is left of a step by rank and by what their clients were served, so that a
// long one does not keep out the short ones of others; and in every second step the one that was
// admitted first goes first, so that those do not keep it out either.
void scheduler::contents::order_prompts() {
  order_.clear();
  for (uint32_t i = 0; i < work_.size(); ++i)
    if (work_[i].tokens > 1) order_.push_back(i);
  if (counts_.steps % 2 != 0) return;
  const auto key = [&](uint32_t i) {
    return std::tuple(-able_[i]->rank, served_.order_of(able_[i]->of->client), i);
  };
  std::ranges::sort(order_, std::less{}, key);
}

void scheduler::contents::plan() {
  order_prompts();
  n_decodes_ = static_cast<uint32_t>(work_.size() - order_.size());
  const step_bounds most{.tokens = memory_->most().max_tokens,
                         .prompt_tokens = cost_.prompt_tokens(n_decodes_)};
  plan_step(work_, order_, most, shares_);
}

// What each row must bring is known before the step. Generations that end by that take no part.
void scheduler::contents::prepare_rows() {
  std::erase_if(shares_, [&](const share& one) {
    sequence*& s = able_[one.index];
    if (one.n_tokens < s->left()) return false;
    s = prepare_row(*s);
    return s == nullptr;
  });
}

// Also of the choices that are to begin with the same row. The sequence that has its tokens then;
// nullptr: no choice wants the row.
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
      tell_last(s, wants ? nullptr : &wants.error());
      return prepare_row(now_has);
    }
    tell_last(other, wants ? nullptr : &wants.error());
  }
  return s.at == phase::ended ? nullptr : &s;
}

// The first choice ends before the others begin: one of them goes on with what it has.
sequence& scheduler::contents::hand_over(sequence& from, sequence& to) {
  to.tokens = std::move(from.tokens);
  to.table = std::move(from.table);
  to.computed = std::exchange(from.computed, 0);
  to.ever_computed = from.ever_computed;
  to.alone_until = std::exchange(from.alone_until, 0);
  to.rank = from.rank;
  to.used = from.used;
  to.waited = from.waited;
  to.since = from.since;
  to.at = std::exchange(from.at, phase::pending);
  std::ranges::replace(running_, &from, &to);
  return to;
}

// --- the step ---

void scheduler::contents::grow() {
  std::erase_if(shares_, [&](const share& one) {
    sequence& s = *able_[one.index];
    if (memory_->grow(s, one.n_tokens)) return false;
    fail(s, {BITNET_INTERNAL,
             fmt::format("a sequence of {} tokens lacks the blocks that it reserved for {} more",
                         s.computed, one.n_tokens)});
    return true;
  });
}

// Whether the step can follow.
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

// What was to be copied is nowhere. The sequences that need it compute it again.
void scheduler::contents::fail_copies(const failure& why) {
  ++counts_.failed_steps;
  if (is_loss(why.status)) {
    lose_runner(why);
    return;
  }
  const kv::copy_list copies = std::exchange(memory_->copies(), {});
  memory_->forget();
  begin_transfer_again();
  able_ = running_;
  for (sequence* s : able_) {
    if (s->at != phase::running || !ends_in(copies, *s, memory_->most().n_blocks)) continue;
    if (++s->failed_copies >= most_failed_copies)
      fail(*s, why);
    else
      requeue(*s);
  }
}

void scheduler::contents::run() {
  slices_.clear();
  std::optional<uint32_t> top_logits;
  std::size_t n_rows = 0;
  for (const share& one : shares_) {
    sequence& s = *able_[one.index];
    const uint32_t n_outputs = s.rows_of(one.n_tokens);
    slices_.push_back({.tokens = std::span(s.tokens).subspan(s.computed, one.n_tokens),
                       .first = s.computed,
                       .blocks = s.table.blocks(),
                       .state = s.table.state(),
                       .n_outputs = n_outputs});
    n_rows += n_outputs;
    if (n_outputs == 0 || s.rows) continue;
    for (const sequence& c : s.of->choices)
      if (&c == &s || c.at == phase::pending)
        top_logits = widest(top_logits.value_or(*c.wish), *c.wish);
  }
  begin_step();
  const time_point start = now();
  auto ok = runner_->run(slices_, top_logits.value_or(0), rows_);
  const bool is_cancelled = in_.end_step();
  const nanoseconds took = now() - start;
  counts_.step_ns += static_cast<uint64_t>(took.count());
  if (ok && rows_.size() != n_rows)
    ok = bitnet::fail(BITNET_INTERNAL, fmt::format("a step gave {} rows where {} were asked for",
                                                   rows_.size(), n_rows));
  if (ok)
    finish_step(took);
  else if (is_cancelled && ok.error().status == BITNET_CANCELLED)
    drop_step();
  else
    fail_step(ok.error());
}

// From now on a cancel of another thread, or a deadline, may end the step early.
void scheduler::contents::begin_step() {
  members_.clear();
  for (const share& one : shares_) {
    const job& j = *able_[one.index]->of;
    members_.push_back({j.id, j.deadline.value_or(time_point::max())});
  }
  in_.begin_step(members_);
}

// The next tick ends the requests of a step that was ended early. What it computed of them is
// undefined, and is not counted as computed; a state is given up at once.
void scheduler::contents::drop_step() {
  ++counts_.cancelled_steps;
  if (memory_->most().n_states == 0) return;
  for (const share& one : shares_) requeue(*able_[one.index]);
}

// What a step of several sequences computed of them is undefined, and whose fault it is not known:
// each is computed again, alone.
void scheduler::contents::fail_step(const failure& why) {
  ++counts_.failed_steps;
  if (is_loss(why.status)) {
    lose_runner(why);
    return;
  }
  if (shares_.size() == 1) {
    fail(*able_[shares_.front().index], why);
    return;
  }
  for (const share& one : shares_) {
    sequence& s = *able_[one.index];
    s.alone_until = s.computed + one.n_tokens;
    if (memory_->most().n_states != 0) requeue(s);  // the state before the step is gone
  }
}

void scheduler::contents::finish_step(nanoseconds took) {
  losses_ = 0;
  ++counts_.steps;
  uint32_t n_tokens = 0;
  for (const share& one : shares_) {
    note_computed(one);
    n_tokens += one.n_tokens;
  }
  cost_.learn(n_decodes_, n_tokens - std::min(n_tokens, n_decodes_), took);
  std::span<const generate::row> rows = rows_;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const auto own = rows.first(slices_[i].n_outputs);
    rows = rows.subspan(own.size());
    if (own.empty()) continue;
    sequence& s = *able_[shares_[i].index];
    if (s.rows)
      embed(s, own);
    else
      sample(s, own.front());
  }
}

void scheduler::contents::note_computed(const share& one) {
  sequence& s = *able_[one.index];
  const uint64_t end = s.computed + one.n_tokens;
  const uint64_t again = std::min(end, std::max(s.ever_computed, s.computed)) - s.computed;
  s.used.recomputed_tokens += again;
  counts_.recomputed_tokens += again;
  const uint64_t new_from = s.computed + again;
  if (new_from < s.of->n_prompt)
    counts_.prompt_tokens += std::min<uint64_t>(end, s.of->n_prompt) - new_from;
  served_.serve(s.of->client, one.n_tokens, now());
  memory_->note_computed(s, one.n_tokens);
  s.failed_copies = 0;
}

// --- what comes of a row ---

void scheduler::contents::embed(sequence& s, std::span<const generate::row> rows) {
  for (const generate::row& row : rows) s.rows->add(row.logits);
  if (s.left() != 0) return;
  s.embedding.resize(rows.back().logits.size());
  if (auto ok = s.rows->finish(s.embedding); !ok) {
    fail(s, ok.error());
    return;
  }
  s.generation.end(BITNET_STOP_LENGTH);
  end(s);
}

void scheduler::contents::sample(sequence& s, const generate::row& row) {
  if (s.of->find_pending() != nullptr)
    fork_choices(s, row);
  else
    static_cast<void>(take(s, row));
}

// All choices begin with the row behind the prompt. Those that have no room now wait for it: the
// prompt is known.
void scheduler::contents::fork_choices(sequence& leader, const generate::row& row) {
  const uint64_t n_prompt = leader.tokens.size();
  leader.note_time(now());
  for (sequence& s : leader.of->choices) {
    if (s.at != phase::pending) continue;
    s.tokens.reserve(n_prompt + 1);
    s.tokens.assign(leader.tokens.begin(), leader.tokens.end());
    s.ever_computed = leader.ever_computed;
    s.used = leader.used;
    s.waited = leader.waited;
    s.since = leader.since;
    if (!take(s, row)) continue;
    if (running_.size() < max_running_ && memory_->fork(leader, s)) {
      s.at = phase::running;
      s.rank = leader.rank;
      running_.push_back(&s);
    } else {
      s.at = phase::waiting;
      enqueue(s);
    }
  }
  static_cast<void>(take(leader, row));
}

// Whether it goes on.
bool scheduler::contents::take(sequence& s, const generate::row& row) {
  s.wish.reset();
  if (!s.has_begun()) s.note_time(now());
  const auto token = s.generation.take(row);
  if (!token) {
    fail(s, token.error());
    return false;
  }
  ++counts_.generated_tokens;
  s.tokens.push_back(*token);
  auto wants = s.generation.wants();
  if (wants && wants->more && s.tokens.size() >= memory_->most().n_context) {
    s.generation.end(BITNET_STOP_CONTEXT);
    wants->more = false;
  }
  const bool goes_on = wants && wants->more;
  std::string text = s.generation.last().text;
  if (!goes_on) text += s.generation.finish();
  delivery::tell_piece(s, true, std::move(text), now());
  note_bound(*s.of);
  if (goes_on)
    s.wish = wants->top_logits;
  else
    tell_last(s, wants ? nullptr : &wants.error());
  return goes_on;
}

// --- ends ---

void scheduler::contents::end(sequence& s) {
  tell_last(s, nullptr);
}

// Of a prompt that choices wait for, all of them.
void scheduler::contents::fail(sequence& s, const failure& why) {
  const bool leads = s.at != phase::pending;
  tell_last(s, &why);
  while (sequence* other = leads ? s.of->find_pending() : nullptr) tell_last(*other, &why);
}

void scheduler::contents::tell_last(sequence& s, const failure* why) {
  job& j = *s.of;
  withdraw(s);
  if (why != nullptr) {
    delivery_.tell_failure(s, *why, now());
  } else {
    std::string rest = s.generation.finish();
    if (!rest.empty()) delivery::tell_piece(s, false, std::move(rest), now());
    delivery_.tell_end(s, now());
  }
  note_bound(j);
  if (j.live == 0 && !j.is_paused()) ended_.push_back(j.id);
}

}  // namespace bitnet::schedule
