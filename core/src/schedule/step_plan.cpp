#include "schedule/step_plan.hpp"

#include <algorithm>

namespace bitnet::schedule {
namespace {

// The least number of tokens that decodes leave to prompts: half of a small step. In a large one a
// larger number would admit fewer sequences, and a smaller one would make prompts wait for longer
// while many sequences decode.
uint32_t room_for_prompts(uint32_t step_tokens) {
  constexpr uint32_t enough = 16;
  return std::clamp(step_tokens / 2, 1U, enough);
}

uint32_t chunk_of(const work& w, uint32_t most) {
  const uint64_t end = w.break_at > 0 ? std::min(w.tokens, w.break_at) : w.tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(end, most));
}

}  // namespace

uint32_t max_running_of(const step_limits& most) {
  const uint32_t decodes = most.max_tokens - room_for_prompts(most.max_tokens);
  return std::max(1U, std::min({most.max_sequences, most.max_outputs, decodes}));
}

void plan_step(std::span<const work> all, std::span<const uint32_t> order, const step_bounds& most,
               std::vector<share>& shares) {
  shares.clear();
  uint32_t left = most.tokens;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_decode() || all[i].tokens > left) continue;
    const auto n = static_cast<uint32_t>(all[i].tokens);
    shares.push_back({i, n});
    left -= n;
  }
  if (!shares.empty() && most.prompt_tokens == 0) return;
  if (!shares.empty()) left = std::min(left, most.prompt_tokens);
  for (const uint32_t i : order) {
    if (all[i].is_decode()) continue;
    const uint32_t n = chunk_of(all[i], left);
    if (n == 0) continue;
    shares.push_back({i, n});
    left -= n;
  }
}

}  // namespace bitnet::schedule
