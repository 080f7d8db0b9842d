#pragma once
// What a group takes together where tokens are multiplied by tensor cores: the host counts groups
// by it, and says how much memory they have.

#include <cstdint>

namespace bitnet::cuda {

struct tile_form {
  uint32_t rows, tokens;  // of the matrix, of the step; that a group takes together
  uint32_t shared_bytes;
};

// Matrices with one scale.
inline constexpr tile_form few_tokens{16, 16, 4 * 16 * 16 * 4};       // sums of four warps
inline constexpr tile_form many_tokens{256, 32, 2 * 32 * 256 + 128};  // two stages, and sums

// With factors of groups.
inline constexpr tile_form few_factored{16, 8, 2 * 4 * 4 * 16 * 8 * 4};  // two turns of four warps
inline constexpr tile_form many_factored{128, 16, 0};

// Dense matrices and rounded activations: two stages of 64 elements of each token.
inline constexpr tile_form few_rounded{64, 16, 2 * 16 * 128};
inline constexpr tile_form many_rounded{128, 64, 2 * 64 * 128};

// What a launch may ask for on every device, without a word about it before.
static_assert(many_tokens.shared_bytes <= 48 << 10 && few_factored.shared_bytes <= 48 << 10 &&
              many_rounded.shared_bytes <= 48 << 10);

}  // namespace bitnet::cuda
