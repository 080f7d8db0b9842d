// From the tree of a pattern to a deterministic automaton: Thompson's construction, then sets of
// its states.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "grammar/character_classes.hpp"
#include "schema/pattern.hpp"

namespace bitnet::schema {
namespace {

using grammar::last_character;

constexpr uint32_t no_place = std::numeric_limits<uint32_t>::max();

// A place of the pattern: reads a character, or goes on without one.
struct place {
  enum class what : uint8_t { reads, splits, begin, end, found };
  what is = what::splits;
  const grammar::character_class* set = nullptr;  // that it reads
  uint32_t to = no_place, other = no_place;
};

class builder {
 public:
  builder(const pattern_tree& tree, const std::string& where, faults& to)
      : tree_(tree), where_(where), to_(to) {}

  // Returns the first place; the last one is `found`.
  uint32_t build(matching how) {
    const uint32_t end = add({.is = place::what::found});
    if (how == matching::whole) {
      const uint32_t behind = add({.is = place::what::end, .to = end});
      const uint32_t inner = before(root(), behind);
      return add({.is = place::what::begin, .to = inner});
    }
    const uint32_t loop = add({});
    const uint32_t skip = add({.is = place::what::reads, .set = &any_, .to = loop});
    const uint32_t inner = before(root(), end);
    places_[loop].to = inner;
    places_[loop].other = skip;
    return loop;
  }

  [[nodiscard]] const std::vector<place>& places() const { return places_; }

 private:
  [[nodiscard]] uint32_t root() const { return static_cast<uint32_t>(tree_.size() - 1); }

  uint32_t add(place one) {
    if (places_.size() == most_states * 4)
      to_.unsupported(where_, fmt::format("the pattern has more than {} parts, its repetitions "
                                          "written out; make it smaller",
                                          most_states * 4));
    if (!to_.any()) places_.push_back(one);
    return static_cast<uint32_t>(places_.size() - 1);
  }

  // Returns the first place of a node that goes on at `next`. Recursion as deep as the groups.
  uint32_t before(uint32_t node, uint32_t next) {  // NOLINT(misc-no-recursion)
    if (!to_.spend(1)) return next;
    const pattern_node& n = tree_[node];
    switch (n.what) {
      case pattern_node::kind::set:
        return add({.is = place::what::reads, .set = &n.set, .to = next});
      case pattern_node::kind::begin:
        return add({.is = place::what::begin, .to = next});
      case pattern_node::kind::end:
        return add({.is = place::what::end, .to = next});
      case pattern_node::kind::join:
        for (auto at = n.parts.rbegin(); at != n.parts.rend(); ++at) next = before(*at, next);
        return next;
      case pattern_node::kind::either: {
        uint32_t out = before(n.parts.back(), next);
        for (auto at = n.parts.rbegin() + 1; at != n.parts.rend(); ++at) {
          const uint32_t one = before(*at, next);
          out = add({.to = one, .other = out});
        }
        return out;
      }
      case pattern_node::kind::repeat:
        return repeated(n, next);
    }
    return next;
  }

  uint32_t repeated(const pattern_node& n, uint32_t next) {  // NOLINT(misc-no-recursion)
    uint32_t out = next;
    if (n.most == pattern_node::endless) {
      out = add({});
      const uint32_t inner = before(n.parts[0], out);
      if (!to_.any()) {
        places_[out].to = inner;
        places_[out].other = next;
      }
    } else {
      for (uint32_t i = n.least; i < n.most && !to_.any(); ++i) {
        const uint32_t inner = before(n.parts[0], out);
        out = add({.to = inner, .other = next});
      }
    }
    for (uint32_t i = 0; i < n.least && !to_.any(); ++i) out = before(n.parts[0], out);
    return out;
  }

  const pattern_tree& tree_;
  const std::string& where_;
  faults& to_;
  std::vector<place> places_;
  grammar::character_class any_{{0, last_character}};
};

class sets_of_places {
 public:
  sets_of_places(const std::vector<place>& places, matching how, const std::string& where,
                 faults& to)
      : places_(places), how_(how), where_(where), to_(to), seen_(places.size(), 0) {}

