// Which sequences run: admission, preemption, and the loss of a runner.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "schedule/contents.hpp"
#include "trace/static_probes.hpp"

namespace bitnet::schedule {
namespace {

// After this many losses of runners in a row, without a successful step, everything ends.
constexpr uint32_t most_losses = 3;

}  // namespace

bool scheduler::contents::admit() {
  if (runner_ == nullptr || queue_.all().empty()) return false;
  if (!room_changed_ && now() < look_again_) return false;
  bool did = false;
  counts_.first_waiting = blocked_by::nothing;
  while (const waiter* first = queue_.first(now())) {
    const waiter w = *first;  // the queue changes
    if (w.who->of->is_paused()) {
      queue_.set_may_run(w.who, false);
      continue;
    }
    if (!could_run(*w.who)) {
      did = true;
      continue;
    }
    if (!start(w)) break;
    did = true;
  }
  room_changed_ = false;
  look_again_ = now() + options_.ageing / 4;
  return did;
}

// Whether the sequence fits this runner when it runs alone. If not, this ends or fails it.
bool scheduler::contents::could_run(sequence& s) {
  const step_limits& most = memory_->most();
  if (s.tokens.size() >= most.n_context && s.has_begun()) {
    s.generation.end(BITNET_STOP_CONTEXT);
    end(s);
    return false;
  }
  const uint64_t behind = s.rows ? 0 : 1;  // the next token of an answer
  if (s.tokens.size() + behind <= most.n_context && memory_->could_hold(s)) return true;
  fail(s, {BITNET_CONTEXT_FULL,
           fmt::format("another device took over, whose context of {} tokens and {} blocks do not "
                       "hold the {} tokens of the sequence and its answer: ask for fewer tokens",
                       most.n_context, most.n_blocks, s.tokens.size())});
  return false;
}

// Gives the first waiter a place in steps and its blocks, and preempts other sequences for that.
bool scheduler::contents::start(const waiter& w) {
  const int64_t rank = queue_.rank_of(w, now());
  const auto try_again = [&](blocked_by lacks) {
    counts_.first_waiting = lacks;
    return make_room(w, lacks);
  };
  while (running_.size() >= max_running_)
    if (!try_again(blocked_by::sequences)) return false;
  while (true) {
    const auto ok = memory_->begin(*w.who);
    if (ok) break;
    const bool of_states = ok.error() == kv::shortage::states;
    if (!try_again(of_states ? blocked_by::states : blocked_by::blocks)) return false;
  }
  sequence& s = *w.who;
  if (s.rows) s.rows->begin();
  s.note_time(now());
  s.at = phase::running;
  s.slot = slots_.take();
  s.rank = rank;
  queue_.remove(&s);
  running_.push_back(&s);
  BITNET_PROBE_3(sequence_admitted, s.of->id, s.tokens.size(), s.used.cached_tokens);
  if (std::exchange(s.of->is_new, false)) {
    ++left_;
    tokens_left_ += s.of->n_prompt;
    if (s.reads_prefix()) counts_.prefix_queries += s.of->n_prompt;
    counts_.prefix_hits += s.used.cached_tokens;
    counts_.prompt_tokens += s.used.cached_tokens;
    if (s.reads_prefix()) ++counts_.misses[static_cast<std::size_t>(s.used.missed)];
  }
  return true;
}

// Whether preempting every sequence of lower priority would free enough blocks for `w`. Blocks that
// several sequences share are counted for each, so the result may be true although too few would be
// freed.
bool scheduler::contents::could_make_room(const waiter& w, blocked_by lacks) const {
  uint64_t blocks = 0;
  bool any = false;
  for (const sequence* s : running_) {
    if (s->rank >= w.priority) continue;
    any = true;
    blocks += uint64_t{s->table.held()} + s->table.reserved();
  }
  return any && (lacks != blocked_by::blocks || blocks >= memory_->lacking(*w.who));
}

// Preempts one sequence of lower priority: of those with the lowest rank the one that was admitted
// last, which has the least to lose. The waiter counts by its priority alone: with its waiting
// time, the two would preempt each other in turn. A running sequence counts by its rank, which
// includes its waiting time, so that it is not preempted for ever.
bool scheduler::contents::make_room(const waiter& w, blocked_by lacks) {
  if (!could_make_room(w, lacks)) return false;
  sequence* victim = nullptr;
  for (sequence* s : running_)
    if (s->rank < w.priority && (victim == nullptr || s->rank <= victim->rank)) victim = s;
  requeue(*victim);
  ++victim->used.preemptions;
  ++counts_.preemptions;
  return true;
}

void scheduler::contents::enqueue(sequence& s) {
  const job& j = *s.of;
  queue_.add({.who = &s,
              .arrival = j.id,
              .client = j.client,
              .priority = j.priority,
              .waited = s.waited,
              .since = s.since,
              .is_new = j.is_new,
              .may_run = !j.is_paused()});
}

void scheduler::contents::requeue(sequence& s) {
  s.note_time(now());
  memory_->leave(s);
  std::erase(running_, &s);
  slots_.give_back(std::exchange(s.slot, no_slot));
  s.at = phase::waiting;
  enqueue(s);
  room_changed_ = true;
}

void scheduler::contents::withdraw(sequence& s, bitnet_status status) {
  BITNET_PROBE_3(sequence_ended, s.of->id, s.tokens.size(), status);
  s.note_time(now());
  if (s.at == phase::running) {
    memory_->leave(s);
    std::erase(running_, &s);
    slots_.give_back(std::exchange(s.slot, no_slot));
  } else if (s.at == phase::waiting) {
    queue_.remove(&s);
  }
  if (std::exchange(s.of->is_new, false)) {
    ++left_;
    tokens_left_ += s.of->n_prompt;
  }
  s.at = phase::ended;
  --s.of->live;
  room_changed_ = true;
}

void scheduler::contents::take_runner(std::unique_ptr<step_runner> next) {
  leave_steps();
  while (!running_.empty()) requeue(*running_.back());
  begin_transfer_again();
  if (memory_) evictions_before_ += memory_->pool().stats().evicted_blocks;
  runner_ = std::move(next);
  const step_limits& most = runner_->limits();
  memory_ = std::make_unique<kv_memory>(most, secret_);
  max_running_ = max_running_of(most);
  if (options_.max_running > 0) max_running_ = std::min(max_running_, options_.max_running);
  slots_.reset(max_running_);
  cost_ = cost_model(options_.max_stretch);
  counts_.first_waiting = blocked_by::nothing;
  room_changed_ = true;
  in_.set_runner(most);
}

void scheduler::contents::lose_runner(const failure& why) {
  leave_steps();
  ++counts_.runners_lost;
  failure reason = why;
  if (++losses_ <= most_losses && options_.on_loss) {
    auto next = options_.on_loss(why);
    if (next) {
      take_runner(*std::move(next));
      return;
    }
    reason = std::move(next.error());
  }
  in_.set_lost(reason);
  lost_ = reason;
  counts_.first_waiting = blocked_by::no_runner;
  end_all(reason);
  evictions_before_ += memory_->pool().stats().evicted_blocks;
  memory_.reset();
  runner_.reset();
  losses_ = 0;
}

}  // namespace bitnet::schedule
