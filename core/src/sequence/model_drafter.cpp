#include "sequence/model_drafter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace bitnet::sequence {
namespace {

constexpr std::size_t most_missed = 64;  // tokens, since the last draft

}  // namespace

draft_sessions::~draft_sessions() {
  for (const auto& s : free_) close_(*s);
}

result<std::unique_ptr<session>> draft_sessions::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
  }
  return open_();
}

void draft_sessions::give_back(std::unique_ptr<session> s) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(s));
}

model_drafter::~model_drafter() {
  if (session_) from_->give_back(std::move(session_));
}

// Evaluates those of `tokens` that the session lacks, at least the last one.
result<void> model_drafter::catch_up(std::span<const int32_t> tokens) {
  if (has_read_ && tokens.size() > from_token_ + session_->tokens().size() + most_missed) {
    from_token_ = tokens.size() - most_missed;
    if (auto ok = session_->truncate(0); !ok) return ok;
  }
  has_read_ = true;
  tokens = tokens.subspan(from_token_);
  const auto has = session_->tokens();
  const auto differs = std::ranges::mismatch(has, tokens).in1;
  const auto same =
      std::min<std::size_t>(static_cast<std::size_t>(differs - has.begin()), tokens.size() - 1);
  if (same < has.size())
    if (auto ok = session_->truncate(same); !ok) return ok;
  return session_->eval_top(tokens.subspan(same), 1, logits_, largest_);
}

int32_t model_drafter::likeliest() const {
  if (largest_.ids.empty())
    return static_cast<int32_t>(std::ranges::max_element(logits_) - logits_.begin());
  return largest_.ids[static_cast<std::size_t>(std::ranges::max_element(largest_.logits) -
                                               largest_.logits.begin())];
}

result<void> model_drafter::propose(std::span<const int32_t> tokens, uint32_t most,
                                    std::vector<int32_t>& draft) {
  if (!session_) {
    auto taken = from_->take();
    if (!taken) return std::unexpected(std::move(taken.error()));
    session_ = std::move(*taken);
    logits_.resize(session_->row_floats());
  }
  if (tokens.size() >= session_->capacity())
    return fail(BITNET_CONTEXT_FULL,
                fmt::format("the context of the draft model has {} tokens, and the sequence {}",
                            session_->capacity(), tokens.size()));
  if (auto ok = catch_up(tokens); !ok) return ok;
  const auto room = static_cast<uint32_t>(session_->capacity() - tokens.size());
  while (true) {
    draft.push_back(likeliest());
    if (draft.size() >= std::min(most, room)) return {};
    if (auto ok = session_->eval_top({&draft.back(), 1}, 1, logits_, largest_); !ok) return ok;
  }
}

}  // namespace bitnet::sequence
