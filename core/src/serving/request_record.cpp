#include "serving/request_record.hpp"

#include <algorithm>
#include <utility>

#include "runner/model_runner.hpp"

namespace bitnet::serving {
namespace {

// nullopt: the device hangs or is lost, with its counters.
std::optional<std::vector<engine::device_use>> counters_of(const schedule::step_runner& runner) {
  // An async_engine's scheduler has no other runners.
  const auto& of_model = static_cast<const runner::model_runner&>(runner);
  if (of_model.is_hung()) return std::nullopt;
  auto ran = of_model.ran();
  if (!ran) return std::nullopt;
  return *std::move(ran);
}

}  // namespace

std::optional<request_record::choice> request_record::ended(uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(ended_, number, &choice::number);
  if (at == ended_.end()) return std::nullopt;
  return *at;
}

void request_record::enter(const schedule::step_runner& runner) {
  before_ = counters_of(runner);
}

// Counters that cannot be read are left out: a receipt then says less than what ran, never more.
void request_record::leave(const schedule::step_runner& runner) {
  auto now = counters_of(runner);
  if (before_ && now) engine::add(counts_.ran, engine::since(*before_, *std::move(now)));
  before_.reset();
}

void request_record::note(const schedule::step_part& part) {
  ++counts_.steps;
  counts_.own_tokens += part.own_tokens;
  counts_.step_tokens += part.tokens;
  counts_.sequences += part.sequences;
  counts_.most_sequences = std::max(counts_.most_sequences, part.sequences);
}

// With best_of a choice may end twice: at its end, and when the request is cancelled before the
// best one is known. The last end is the one that is delivered.
void request_record::end(const schedule::event& e, std::span<const int32_t> tokens) {
  choice one{.number = e.choice,
             .tokens = {tokens.begin(), tokens.end()},
             .stop_reason = e.stop_reason,
             .used = e.used,
             .why = {BITNET_OK, {}},
             .counted = counts_};
  if (e.what == schedule::event::kind::failed) one.why = e.why;
  const std::lock_guard lock(mutex_);
  std::erase_if(ended_, [&](const choice& known) { return known.number == e.choice; });
  ended_.push_back(std::move(one));
}

}  // namespace bitnet::serving
