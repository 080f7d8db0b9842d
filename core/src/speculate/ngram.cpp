#include "speculate/ngram.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::speculate {
namespace {

// Earlier places that find() compares, and the most tokens before the n-gram that it compares at
// each. They bound the time of a draft in a text that repeats itself, however long it is. With more
// a draft takes longer, and may come from a place whose past is equal for longer.
constexpr int most_candidates = 16;
constexpr std::size_t longest_past = 64;

}  // namespace

// Equal n-grams have equal keys. Others may have, too; find() compares the tokens. A hash like
// FNV-1a: it begins with that hash's offset, multiplies by 2^64 divided by the golden ratio, and
// mixes the upper bits into the lower ones.
uint64_t ngram::key_of(std::span<const int32_t> tokens, std::size_t end) const {
  uint64_t key = 0xCBF29CE484222325U;
  for (std::size_t i = end - size_; i < end; ++i) {
    key = (key ^ static_cast<uint32_t>(tokens[i])) * 0x9E3779B97F4A7C15U;
    key ^= key >> 29U;
  }
  return key;
}

// Notes all n-grams but the last one, which find() looks up.
void ngram::note(std::span<const int32_t> tokens) {
  for (std::size_t end = previous_.size(); end < tokens.size(); ++end) {
    uint32_t before = 0;
    if (end >= size_) {
      const auto [at, is_new] = last_.try_emplace(key_of(tokens, end), static_cast<uint32_t>(end));
      if (!is_new) before = std::exchange(at->second, static_cast<uint32_t>(end));
    }
    previous_.push_back(before);
  }
}

// The position behind the best earlier place; 0: there is none.
std::size_t ngram::find(std::span<const int32_t> tokens) const {
  const auto first = last_.find(key_of(tokens, tokens.size()));
  std::size_t at = first == last_.end() ? 0 : first->second, best = 0, longest = size_ - 1;
  for (int i = 0; i < most_candidates && at != 0; ++i, at = previous_[at]) {
    std::size_t n = 0;
    const std::size_t most = std::min(at, longest_past + size_);
    while (n < most && tokens[at - 1 - n] == tokens[tokens.size() - 1 - n]) ++n;
    if (n <= longest) continue;
    longest = n;
    best = at;
  }
  return best;
}

result<void> ngram::propose(std::span<const int32_t> tokens, uint32_t most,
                            std::vector<int32_t>& draft) {
  if (tokens.size() <= size_ || tokens.size() >= UINT32_MAX) return {};
  note(tokens);
  const std::size_t from = find(tokens);
  if (from == 0) return {};
  // If the period is shorter than the draft, it goes on with drafted tokens.
  for (std::size_t i = from; draft.size() < most; ++i)
    draft.push_back(i < tokens.size() ? tokens[i] : draft[i - tokens.size()]);
  return {};
}

}  // namespace bitnet::speculate
