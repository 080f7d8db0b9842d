#pragma once
// The random numbers of the sampler: xoshiro256**, seeded by splitmix64.
//
// Exact   64-bit integer arithmetic: the same numbers everywhere.
// Source  Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021.

#include <array>
#include <cstdint>

namespace bitnet::sampling {

class random_numbers {
 public:
  explicit random_numbers(uint64_t seed);
  uint64_t next();
  // In [0, 1), a multiple of 2^-53.
  double next_unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace bitnet::sampling