  text_automaton run(uint32_t first) {
    number_of({first}, true);
    for (std::size_t i = 0; i < sets_.size() && !to_.any(); ++i) {
      if (sets_[i].size() == 1 && places_[sets_[i][0]].is == place::what::found &&
          how_ == matching::found) {
        out_.states[i].edges = {{{0, last_character}, static_cast<uint32_t>(i)}};
        continue;
      }
      read(static_cast<uint32_t>(i));
    }
    if (to_.any()) return {};
    trim(out_);
    return std::move(out_);
  }

 private:
  using place_set = std::vector<uint32_t>;

  // All places that can be reached without a character; `at_end`: at the end of the text.
  place_set closed(const place_set& from, bool at_begin, bool at_end) {
    ++round_;
    place_set out, todo = from;
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == no_place || seen_[at] == round_) continue;
      seen_[at] = round_;
      if (!to_.spend(1)) return {};
      const place& p = places_[at];
      const bool passes = p.is == place::what::splits || (p.is == place::what::begin && at_begin) ||
                          (p.is == place::what::end && at_end);
      if (passes) {
        todo.push_back(p.to);
        if (p.is == place::what::splits) todo.push_back(p.other);
      } else if (p.is != place::what::begin) {
        out.push_back(at);
      }
    }
    std::ranges::sort(out);
    return out;
  }

  [[nodiscard]] bool has_found(const place_set& in) const {
    return std::ranges::any_of(in, [&](uint32_t p) { return places_[p].is == place::what::found; });
  }

  uint32_t number_of(const place_set& from, bool at_begin) {
    place_set set = closed(from, at_begin, false);
    const bool whole = has_found(closed(from, at_begin, true));
    if (how_ == matching::found && has_found(set))  // it is found, whatever follows
      std::erase_if(set, [&](uint32_t p) { return places_[p].is != place::what::found; });
    const auto [at, is_new] =
        known_.try_emplace({set, at_begin}, static_cast<uint32_t>(sets_.size()));
    if (!is_new) return at->second;
    if (sets_.size() == most_states)
      to_.unsupported(where_, fmt::format("the pattern needs more than {} states; anchor it by ^ "
                                          "and $, or make its repetitions smaller",
                                          most_states));
    sets_.push_back(std::move(set));
    out_.states.push_back({.whole = whole, .edges = {}});
    return at->second;
  }

  void read(uint32_t from) {
    const place_set set = sets_[from];
    std::vector<char32_t> bounds;
    for (const uint32_t p : set)
      if (places_[p].is == place::what::reads)
        for (const auto& r : *places_[p].set) {
          bounds.push_back(r.first);
          bounds.push_back(r.last + 1);
        }
    std::ranges::sort(bounds);
    bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (!to_.spend(set.size())) return;
      place_set next;
      for (const uint32_t p : set)
        if (places_[p].is == place::what::reads &&
            grammar::has_any(*places_[p].set, bounds[i], bounds[i]))
          next.push_back(places_[p].to);
      if (next.empty()) continue;
      const uint32_t number = number_of(next, false);
      if (to_.any()) return;
      auto& edges = out_.states[from].edges;
      if (!edges.empty() && edges.back().to == number && edges.back().on.last + 1 == bounds[i])
        edges.back().on.last = bounds[i + 1] - 1;
      else
        edges.push_back({{bounds[i], bounds[i + 1] - 1}, number});
    }
  }

  const std::vector<place>& places_;
  const matching how_;
  const std::string& where_;
  faults& to_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
  std::map<std::pair<place_set, bool>, uint32_t> known_;
  std::vector<place_set> sets_;
  text_automaton out_;
};

}  // namespace

text_automaton texts_of(const pattern_tree& of, matching how, const std::string& where,
                        faults& to) {
  builder places(of, where, to);
  const uint32_t first = places.build(how);
  if (to.any()) return {};
  return sets_of_places(places.places(), how, where, to).run(first);
}

}  // namespace bitnet::schema
