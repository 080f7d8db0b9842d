#include "schedule/running_step.hpp"

#include <algorithm>

namespace bitnet::schedule {

void running_step::begin(std::span<const step_member> members) {
  needed_by_.assign(members.begin(), members.end());
  runs_ = true;
  judge();
}

void running_step::cancel(ticket t) {
  if (!runs_ || std::erase_if(needed_by_, [&](const step_member& m) { return m.of == t; }) == 0)
    return;
  judge();
}

void running_step::cancel_all() {
  needed_by_.clear();
  if (runs_) judge();
}

// After the last deadline of the remaining requests, none of them needs the step.
void running_step::judge() {
  if (flag_ == nullptr) return;
  const auto last = std::ranges::max_element(needed_by_, {}, &step_member::deadline);
  if (last == needed_by_.end())
    flag_->store(true, std::memory_order_relaxed);
  else
    cancel_flags::set_deadline(*flag_, last->deadline);
}

bool running_step::end() {
  runs_ = false;
  if (flag_ == nullptr) return false;
  const bool was_set = cancel_flags::is_set(cancel_flags::token_of(*flag_));
  flag_->store(false, std::memory_order_relaxed);
  cancel_flags::set_deadline(*flag_, time_point::max());
  return was_set;
}

}  // namespace bitnet::schedule
