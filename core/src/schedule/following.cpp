// Calls of the observers of requests.

#include <algorithm>
#include <utility>

#include "schedule/contents.hpp"
#include "schedule/step_observer.hpp"

namespace bitnet::schedule {

// Before a step runs: requests that have no tokens in it leave, those that are new in it enter.
void scheduler::contents::follow_step() {
  step_.followed_jobs.clear();
  step_part part{
      .own_tokens = 0, .tokens = 0, .sequences = static_cast<uint32_t>(step_.shares.size())};
  for (const share& one : step_.shares) {
    job& j = *step_.able[one.index]->of;
    part.tokens += one.n_tokens;
    if (!j.observer) continue;
    if (j.step_tokens == 0) step_.followed_jobs.push_back(&j);
    j.step_tokens += one.n_tokens;
  }
  for (std::size_t i = followed_.size(); i-- > 0;)
    if (followed_[i]->step_tokens == 0) leave_steps(*followed_[i]);
  for (job* const j : step_.followed_jobs) {
    if (std::ranges::find(followed_, j) == followed_.end()) {
      j->observer->enter(*runner_);
      followed_.push_back(j);
    }
    part.own_tokens = std::exchange(j->step_tokens, 0);
    j->observer->note(part);
  }
}

// `j` may be in no step.
void scheduler::contents::leave_steps(job& j) {
  const auto at = std::ranges::find(followed_, &j);
  if (at == followed_.end()) return;
  followed_.erase(at);
  j.observer->leave(*runner_);
}

void scheduler::contents::leave_steps() {
  while (!followed_.empty()) leave_steps(*followed_.back());
}

}  // namespace bitnet::schedule
