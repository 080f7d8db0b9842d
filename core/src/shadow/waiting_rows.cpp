#include "shadow/waiting_rows.hpp"

#include <algorithm>
#include <cmath>

namespace bitnet::shadow {

namespace {

constexpr uint64_t one = uint64_t{1} << 32U;

}  // namespace

// Rounded up, so that the third of three is taken with share 1/3.
even_share::even_share(double share)
    : step_(static_cast<uint64_t>(std::ceil(share * static_cast<double>(one)))) {}

bool even_share::next() {
  due_ += step_;
  if (due_ < one) return false;
  due_ -= one;
  return true;
}

waiting_rows::waiting_rows(uint32_t n, uint64_t n_vocab, uint64_t n_context) : places_(n) {
  for (place& p : places_) {
    p.held.logits.resize(n_vocab);
    p.held.tokens.reserve(n_context);
  }
}

bool waiting_rows::offer(const row_place& at, std::span<const int32_t> tokens,
                         std::span<const float> logits) {
  for (place& p : places_) {
    phase expected = phase::free;
    if (!p.at.compare_exchange_strong(expected, phase::filling, std::memory_order_acquire))
      continue;
    p.serial = serial_.fetch_add(1, std::memory_order_relaxed);
    p.held.at = at;
    p.held.tokens.assign(tokens.begin(), tokens.end());
    std::ranges::copy(logits, p.held.logits.begin());
    p.at.store(phase::ready, std::memory_order_release);
    changes_.fetch_add(1);
    changes_.notify_one();
    return true;
  }
  return false;
}

waiting_rows::place* waiting_rows::oldest() {
  place* out = nullptr;
  for (place& p : places_)
    if (p.at.load(std::memory_order_acquire) == phase::ready &&
        (out == nullptr || p.serial < out->serial))
      out = &p;
  return out;
}

const waiting_rows::row* waiting_rows::take() {
  while (true) {
    const int32_t seen = changes_.load();
    if (stopped_.load()) return nullptr;
    if (place* const p = oldest()) {
      p->at.store(phase::taken, std::memory_order_relaxed);
      taken_ = p;
      return &p->held;
    }
    changes_.wait(seen);
  }
}

void waiting_rows::give_back() {
  taken_->at.store(phase::free, std::memory_order_release);
  taken_ = nullptr;
}

void waiting_rows::stop() {
  stopped_.store(true);
  changes_.fetch_add(1);
  changes_.notify_all();
}

uint32_t waiting_rows::size() const {
  return static_cast<uint32_t>(std::ranges::count_if(places_, [](const place& p) {
    return p.at.load(std::memory_order_relaxed) == phase::ready;
  }));
}

}  // namespace bitnet::shadow
