#include "service/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace bitnet::host {
namespace {

constexpr unsigned load_retry_s = 5;  // models load in seconds

http::answer status_answer(std::string_view status) {
  return {.status = 200, .body = fmt::format(R"({{"status":"{}"}})", status)};
}

http::answer loading_answer() {
  return http::unavailable_answer("Loading model", load_retry_s);
}

}  // namespace

void service_life::is_loaded() {
  if (stage_ == stage::loading) stage_ = stage::ready;
}

void service_life::observe(std::span<const engine_work> engines, time now) {
  std::map<std::string, wait> all;
  for (const engine_work& one : engines) {
    wait& of = all[one.model];
    if (const auto before = engines_.find(one.model); before != engines_.end()) of = before->second;
    if (!one.has_work)
      of.since.reset();
    else if (one.steps != of.steps || !of.since)
      of.since = now;
    of.steps = one.steps;
  }
  engines_ = std::move(all);
}

std::optional<service_life::time> service_life::waits_since() const {
  std::optional<time> out;
  for (const auto& [model, one] : engines_)
    if (one.since && (!out || *one.since < *out)) out = one.since;
  return out;
}

bool service_life::hangs(time now) const {
  const auto since = waits_since();
  return since && now - *since >= hang_time_;
}

void service_life::asked_to_end(time now) {
  if (stage_ == stage::draining) {
    stage_ = stage::ended;
    return;
  }
  if (stage_ == stage::ended) return;
  stage_ = stage::draining;
  end_of_drain_ = now + drain_time_;
}

bool service_life::may_end(std::size_t n_unanswered, time now) const {
  if (stage_ == stage::ended) return true;
  return stage_ == stage::draining && (n_unanswered == 0 || now >= end_of_drain_);
}

unsigned service_life::seconds_of_drain(time now) const {
  const auto left = std::chrono::ceil<std::chrono::seconds>(end_of_drain_ - now).count();
  return static_cast<unsigned>(std::max<int64_t>(left, 1));
}

http::answer service_life::health(time now) const {
  if (stage_ == stage::loading) return loading_answer();
  if (hangs(now))
    return http::error_answer(
        {.status = 503,
         .message = fmt::format(
             "requests are queued, and no step has ended for {} s",
             std::chrono::duration_cast<std::chrono::seconds>(now - waits_since().value_or(now))
                 .count()),
         .code = "engine_hangs"});
  return status_answer("ok");
}

std::optional<http::answer> service_life::rejection(time now) const {
  if (stage_ == stage::ready) return std::nullopt;
  if (stage_ == stage::loading) return loading_answer();
  return http::unavailable_answer("the server ends; send the request to another one",
                                  seconds_of_drain(now));
}

http::answer service_life::readiness(time now) const {
  if (auto no = rejection(now)) return *std::move(no);
  return hangs(now) ? health(now) : status_answer("ready");
}

}  // namespace bitnet::host
