#pragma once
// Sets of characters: how they are made from a grammar, and looked up.

#include <map>
#include <span>

#include "grammar/rules.hpp"

namespace bitnet::grammar {

inline constexpr char32_t last_character = 0x10FFFF;

// Returns the ranges sorted and joined, without surrogates; if `negated`, all other characters. May
// be empty.
[[nodiscard]] character_class class_of(character_class ranges, bool negated);

// Whether some character from `first` to `last` is in the class.
[[nodiscard]] bool has_any(const character_class& of, char32_t first, char32_t last);

// Characters that most formats, JSON too, write unescaped in strings: all but control characters,
// '"', '\\' and U+007F. Most tokens of a vocabulary consist of them.
[[nodiscard]] const character_class& plain_characters();

// How many of the plain characters are in the class.
enum class share : uint8_t { none, some, all };
[[nodiscard]] share plain_share(const character_class& of);

// Numbers classes; equal ones get one number.
class class_list {
 public:
  explicit class_list(std::vector<character_class>& to) : to_(to) {}
  uint32_t number_of(const character_class& one);

 private:
  std::vector<character_class>& to_;
  std::map<character_class, uint32_t> known_;
};

}  // namespace bitnet::grammar
