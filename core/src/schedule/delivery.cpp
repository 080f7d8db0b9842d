#include "schedule/delivery.hpp"

#include <algorithm>
#include <utility>

#include "schedule/step_observer.hpp"

namespace bitnet::schedule {
namespace {

void deliver(job& j, event&& e, time_point now) {
  const bool is_last = e.what != event::kind::piece;
  if (!j.is_paused() && (j.events->offer(std::move(e)) || is_last)) return;
  if (!j.is_paused()) j.paused_since = now;
  // NOLINTNEXTLINE(bugprone-use-after-move): a sink that returns false leaves the event as it is
  j.rejected.push_back(std::move(e));
}

// The selection that keeps the job's events; nullptr: they are delivered as they come.
selection* selecting(job& j) {
  return j.best && !j.best->is_over() ? &*j.best : nullptr;
}

event of(const sequence& s, event::kind what) {
  event e;
  e.what = what;
  e.request = s.of->id;
  e.choice = s.choice;
  e.delivered_index = s.delivered_index;
  return e;
}

}  // namespace

void delivery::deliver_piece(sequence& s, bool has_token, std::string text, time_point now) {
  event e = of(s, event::kind::piece);
  e.text = std::move(text);
  if (has_token) {
    const generate::taken& last = s.generation.last();
    e.token = last.token;
    e.is_end_token = last.is_end;
    e.logprobs = last.logprobs;
    s.sum_logprobs += last.logprobs.chosen;
  }
  if (selection* const best = selecting(*s.of))
    best->add(std::move(e));
  else
    deliver(*s.of, std::move(e), now);
}

void delivery::deliver_prompt(sequence& s, generate::scored&& one, time_point now) {
  event e = of(s, event::kind::piece);
  e.of_prompt = true;
  e.choice = 0;
  e.token = one.token;
  e.text = std::move(one.text);
  e.logprobs = std::move(one.logprobs);
  deliver(*s.of, std::move(e), now);
}

void delivery::deliver_end(sequence& s, time_point now) {
  event e = of(s, event::kind::end);
  e.stop_reason = s.generation.so_far().stop_reason;
  e.stop_index = s.generation.so_far().stop_index;
  e.embedding = std::move(s.embedding);
  end(s, std::move(e), now);
}

void delivery::deliver_failure(sequence& s, const failure& why, time_point now) {
  event e = of(s, event::kind::failed);
  e.why = why;
  end(s, std::move(e), now);
}

void delivery::end(sequence& s, event&& e, time_point now) {
  job& j = *s.of;
  s.end_is_queued = true;
  s.used.generated_tokens = s.generation.so_far().tokens.size();
  if (s.ahead) {
    s.used.drafted_tokens = s.ahead->counted().drafted;
    s.used.accepted_tokens = s.ahead->counted().accepted;
  }
  e.used = s.used;
  if (s.used.generated_tokens != 0)
    e.mean_logprob = s.sum_logprobs / static_cast<double>(s.used.generated_tokens);
  if (j.observer) j.observer->end(e, s.generation.so_far().tokens);
  selection* const best = selecting(j);
  if (best == nullptr) {
    hand_over(j, std::move(e), now);
  } else if (best->end(std::move(e))) {
    for (event& one : best->take()) {
      j.choices[one.choice].delivered_index = one.delivered_index;
      hand_over(j, std::move(one), now);
    }
  }
}

// An end is counted when it is offered to the sink; the end of an undelivered choice at once.
void delivery::hand_over(job& j, event&& e, time_point now) {
  if (!j.is_paused()) count(e);
  if (e.delivered_index != event::not_delivered) deliver(j, std::move(e), now);
}

void delivery::count(const event& e) {
  if (e.what == event::kind::failed)
    ++counts_.failed;
  else if (e.what == event::kind::end)
    ++counts_.ended[e.stop_reason % counts_.ended.size()];
  publish_();
}

void delivery::offer_again(job& j, time_point now) {
  if (!j.is_paused()) return;
  auto next = j.rejected.begin();
  for (; next != j.rejected.end(); ++next) {
    const bool is_last = next->what != event::kind::piece;
    if (is_last) count(*next);
    if (!j.events->offer(std::move(*next)) && !is_last) break;
    j.paused_since = now;  // it takes some, so its patience begins anew
  }
  j.rejected.erase(j.rejected.begin(), next);
  if (j.rejected.empty()) j.paused_since.reset();
}

uint32_t delivery::close(job& j, const failure* why, time_point now) {
  const std::vector<event> rejected = std::exchange(j.rejected, {});
  j.paused_since.reset();
  selection* const best = selecting(j);
  const bool gives_up = best != nullptr;
  if (gives_up) {
    best->give_up();
    for (sequence& s : j.choices) {
      s.end_is_queued = false;
      s.delivered_index = best->delivered_index_of(s.choice);
    }
  }
  const auto lost_text = [&](uint32_t choice) {
    return std::ranges::any_of(rejected, [&](const event& e) {
      return e.what == event::kind::piece && e.choice == choice;
    });
  };
  for (const event& e : rejected) {
    if (e.what == event::kind::piece) continue;
    if (lost_text(e.choice)) {
      j.choices[e.choice].end_is_queued = false;
      continue;
    }
    count(e);
    deliver(j, event(e), now);
  }
  uint32_t n = 0;
  for (sequence& s : j.choices) {
    if (s.end_is_queued) continue;
    ++n;
    if (why != nullptr) {
      deliver_failure(s, *why, now);
      continue;
    }
    if (event rest = of(s, event::kind::piece); rejected.empty() && !gives_up) {
      rest.text = s.generation.finish();
      if (!rest.text.empty()) j.events->offer(std::move(rest));
    }
    event e = of(s, event::kind::end);
    e.stop_reason = BITNET_STOP_CANCELLED;
    end(s, std::move(e), now);
  }
  return n;
}

}  // namespace bitnet::schedule
