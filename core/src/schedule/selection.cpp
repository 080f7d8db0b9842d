#include "schedule/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace bitnet::schedule {

selection::selection(uint32_t n_best, uint32_t n_choices, bool shows_logprobs)
    : n_best_(n_best), shows_logprobs_(shows_logprobs), all_(n_choices) {}

void selection::add(event&& e) {
  if (!shows_logprobs_) e.logprobs = {};
  all_[e.choice].pieces.push_back(
      {e.token, e.is_end_token, std::move(e.text), std::move(e.logprobs)});
}

bool selection::end(event&& last) {
  ++n_ended_;
  candidate& one = all_[last.choice];
  one.last = std::move(last);
  const std::vector<uint32_t> ranked = ended_by_rank();
  if (ranked.size() > n_best_) all_[ranked[n_best_]].pieces = {};
  return n_ended_ == all_.size();
}

// The choices that have ended, the best first.
std::vector<uint32_t> selection::ended_by_rank() const {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < all_.size(); ++i)
    if (all_[i].last) out.push_back(i);
  const auto key = [&](uint32_t i) {
    const event& e = *all_[i].last;
    const double mean =
        std::isnan(e.mean_logprob) ? -std::numeric_limits<double>::infinity() : e.mean_logprob;
    return std::tuple(e.what == event::kind::failed, -mean, i);
  };
  std::ranges::sort(out, {}, key);
  return out;
}

std::vector<event> selection::take() {
  is_over_ = true;
  const std::vector<uint32_t> ranked = ended_by_rank();
  std::vector<event> out;
  for (uint32_t rank = n_best_; rank < ranked.size(); ++rank) {
    out.push_back(*std::move(all_[ranked[rank]].last));
    out.back().delivered_index = event::not_delivered;
  }
  for (uint32_t rank = 0; rank < n_best_; ++rank) {
    candidate& one = all_[ranked[rank]];
    for (piece& p : one.pieces) {
      event& e = out.emplace_back();
      e.request = one.last->request;
      e.choice = ranked[rank];
      e.delivered_index = rank;
      e.token = p.token;
      e.is_end_token = p.is_end_token;
      e.text = std::move(p.text);
      e.logprobs = std::move(p.logprobs);
    }
    out.push_back(*std::move(one.last));
    out.back().delivered_index = rank;
  }
  all_.clear();
  return out;
}

void selection::give_up() {
  is_over_ = true;
  all_.clear();
}

}  // namespace bitnet::schedule
