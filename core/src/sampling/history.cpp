#include "sampling/history.hpp"

#include <cstddef>

namespace bitnet::sampling {

void history::add(int32_t token) {
  if (last_n_ == 0) return;
  ++counts_[token];
  if (last_n_ < 0) return;
  window_.push_back(token);
  if (window_.size() <= static_cast<size_t>(last_n_)) return;
  const auto oldest = counts_.find(window_.front());
  if (--oldest->second == 0) counts_.erase(oldest);
  window_.pop_front();
}

void history::clear() {
  window_.clear();
  counts_.clear();
}

}  // namespace bitnet::sampling
