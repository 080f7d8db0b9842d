#pragma once
// One sequence as a report shows it: numbers and what it does now, never its tokens or its text.

#include <cstdint>
#include <limits>
#include <vector>

namespace bitnet::schedule {

inline constexpr uint32_t no_slot = std::numeric_limits<uint32_t>::max();

enum class activity : uint8_t {
  waiting,   // for room
  prompt,    // its prompt is computed, perhaps again
  decoding,  // tokens are sampled
  paused     // its sink is full
};

struct sequence_row {
  uint32_t slot = no_slot;  // while it runs: its place, the same until it waits or ends
  uint32_t choice = 0;
  uint64_t request = 0;  // its ticket
  activity does = activity::waiting;
  bool speculates = false;
  uint64_t prompt_tokens = 0;
  uint64_t known_tokens = 0;      // of the prompt: found in the prefix cache
  uint64_t computed_tokens = 0;   // of the prompt: further ones that are computed now
  uint64_t generated_tokens = 0;  // so far
  uint64_t remaining_tokens = 0;  // the most that may still be generated
};

// The most rows of waiting sequences; any more are only counted.
inline constexpr std::size_t most_waiting_rows = 64;

// The places of sequences that run: the lowest that is free is given next.
class slots {
 public:
  // All are free.
  void reset(uint32_t n) { taken_.assign(n, false); }
  uint32_t take() {
    for (std::size_t i = 0; i < taken_.size(); ++i)
      if (!taken_[i]) {
        taken_[i] = true;
        return static_cast<uint32_t>(i);
      }
    return no_slot;
  }
  void give_back(uint32_t slot) {
    if (slot < taken_.size()) taken_[slot] = false;
  }

 private:
  std::vector<bool> taken_;
};

}  // namespace bitnet::schedule
