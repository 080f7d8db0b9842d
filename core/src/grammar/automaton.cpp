#include "grammar/automaton.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "grammar/byte_kinds.hpp"
#include "grammar/character_classes.hpp"

namespace bitnet::grammar {
namespace {

// Work of a frame that was not met before: a look-up in a hash table costs as much as this many
// frames that are only read.
constexpr uint64_t step_cost = 16;

// The lowest character of a length in bytes.
char32_t lowest(uint8_t length) {
  return length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
}

}  // namespace

automaton::automaton(rule_set rules, const bounds& most)
    : rules_(std::move(rules)), most_(most), returns_(rules_.rules.size()) {
  for (const character_class& one : rules_.classes) plain_.push_back(plain_share(one));
  n_kinds_ = find_byte_kinds(rules_.classes, kind_of_);
  begin();
}

void automaton::begin() {
  number_of({frame_sets::none, false, {}});  // dead
  complete_ = rules_.rules[rules_.root].can_be_empty;
  call(rules_.root, {0, frame_sets::end});
  start_ = closed();
}

automaton::state automaton::next(state s, std::string_view bytes) {
  for (const char byte : bytes) s = next(s, static_cast<unsigned char>(byte));
  return s;
}

automaton::state automaton::find_next(state s, unsigned char byte) {
  const contents from = states_[s];
  state to = dead;
  if (s != dead && !trouble_)
    to = from.read.missing == 0 ? after_first_byte(from, byte) : after_continuation(from, byte);
  table_[std::size_t{s} * n_kinds_ + kind_of_[byte]] = to;
  return to;
}

automaton::state automaton::after_first_byte(const contents& from, unsigned char byte) {
  if (byte < 0x80) return after_character(from.places, byte);
  if (byte < 0xC2 || byte > 0xF4) return dead;
  const uint8_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  const auto bits = static_cast<char32_t>(byte & (0x7FU >> length));
  return where_some_fit(from.places, {length, static_cast<uint8_t>(length - 1), bits});
}

automaton::state automaton::after_continuation(const contents& from, unsigned char byte) {
  if ((byte & 0xC0U) != 0x80) return dead;
  partial read = from.read;
  read.bits = read.bits << 6 | (byte & 0x3FU);
  --read.missing;
  return read.missing > 0 ? where_some_fit(from.places, read)
                          : after_character(from.places, read.bits);
}

// If each place takes all plain characters or none, they all lead to the same next state.
automaton::plain_run automaton::plain_characters_from(state s, uint32_t most) {
  if (s == dead || states_[s].read.missing > 0 || trouble_) return {0, false};
  plain_run out{0, true};
  while (out.length < most) {
    std::vector<frame> fitting;
    for (const frame& f : sets_.of(states_[s].places)) {
      const share how = plain_[rules_.elements[f.position].index];
      if (how == share::all) fitting.push_back(f);
      out.exact &= how != share::some;
    }
    if (fitting.empty()) return out;
    ++out.length;
    complete_ = false;
    for (const frame& f : fitting) follow({f.position + 1, f.below});
    met_.clear();
    const state next = closed();
    if (trouble_) return {0, false};
    if (next == s) out.length = most;  // and so on
    s = next;
  }
  return out;
}

// Keeps the places that a character with these first bytes can pass. Overlong forms have none,
// which shows before their last byte.
automaton::state automaton::where_some_fit(set_number places, partial read) {
  const uint32_t shift = 6U * read.missing;
  const char32_t first = std::max<char32_t>(read.bits << shift, lowest(read.length));
  const char32_t last = (read.bits << shift) | ((char32_t{1} << shift) - 1);
  if (first > last) return dead;
  std::vector<frame> fitting;
  for (const frame& f : sets_.of(places))
    if (has_any(rules_.classes[rules_.elements[f.position].index], first, last))
      fitting.push_back(f);
  if (!spend(fitting.size() + 1)) return dead;
  return number_of({numbered(fitting), false, read});
}

automaton::state automaton::after_character(set_number places, char32_t c) {
  complete_ = false;
  const auto at = sets_.of(places);  // valid, since no set is numbered in this loop
  if (!spend(at.size())) return dead;
  for (const frame& f : at)
    if (has_any(rules_.classes[rules_.elements[f.position].index], c, c))
      follow({f.position + 1, f.below});
  met_.clear();
  return closed();
}

// Follows a frame behind a character that was read: to the classes that may come next, through the
// ends of rules to the places behind their calls, and into rules that are called.
void automaton::follow(frame from) {
  todo_.push_back(from);
  while (!todo_.empty()) {
    const frame f = todo_.back();
    todo_.pop_back();
    const uint64_t key = uint64_t{f.position} << 32 | f.below;
    if (!met_.insert(key).second || !spend(step_cost)) continue;
    const element e = rules_.elements[f.position];
    if (f.position == 0) {
      complete_ = true;
    } else if (e.what == element::kind::character) {
      places_.push_back(f);
    } else if (e.what == element::kind::end) {
      const auto below = sets_.of(f.below);
      todo_.insert(todo_.end(), below.begin(), below.end());
    } else {
      call(e.index, {f.position + 1, f.below});
      if (rules_.rules[e.index].can_be_empty) todo_.push_back({f.position + 1, f.below});
    }
  }
}

// A call at the end of a rule returns to that rule's caller, so that repetitions need no depth.
void automaton::call(uint32_t rule, frame returns) {
  std::vector<frame>& to = returns_[rule];
  if (to.empty()) {
    called_.push_back(rule);
    std::ranges::push_heap(called_, std::ranges::greater{},
                           [&](uint32_t r) { return rules_.rules[r].rank; });
  }
  if (returns.position != 0 && rules_.elements[returns.position].what == element::kind::end) {
    const auto below = sets_.of(returns.below);
    to.insert(to.end(), below.begin(), below.end());
    spend(below.size());
  } else {
    to.push_back(returns);
  }
}

// Called in order of rank, so that everything that calls the rule has done so. Empty rules are
// handled where they are called, not here.
void automaton::expand(uint32_t rule) {
  std::vector<frame> returns = std::move(returns_[rule]);
  returns_[rule].clear();
  if (!spend(returns.size() + rules_.rules[rule].starts.size())) return;
  const set_number below = numbered(returns);
  if (sets_.depth(below) > deepest) return;
  for (uint32_t at : rules_.rules[rule].starts) {
    for (;; ++at) {
      const element e = rules_.elements[at];
      if (e.what == element::kind::character) places_.push_back({at, below});
      if (e.what != element::kind::rule) break;
      if (e.index != rule) call(e.index, {at + 1, below});
      if (!rules_.rules[e.index].can_be_empty) break;
      if (!spend(1)) return;
    }
  }
}

automaton::state automaton::closed() {
  while (!called_.empty()) {
    std::ranges::pop_heap(called_, std::ranges::greater{},
                          [&](uint32_t r) { return rules_.rules[r].rank; });
    const uint32_t rule = called_.back();
    called_.pop_back();
    expand(rule);
  }
  const set_number places = numbered(places_);
  places_.clear();
  return number_of({places, complete_, {}});
}

automaton::state automaton::number_of(const contents& one) {
  if (one.places == frame_sets::none && !one.complete && !states_.empty()) return dead;
  const uint64_t key = uint64_t{one.places} << 32 | uint64_t{one.complete} << 31 |
                       uint64_t{one.read.length} << 28 | uint64_t{one.read.missing} << 24 |
                       one.read.bits;
  const auto [at, is_new] = by_contents_.try_emplace(key, static_cast<state>(states_.size()));
  if (!is_new) return at->second;
  states_.push_back(one);
  table_.resize(table_.size() + n_kinds_, unknown);
  if (bytes() > most_.bytes && !trouble_)
    trouble_ = failure{BITNET_UNSUPPORTED,
                       fmt::format("the grammar has more ways to read this text than fit {} MiB; "
                                   "make it say less at once",
                                   most_.bytes >> 20)};
  return at->second;
}

// To number frames costs work: sets below them may be united.
set_number automaton::numbered(std::vector<frame>& frames) {
  const uint64_t before = sets_.work();
  const set_number out = sets_.number_of(frames);
  spend(sets_.work() - before);
  return out;
}

bool automaton::spend(uint64_t n) {
  work_ += n;
  if (work_ > most_.work && !trouble_)
    trouble_ =
        failure{BITNET_UNSUPPORTED,
                fmt::format("the grammar has more than {} ways to read this text at once, which "
                            "cannot be followed in good time; make it say less at once",
                            most_.work)};
  return !trouble_;
}

uint64_t automaton::bytes() const {
  constexpr uint64_t of_node = 48;  // of an unordered map, with its part of the table
  return sets_.bytes() + table_.size() * sizeof(state) +
         states_.size() * (sizeof(contents) + of_node);
}

automaton::state automaton::forget_others(state kept) {
  const contents one = states_[kept];
  frame_sets fewer;
  std::unordered_map<set_number, set_number> copied;
  const set_number places = sets_.copy_to(fewer, one.places, copied);
  sets_ = std::move(fewer);
  states_.clear();
  table_.clear();
  by_contents_.clear();
  begin();
  return kept == dead ? dead : number_of({places, one.complete, one.read});
}

}  // namespace bitnet::grammar
