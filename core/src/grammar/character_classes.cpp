#include "grammar/character_classes.hpp"

#include <algorithm>

namespace bitnet::grammar {
namespace {

constexpr code_range surrogates{0xD800, 0xDFFF};

character_class joined(character_class ranges) {
  std::ranges::sort(ranges);
  character_class out;
  for (const code_range& r : ranges) {
    if (!out.empty() && r.first <= out.back().last + 1)
      out.back().last = std::max(out.back().last, r.last);
    else
      out.push_back(r);
  }
  return out;
}

character_class all_but(const character_class& of) {
  character_class out;
  char32_t next = 0;
  for (const code_range& r : of) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= last_character) out.push_back({next, last_character});
  return out;
}

}  // namespace

character_class class_of(character_class ranges, bool negated) {
  // The characters outside both the excluded ones and the surrogates.
  if (!negated) ranges = all_but(joined(std::move(ranges)));
  ranges.push_back(surrogates);
  return all_but(joined(std::move(ranges)));
}

bool has_any(const character_class& of, char32_t first, char32_t last) {
  const auto at = std::ranges::lower_bound(of, first, {}, &code_range::last);
  return at != of.end() && at->first <= last;
}

const character_class& plain_characters() {
  static const character_class plain{
      {0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0xD7FF}, {0xE000, last_character}};
  return plain;
}

share plain_share(const character_class& of) {
  bool any = false;
  bool all = true;
  for (const code_range& p : plain_characters()) {
    any |= has_any(of, p.first, p.last);
    const auto at = std::ranges::lower_bound(of, p.first, {}, &code_range::last);
    all &= at != of.end() && at->first <= p.first && p.last <= at->last;
  }
  return all ? share::all : any ? share::some : share::none;
}

uint32_t class_list::number_of(const character_class& one) {
  const auto [at, is_new] = known_.try_emplace(one, static_cast<uint32_t>(to_.size()));
  if (is_new) to_.push_back(one);
  return at->second;
}

}  // namespace bitnet::grammar
