#include "sampling/repetition.hpp"

#include <algorithm>
#include <ranges>

#include "sampling/candidate.hpp"

namespace bitnet::sampling {
namespace {

constexpr std::size_t bits = 64;

// A power by squaring: products of doubles have the same bits everywhere. May be infinite.
double power_of(double base, std::size_t exponent) {
  double out = 1;
  for (; exponent != 0; exponent >>= 1U, base *= base)
    if ((exponent & 1U) != 0) out *= base;
  return out;
}

}  // namespace

std::span<const breakers::one> breakers::of(int32_t head) const {
  return {std::ranges::equal_range(all_, head, {}, &one::head)};
}

void breakers::add(int32_t head, std::vector<int32_t> tail) {
  const auto [at, is_new] = numbers_.try_emplace(tail, static_cast<uint32_t>(tails_.size()));
  if (is_new) tails_.push_back(std::move(tail));
  const uint32_t number = at->second;
  if (std::ranges::find(of(head), number, &one::tail) != of(head).end()) return;
  all_.insert(std::ranges::upper_bound(all_, head, {}, &one::head), {head, number});
  const auto bit = static_cast<std::size_t>(head);
  heads_.resize(std::max(heads_.size(), bit / bits + 1));
  heads_[bit / bits] |= uint64_t{1} << (bit % bits);
}

bool breakers::is_one(int32_t token) const {
  return std::ranges::any_of(of(token), [&](const one& b) { return tails_[b.tail].empty(); });
}

std::size_t breakers::length_at(std::span<const int32_t> recent, std::size_t at) const {
  const auto head = static_cast<std::size_t>(recent[at]);
  if (head / bits >= heads_.size() || (heads_[head / bits] >> (head % bits) & 1) == 0) return 0;
  std::size_t longest = 0;
  for (const one& b : of(recent[at])) {
    const std::vector<int32_t>& tail = tails_[b.tail];
    if (tail.size() > at || tail.size() < longest) continue;
    // In `recent` the tokens that follow have lower indices.
    const auto behind = recent.first(at) | std::views::reverse;
    if (std::ranges::equal(tail, behind | std::views::take(tail.size()))) longest = tail.size() + 1;
  }
  return longest;
}

repetition::repetition(const options& o, uint32_t n_vocab, std::shared_ptr<const breakers> at)
    : options_(o), n_vocab_(n_vocab), breakers_(std::move(at)) {}

void repetition::add(int32_t token) {
  if (options_.last_n == 0) return;
  is_found_ = false;
  tokens_.push_back(token);
  // Drops tokens that are no longer looked at: many at once, and not at every token.
  const auto most = static_cast<std::size_t>(options_.last_n);
  if (options_.last_n > 0 && tokens_.size() >= 2 * most)
    tokens_.erase(tokens_.begin(), tokens_.end() - static_cast<std::ptrdiff_t>(most));
}

void repetition::clear() {
  tokens_.clear();
  penalties_.clear();
  is_found_ = true;
}

std::span<const repetition::penalty> repetition::penalties() {
  if (!is_found_) find();
  is_found_ = true;
  return penalties_;
}

void repetition::find() {
  penalties_.clear();
  const auto allowed = static_cast<std::size_t>(options_.allowed_length);
  std::size_t n = tokens_.size();
  if (options_.last_n > 0) n = std::min(n, static_cast<std::size_t>(options_.last_n));
  if (n <= allowed) return;
  recent_.assign(tokens_.rbegin(), tokens_.rbegin() + static_cast<std::ptrdiff_t>(n));
  const std::size_t most = limit();
  if (most < allowed) return;
  measure();
  longest_.resize(n_vocab_);
  for (std::size_t k = 1; k < n; ++k) {
    const auto length = static_cast<uint32_t>(std::min<std::size_t>(equal_[k], most));
    if (length < allowed) continue;
    const int32_t next = recent_[k - 1];
    uint32_t& longest = longest_[static_cast<std::size_t>(next)];
    if (longest == 0) penalties_.push_back({next, 0});
    longest = std::max(longest, length);
  }
  for (penalty& one : penalties_) {
    uint32_t& longest = longest_[static_cast<std::size_t>(one.token)];
    const double value = options_.multiplier * power_of(options_.base, longest - allowed);
    one.value = static_cast<float>(std::min<double>(value, -never));
    longest = 0;
  }
  if (breakers_ != nullptr)
    std::erase_if(penalties_, [&](const penalty& p) { return breakers_->is_one(p.token); });
}

// How many last tokens are behind the last breaker: a repetition does not cross it.
std::size_t repetition::limit() const {
  if (breakers_ == nullptr || breakers_->count() == 0) return recent_.size();
  for (std::size_t i = 0; i < recent_.size(); ++i)
    if (const std::size_t length = breakers_->length_at(recent_, i); length != 0)
      return i + 1 - length;
  return recent_.size();
}

// The Z algorithm: [begin, end) is the match that reaches furthest so far.
void repetition::measure() {
  const std::size_t n = recent_.size();
  equal_.assign(n, 0);
  for (std::size_t k = 1, begin = 0, end = 0; k < n; ++k) {
    std::size_t same = k < end ? std::min<std::size_t>(end - k, equal_[k - begin]) : 0;
    while (k + same < n && recent_[same] == recent_[k + same]) ++same;
    equal_[k] = static_cast<uint32_t>(same);
    if (k + same > end) {
      begin = k;
      end = k + same;
    }
  }
}

}  // namespace bitnet::sampling
