#pragma once
// Bytes that no class of a grammar distinguishes, wherever in a character they stand.

#include <array>
#include <cstdint>
#include <span>

#include "grammar/rules.hpp"

namespace bitnet::grammar {

// Gives each byte the number of its kind; how many kinds there are.
std::size_t find_byte_kinds(std::span<const character_class> classes, std::array<uint8_t, 256>& of);

}  // namespace bitnet::grammar
