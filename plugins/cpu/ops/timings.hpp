#pragma once
// Judges repeated timings of a few candidates: which one to use, and whether that is reliable.
//
// A candidate replaces the usual one only if it was faster in its median, faster by a given part in
// the median of the rounds, and faster in most rounds (proof). In a round both are timed next to
// each other, so noise does not select a slower one.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitnet::cpu {

// (candidates, rounds): nanoseconds; all candidates have the same number of rounds.
using timings = std::vector<std::vector<uint64_t>>;

uint64_t median(std::vector<uint64_t> x);  // 0 of none
// The distance of the quartiles, as a part of the median.
double spread(std::vector<uint64_t> x);

// Evidence that a candidate needs against the usual one, in thousandths: its time in the median of
// the rounds is at most `time`, and it is faster in at least `rounds` of the rounds.
struct proof {
  uint64_t time, rounds;
};
// 3 % less time, in three of four rounds. Less would let noise choose; more would miss what a
// better setting saves.
inline constexpr proof usual_proof{970, 750};
// 10 % less time, in nine of ten rounds: required if repetitions differ so much that weaker
// evidence is not accepted.
inline constexpr proof strong_proof{900, 900};

// The candidate to use.
std::size_t best_of(const timings& all, std::size_t usual, const proof& asked = usual_proof);

// On an otherwise idle machine repetitions differ by less than this.
inline constexpr double most_spread = 0.15;

}  // namespace bitnet::cpu
