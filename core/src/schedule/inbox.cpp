#include "schedule/inbox.hpp"

#include <fmt/core.h>

#include <utility>

namespace bitnet::schedule {

std::optional<rejection> inbox::find_closed() const {
  if (in_.closed || in_.stopped)
    return rejection{rejection::reason::closed,
                     {BITNET_UNAVAILABLE,
                      "the scheduler was closed and takes no more requests: use another one"}};
  if (lost_)
    return rejection{rejection::reason::no_runner,
                     {lost_->status,
                      fmt::format("nothing runs requests until another device is "
                                  "given to the scheduler: {}",
                                  lost_->message),
                      lost_->from}};
  return std::nullopt;
}

std::unexpected<rejection> inbox::count(rejection why) {
  const std::lock_guard lock(mutex_);
  ++counted_.rejected[static_cast<std::size_t>(why.why)];
  return std::unexpected(std::move(why));
}

std::expected<step_limits, rejection> inbox::check(const request& r) {
  gate by;
  std::optional<rejection> fault;
  uint64_t n_waiting = 0;
  uint64_t tokens_waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    by = gate_;
    fault = find_closed();
    n_waiting = n_waiting_;
    tokens_waiting = tokens_waiting_;
  }
  if (!fault) fault = find_fault(r, by);
  if (!fault) fault = find_overload(r.prompt.size(), n_waiting, tokens_waiting, by);
  if (fault) return count(*std::move(fault));
  return by.most;
}

std::expected<ticket, rejection> inbox::add(std::unique_ptr<job> j) {
  std::optional<rejection> fault;
  ticket given = 0;
  {
    const std::lock_guard lock(mutex_);
    fault = find_closed();
    if (!fault) fault = find_overload(j->n_prompt, n_waiting_, tokens_waiting_, gate_);
    if (!fault) {
      given = j->id = ++last_;
      ++n_waiting_;
      tokens_waiting_ += j->n_prompt;
      ++counted_.accepted;
      in_.commands.push_back({command::kind::submit, given, std::move(j)});
      changed_ = true;
    }
  }
  if (fault) return count(*std::move(fault));
  came_.notify_one();
  return given;
}

void inbox::add(command::kind what, ticket of) {
  {
    const std::lock_guard lock(mutex_);
    in_.commands.push_back({what, of, nullptr});
    changed_ = true;
    if (what == command::kind::cancel) step_.cancel(of);
  }
  came_.notify_one();
}

result<void> inbox::add(std::shared_ptr<transfer> t) {
  {
    const std::lock_guard lock(mutex_);
    if (auto fault = find_closed()) return std::unexpected(std::move(fault->what));
    in_.transfers.push_back(std::move(t));
    changed_ = true;
  }
  came_.notify_one();
  return {};
}

void inbox::replace(std::unique_ptr<step_runner> runner) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(in_.runner, runner);  // a former one is destroyed after the lock is released
    changed_ = true;
  }
  came_.notify_one();
}

void inbox::set_listener(std::shared_ptr<generate::row_listener> l) {
  {
    const std::lock_guard lock(mutex_);
    if (!in_.listener) in_.listener.emplace();
    in_.listener->swap(l);  // a former one is destroyed after the lock is released
    changed_ = true;
  }
  came_.notify_one();
}

void inbox::close() {
  {
    const std::lock_guard lock(mutex_);
    in_.closed = true;
    changed_ = true;
  }
  came_.notify_one();
}

void inbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    in_.closed = in_.stopped = true;
    changed_ = true;
    step_.cancel_all();
  }
  came_.notify_one();
}

statistics inbox::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

bool inbox::take(contents& into) {
  const std::lock_guard lock(mutex_);
  if (!changed_) return false;
  changed_ = false;
  std::swap(into.commands, in_.commands);
  std::swap(into.transfers, in_.transfers);
  into.runner = std::move(in_.runner);
  into.listener = std::exchange(in_.listener, std::nullopt);
  into.closed = in_.closed;
  into.stopped = in_.stopped;
  return true;
}

void inbox::settle(uint64_t n_left, uint64_t tokens_left, const statistics& now) {
  const std::lock_guard lock(mutex_);
  n_waiting_ -= n_left;
  tokens_waiting_ -= tokens_left;
  const auto rejected = counted_.rejected;
  const uint64_t accepted = counted_.accepted;
  counted_ = now;
  counted_.rejected = rejected;
  counted_.accepted = accepted;
  counted_.waiting_tokens = tokens_waiting_;
}

void inbox::begin_step(std::span<const step_member> members) {
  const std::lock_guard lock(mutex_);
  step_.begin(members);
  for (const command& c : in_.commands)
    if (c.what == command::kind::cancel) step_.cancel(c.of);
  if (in_.stopped) step_.cancel_all();
}

bool inbox::end_step() {
  const std::lock_guard lock(mutex_);
  return step_.end();
}

void inbox::set_runner(const step_limits& most) {
  const std::lock_guard lock(mutex_);
  gate_.most = most;
  lost_.reset();
}

void inbox::set_lost(const failure& why) {
  const std::lock_guard lock(mutex_);
  lost_ = why;
}

void inbox::wait(std::optional<time_point> until) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return changed_; };
  if (until)
    came_.wait_until(lock, *until, is_there);
  else
    came_.wait(lock, is_there);
}

}  // namespace bitnet::schedule
