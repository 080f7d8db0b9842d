// What the rows of a step become: tokens, new choices, and ends.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "schedule/contents.hpp"
#include "speculate/verification.hpp"

namespace bitnet::schedule {

void scheduler::contents::embed(sequence& s, std::span<const generate::logits_row> rows) {
  if (!s.rows) return;
  for (const generate::logits_row& row : rows) s.rows->add(row.logits);
  if (s.left() != 0) return;
  s.embedding.resize(rows.back().logits.size());
  if (auto ok = s.rows->finish(s.embedding); !ok) {
    fail(s, ok.error());
    return;
  }
  s.generation.end(BITNET_STOP_LENGTH);
  end(s);
}

bool scheduler::contents::score(sequence& s, std::span<const generate::logits_row> rows) {
  if (!s.scores) return true;
  generate::prompt_scores& scores = *s.scores;
  const std::span prompt(s.tokens.data(), s.of->n_prompt);
  const auto deliver_next = [&](const generate::logits_row* before) {
    auto one = scores.take(tokens_, prompt, before);
    if (!one) return fail(s, one.error()), false;
    delivery::deliver_prompt(s, *std::move(one), now());
    return true;
  };
  if (scores.next() == 0 && !deliver_next(nullptr)) return false;
  for (const generate::logits_row& row : rows)
    if (!deliver_next(&row)) return false;
  note_bound(*s.of);
  return true;
}

void scheduler::contents::sample(sequence& s, const generate::logits_row& row) {
  if (s.of->find_pending() != nullptr)
    fork_choices(s, row);
  else
    static_cast<void>(take(s, row));
}

// Samples the rows behind the last token and behind the draft of a sequence with `n_tokens` in the
// step, as long as each sampled token is the drafted one. Without states, the keys of accepted
// tokens stay valid. A state is that behind the whole draft or that before the step.
void scheduler::contents::verify(sequence& s, uint32_t n_tokens,
                                 std::span<const generate::logits_row> rows) {
  const auto n_draft = static_cast<uint32_t>(s.n_drafted());
  speculate::verification seen(s.ahead->draft(), step_.top_logits);
  s.ahead->begin_verification();
  while (take(s, rows[seen.accepted()])) {
    if (!seen.goes_on(s.tokens.back(), {true, s.wish.value_or(0)})) break;
    s.ahead->note_accepted();
    ++counts_.accepted_at[seen.accepted() - 1];
    if (!memory_->has_states()) note_computed(s, 1);
  }
  // A decode counts its part of a step without drafts, and of the rest a part by its tokens.
  const double plain = cost_.decode_ns(step_.n_decodes);
  const double part = static_cast<double>(n_tokens - 1) / step_.n_extra;
  const double own = plain / step_.n_decodes + std::max(step_.ns - plain, 0.0) * part;
  counts_.speculated.add(s.ahead->end_verification(own, plain / step_.n_decodes));
  if (s.at != phase::running || !memory_->has_states()) return;
  if (seen.accepted() == n_draft) {
    note_computed(s, n_tokens);
    memory_->keep_step(s);
  } else {
    memory_->take_back_step(s);
  }
}

// All choices begin with the row behind the prompt. Choices without room wait for it; the prompt is
// known then.
void scheduler::contents::fork_choices(sequence& leader, const generate::logits_row& row) {
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
      s.slot = slots_.take();
      s.rank = leader.rank;
      running_.push_back(&s);
    } else {
      s.at = phase::waiting;
      enqueue(s);
    }
  }
  static_cast<void>(take(leader, row));
}

// Returns whether the sequence continues.
bool scheduler::contents::take(sequence& s, const generate::logits_row& row) {
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
  delivery::deliver_piece(s, true, std::move(text), now());
  note_bound(*s.of);
  if (goes_on)
    s.wish = wants->top_logits;
  else
    deliver_last(s, wants ? nullptr : &wants.error());
  return goes_on;
}

// --- ends ---

void scheduler::contents::end(sequence& s) {
  deliver_last(s, nullptr);
}

// If other choices wait for the prompt of `s`, all of them fail.
void scheduler::contents::fail(sequence& s, const failure& why) {
  const bool leads = s.at != phase::pending;
  deliver_last(s, &why);
  while (sequence* other = leads ? s.of->find_pending() : nullptr) deliver_last(*other, &why);
}

void scheduler::contents::deliver_last(sequence& s, const failure* why) {
  job& j = *s.of;
  leave_steps(j);
  withdraw(s, why == nullptr ? BITNET_OK : why->status);
  if (why != nullptr) {
    delivery_.deliver_failure(s, *why, now());
  } else {
    std::string rest = s.generation.finish();
    if (!rest.empty()) delivery::deliver_piece(s, false, std::move(rest), now());
    delivery_.deliver_end(s, now());
  }
  note_bound(j);
  if (j.live == 0 && !j.is_paused()) ended_.push_back(j.id);
}

}  // namespace bitnet::schedule
