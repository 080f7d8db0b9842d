#include "sampling/random.hpp"

#include <bit>

namespace bitnet::sampling {
namespace {

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

}  // namespace

random_numbers::random_numbers(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix64(seed);
}

uint64_t random_numbers::next() {
  const uint64_t out = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return out;
}

}  // namespace bitnet::sampling
