#pragma once
// A secret that is the same in each run, and as mixed as a real one.

#include <random>

#include "kv/chained_hash.hpp"

namespace bitnet::kv {

inline hash_secret test_secret(uint32_t seed) {
  std::mt19937 random(seed);
  hash_secret out{};
  for (unsigned char& byte : out) byte = static_cast<unsigned char>(random());
  return out;
}

}  // namespace bitnet::kv
