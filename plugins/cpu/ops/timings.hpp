#pragma once
// What repeated timings of a few candidates say: which one to use, and whether that is reliable.
//
// A candidate is only taken in place of the usual one if it was faster: in its median, by some part
// in the median of the rounds, and in most rounds (proof). In a round, each is timed beside the
// other, so that noise does not choose one that is slower.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitnet::cpu {

// (candidates, rounds): nanoseconds; rounds of all candidates are equally many.
using timings = std::vector<std::vector<uint64_t>>;

uint64_t median(std::vector<uint64_t> x);  // 0 of none
// How far the quartiles are apart, as a part of the median.
double spread(std::vector<uint64_t> x);

// What a candidate has to show beside the usual one, in parts of a thousand: of its time in the
// median of the rounds at most this, and less than all of it in so many rounds.
struct proof {
  uint64_t time, rounds;
};
inline constexpr proof usual_proof{970, 750};
// Where repetitions are so far apart that weaker evidence is not accepted.
inline constexpr proof strong_proof{900, 900};

// The candidate to use.
std::size_t best_of(const timings& all, std::size_t usual, const proof& asked = usual_proof);

// Repetitions differ by less than this on an otherwise idle machine.
inline constexpr double most_spread = 0.15;

}  // namespace bitnet::cpu
