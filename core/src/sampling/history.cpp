#include "sampling/history.hpp"

#include <algorithm>

namespace bitnet::sampling {
namespace {

// Tokens for which memory is reserved before the first one; a longer window grows.
constexpr int32_t prepared = 1024;

}  // namespace

history::history(int32_t last_n) : last_n_(last_n) {
  const auto room = static_cast<std::size_t>(last_n < 0 ? prepared : std::min(last_n, prepared));
  if (last_n > 0) window_.reserve(room);
  counts_.reserve(room + 1);
}

void history::add(int32_t token) {
  if (last_n_ == 0) return;
  ++counts_[token];
  if (last_n_ < 0) return;
  if (window_.size() < static_cast<std::size_t>(last_n_)) {
    window_.push_back(token);
    return;
  }
  const auto leaving = counts_.find(window_[oldest_]);
  if (--leaving->second == 0) counts_.erase(leaving);
  window_[oldest_] = token;
  oldest_ = (oldest_ + 1) % window_.size();
}

void history::clear() {
  window_.clear();
  oldest_ = 0;
  counts_.clear();
}

}  // namespace bitnet::sampling
