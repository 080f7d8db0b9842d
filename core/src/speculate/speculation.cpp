#include "speculate/speculation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace bitnet::speculate {
namespace {

// Credits are in steps without a draft (ADR 0057). Drafts may lose about one step before they
// pause.
constexpr double first_credit = 1;
// The most saved steps that may be lost again. With more, useless drafts continue for longer after
// useful ones; with less, a short bad passage pauses them.
constexpr double most_credit = 8;
// Credit that a step without a draft gives back, so useless drafts cost 1/64 of the time. With
// more they cost more; with less, paused drafts are tried again later.
constexpr double regained = 1.0 / 64;
// Tokens of the first draft, when the acceptance is unknown. A useless longer one costs more; after
// a useful shorter one the length takes more steps to double to n_max.
constexpr uint32_t first_length = 4;
// Weights of a new time in the moving average. Other programs make steps slower, never faster, so a
// faster step counts for half, and a slower one, which may have been disturbed, for a tenth.
constexpr double weight_of_faster = 0.5, weight_of_slower = 0.1;

}  // namespace

result<void> check(const options& o) {
  if (o.n_max == 0 || o.n_max > most_drafted)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("n_max of the speculation is {}: expected 1 to {} drafted tokens",
                            o.n_max, most_drafted));
  if (o.n_min > o.n_max)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("n_min of the speculation is {}, above its n_max {}: no draft would be "
                            "long enough; give a smaller n_min",
                            o.n_min, o.n_max));
  if (o.ngram_size == 0 || o.ngram_size > most_ngram_size)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("ngram_size of the speculation is {}: expected 1 to {} tokens",
                            o.ngram_size, most_ngram_size));
  return {};
}

void counts::add(const counts& more) {
  drafted += more.drafted;
  accepted += more.accepted;
  steps += more.steps;
  pauses += more.pauses;
  step_ratio += more.step_ratio;
}

// If the time of a step without a draft is too large, drafts seem to save more than they do.
void plain_time::learn(double ns) {
  drafted_since_ = 0;
  ns_ = n_++ == 0 ? ns : ns_ + (ns < ns_ ? weight_of_faster : weight_of_slower) * (ns - ns_);
}

speculation::speculation(std::unique_ptr<drafter> by, const options& o)
    : options_(o),
      drafter_(std::move(by)),
      name_(drafter_->name()),
      credit_(first_credit),
      length_(std::max(std::min(first_length, o.n_max), o.n_min)) {
  draft_.reserve(o.n_max);
}

void speculation::propose(std::span<const int32_t> tokens, uint32_t room) {
  draft_.clear();
  const uint32_t most = std::min(room, length_);
  if (drafter_ == nullptr || is_paused() || most == 0 || most < options_.n_min) return;
  const auto start = std::chrono::steady_clock::now();
  if (auto ok = drafter_->propose(tokens, most, draft_); !ok) {
    failed_ = std::move(ok.error().message);
    draft_.clear();
    drafter_.reset();
    return;
  }
  drafting_ns_ =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  if (draft_.size() > most) draft_.resize(most);
  if (draft_.size() < options_.n_min) draft_.clear();
}

void speculation::begin_verification() {
  before_ = counts_;
  counts_.drafted += draft_.size();
  ++counts_.steps;
}

void speculation::note_accepted() {
  ++counts_.accepted;
}

counts speculation::end_verification(double ns, double plain_ns) {
  const auto n = static_cast<uint32_t>(draft_.size());
  const auto accepted = static_cast<uint32_t>(counts_.accepted - before_.accepted);
  // A step takes no more time than a step of each of its tokens: more time had another cause. For
  // the first draft a draft model reads the prompt; that is not counted.
  const double of_step = ns / plain_ns;
  const double of_draft = drafting_ns_ / plain_ns;
  const double taken =
      std::min(of_step, n + 1.0) + (std::exchange(is_first_, false) ? 0 : of_draft);
  const double ratio = of_step + of_draft;
  counts_.step_ratio += ratio;
  credit_ = std::min(credit_ + accepted + 1 - taken, most_credit);
  if (credit_ <= 0) {
    paused_ = true;
    last_loss_ = std::max(std::min(of_step, n + 1.0) + of_draft - accepted - 1, 0.0);
    ++counts_.pauses;
  }
  length_ = std::clamp(accepted == n ? 2 * n : accepted + 1, std::max(options_.n_min, 1U),
                       options_.n_max);
  draft_.clear();
  return {n, accepted, 1, counts_.pauses - before_.pauses, ratio};
}

void speculation::note_plain() {
  const double most = paused_ ? std::max(first_credit, last_loss_) : first_credit;
  if (credit_ < most) credit_ = std::min(credit_ + regained, most);
  if (credit_ > 0 && credit_ >= last_loss_) paused_ = false;
}

}  // namespace bitnet::speculate
