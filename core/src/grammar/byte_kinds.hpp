#pragma once
// Kinds of bytes: bytes that no class of a grammar distinguishes, wherever they stand in a
// character.

#include <array>
#include <cstdint>
#include <span>

#include "grammar/rules.hpp"

namespace bitnet::grammar {

// Gives each byte the number of its kind; returns how many kinds there are.
std::size_t find_byte_kinds(std::span<const character_class> classes, std::array<uint8_t, 256>& of);

}  // namespace bitnet::grammar
