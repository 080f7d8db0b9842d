#pragma once
// Ternary types, 128 elements at a time. A code is t + 1: 0, 1 or 2.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/reading.hpp"

namespace bitnet::formats {

inline constexpr uint64_t group = 128;  // elements of a canonical group
using codes = std::array<uint8_t, group>;

// i2s.cpp: bitnet.cpp's I2_S, type 36. Layouts A, B, C differ only in where an element lies.
result<reading> understand_i2s(const source& from);
void i2s_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out);

// tq.cpp: TQ1_0 and TQ2_0, blocks of 256 with an f16 scale at the end. `column` % 128 == 0 and
// `out` holds 128.
result<reading> understand_tq(const source& from);
void tq_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out);

// Whether one of the 2-bit fields is 3, which is no ternary value.
bool has_code_3(std::span<const std::byte> packed);
// Bytes of the canonical form of K x M elements.
uint64_t canonical_bytes(uint64_t k, uint64_t m);

}  // namespace bitnet::formats
