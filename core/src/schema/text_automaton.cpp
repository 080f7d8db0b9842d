#include "schema/text_automaton.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/utf8.hpp"
#include "grammar/character_classes.hpp"

namespace bitnet::schema {
namespace {

using edge = text_automaton::edge;
using grammar::last_character;

uint32_t add(text_automaton& to, faults& wrong) {
  if (to.states.size() == most_states)
    wrong.unsupported(
        fmt::format("a string or number needs more than {} states, for its "
                    "pattern, length, or the names that it must not have; make "
                    "these smaller",
                    most_states));
  to.states.emplace_back();
  return static_cast<uint32_t>(to.states.size() - 1);
}

}  // namespace

bool text_automaton::is_any() const {
  constexpr grammar::code_range all{0, last_character};
  return states.size() == 1 && states[0].whole && states[0].edges.size() == 1 &&
         states[0].edges[0].on == all;
}

bool text_automaton::accepts(std::u32string_view text) const {
  if (empty()) return false;
  uint32_t at = 0;
  for (const char32_t c : text) {
    const auto& edges = states[at].edges;
    const auto found =
        std::ranges::lower_bound(edges, c, {}, [](const edge& e) { return e.on.last; });
    if (found == edges.end() || found->on.first > c) return false;
    at = found->to;
  }
  return states[at].whole;
}

std::u32string characters_of(std::string_view utf8) {
  std::u32string out;
  while (!utf8.empty()) {
    const auto one = first_utf8_char(utf8);
    out.push_back(one.code_point);
    utf8.remove_prefix(one.length);
  }
  return out;
}

text_automaton any_text() {
  text_automaton out;
  out.states.push_back({.whole = true, .edges = {{{0, last_character}, 0}}});
  return out;
}

text_automaton texts_of_length(uint32_t least, std::optional<uint32_t> most, faults& to) {
  text_automaton out;
  const uint32_t last = most.value_or(least);
  if (!to.spend(std::min(last, most_states)) || last < least) return {};
  for (uint32_t i = 0; i <= last && !to.any(); ++i) {
    const uint32_t at = add(out, to);
    out.states[at].whole = i >= least;
    if (i < last)
      out.states[at].edges = {{{0, last_character}, at + 1}};
    else if (!most)
      out.states[at].edges = {{{0, last_character}, at}};
  }
  return to.any() ? text_automaton{} : out;
}

text_automaton one_of(const std::vector<std::u32string>& texts, faults& to) {
  text_automaton out;
  add(out, to);
  for (const std::u32string& text : texts) {
    uint32_t at = 0;
    for (const char32_t c : text) {
      const auto& edges = out.states[at].edges;
      const auto known =
          std::ranges::lower_bound(edges, c, {}, [](const edge& e) { return e.on.last; });
      const auto place = known - edges.begin();
      if (known != edges.end() && known->on.first == c) {
        at = known->to;
        continue;
      }
      if (!to.spend(edges.size() + 1)) return {};
      const uint32_t next = add(out, to);  // moves the states
      auto& into = out.states[at].edges;
      into.insert(into.begin() + place, {{c, c}, next});
      at = next;
    }
    out.states[at].whole = true;
  }
  return texts.empty() || to.any() ? text_automaton{} : out;
}

text_automaton all_but(const text_automaton& of) {
  if (of.empty()) return any_text();
  text_automaton out = of;
  const auto rest = static_cast<uint32_t>(out.states.size());
  for (auto& s : out.states) {
    s.whole = !s.whole;
    std::vector<edge> all;
    char32_t next = 0;
    for (const edge& e : s.edges) {
      if (e.on.first > next) all.push_back({{next, e.on.first - 1}, rest});
      all.push_back(e);
      next = e.on.last + 1;
    }
    if (next <= last_character) all.push_back({{next, last_character}, rest});
    s.edges = std::move(all);
  }
  out.states.push_back({.whole = true, .edges = {{{0, last_character}, rest}}});
  trim(out);
  return out;
}

text_automaton common(const text_automaton& a, const text_automaton& b, faults& to) {
  text_automaton out;
  if (a.empty() || b.empty()) return out;
  std::unordered_map<uint64_t, uint32_t> known;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number_of = [&](uint32_t x, uint32_t y) {
    const auto [at, is_new] = known.try_emplace(uint64_t{x} << 32 | y, 0);
    if (is_new) {
      at->second = add(out, to);
      out.states.back().whole = a.states[x].whole && b.states[y].whole;
      pairs.emplace_back(x, y);
    }
    return at->second;
  };
  number_of(0, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [x, y] = pairs[i];
    const auto& left = a.states[x].edges;
    const auto& right = b.states[y].edges;
    if (!to.spend(left.size() + right.size() + 1)) return {};
    for (std::size_t l = 0, r = 0; l < left.size() && r < right.size();) {
      const char32_t first = std::max(left[l].on.first, right[r].on.first);
      const char32_t last = std::min(left[l].on.last, right[r].on.last);
      if (first <= last) {
        const uint32_t next = number_of(left[l].to, right[r].to);
        out.states[i].edges.push_back({{first, last}, next});
      }
      ++(left[l].on.last < right[r].on.last ? l : r);
    }
  }
  trim(out);
  return out;
}

void trim(text_automaton& of) {
  const std::size_t n = of.states.size();
  std::vector<std::vector<uint32_t>> before(n);
  std::vector<uint32_t> todo;
  std::vector<bool> ends(n, false);
  for (uint32_t s = 0; s < n; ++s) {
    for (const edge& e : of.states[s].edges) before[e.to].push_back(s);
    if (of.states[s].whole) todo.push_back(s);
    ends[s] = of.states[s].whole;
  }
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const uint32_t s : before[at])
      if (!ends[s]) {
        ends[s] = true;
        todo.push_back(s);
      }
  }
  if (n == 0 || !ends[0]) return of.states.clear();
  std::vector<uint32_t> number(n, 0);
  uint32_t next = 0;
  for (uint32_t s = 0; s < n; ++s)
    if (ends[s]) number[s] = next++;
  text_automaton out;
  for (uint32_t s = 0; s < n; ++s) {
    if (!ends[s]) continue;
    auto& to = out.states.emplace_back();
    to.whole = of.states[s].whole;
    for (const edge& e : of.states[s].edges)
      if (ends[e.to]) to.edges.push_back({e.on, number[e.to]});
  }
  of = std::move(out);
}

}  // namespace bitnet::schema
