#pragma once
// The hash of a block's tokens, chained: the hash of the block before is part of it, so that it
// stands for all tokens up to the block's end. Keyed, since prompts come from outside: without the
// secret no client can choose tokens that collide.

#include <array>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace bitnet::kv {

using hash_secret = std::array<unsigned char, 192>;

// Makes a secret of the system's random numbers.
result<hash_secret> random_secret();

// `before`: the hash of the block before; 0: there is none.
using hash_function = uint64_t (*)(uint64_t before, std::span<const int32_t> tokens,
                                   const hash_secret& secret);

uint64_t chained_hash(uint64_t before, std::span<const int32_t> tokens, const hash_secret& secret);

}  // namespace bitnet::kv
