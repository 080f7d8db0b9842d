#pragma once
// Reads little-endian numbers from unaligned bytes, and adds with a check for overflow.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace bitnet::gguf {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are little-endian and weights are mapped, not swapped");

// Needs at.size() >= sizeof(T).
template <class T>
T load(std::span<const std::byte> at) {
  T out;
  std::memcpy(&out, at.data(), sizeof out);
  return out;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// Rounds up to a multiple of `alignment`, a power of two.
inline std::optional<uint64_t> checked_pad(uint64_t size, uint64_t alignment) {
  const auto up = checked_add(size, alignment - 1);
  if (!up) return std::nullopt;
  return *up & ~(alignment - 1);
}

}  // namespace bitnet::gguf
