#include "grammar/check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "grammar/text_reader.hpp"

namespace bitnet::grammar {
namespace {

constexpr std::size_t most_names = 6;  // of a cycle, in a message

// Which rules derive a text; without `characters`: the empty text. Looks at each element once,
// whatever the rules are.
std::vector<bool> deriving(const rule_set& of, bool characters) {
  struct alternative {
    uint32_t rule;
    uint32_t missing = 0;  // elements that are not known to derive a text
  };
  std::vector<alternative> alternatives;
  std::vector<std::vector<uint32_t>> used_by(of.rules.size());  // alternatives, by rule
  std::vector<bool> derives(of.rules.size(), false);
  std::vector<uint32_t> news;
  const auto note = [&](uint32_t rule) {
    if (!derives[rule]) news.push_back(rule);
    derives[rule] = true;
  };
  for (uint32_t r = 0; r < of.rules.size(); ++r) {
    for (const uint32_t start : of.rules[r].starts) {
      const auto number = static_cast<uint32_t>(alternatives.size());
      alternative& one = alternatives.emplace_back(r);
      for (const element* e = &of.elements[start]; e->what != element::kind::end; ++e) {
        if (e->what == element::kind::rule) used_by[e->index].push_back(number);
        if (e->what == element::kind::rule || !characters) ++one.missing;
      }
      if (one.missing == 0) note(r);
    }
  }
  while (!news.empty()) {
    const uint32_t rule = news.back();
    news.pop_back();
    for (const uint32_t number : used_by[rule])
      if (--alternatives[number].missing == 0) note(alternatives[number].rule);
  }
  return derives;
}

// Goes depth first, without recursion, from rules to those that they can begin with, and ranks each
// rule when it leaves it.
class ranking {
 public:
  explicit ranking(rule_set& of) : of_(of), met_(of.rules.size(), state::unknown) {}

  result<void> run() {
    next_rank_ = static_cast<uint32_t>(of_.rules.size());
    for (uint32_t r = 0; r < of_.rules.size(); ++r) {
      if (met_[r] != state::unknown) continue;
      enter(r);
      while (!path_.empty())
        if (auto ok = step(); !ok) return ok;
    }
    return {};
  }

 private:
  enum class state : uint8_t { unknown, on_path, ranked };
  struct visit {
    uint32_t rule;
    uint32_t alternative = 0;
    uint32_t position;  // in `elements`
  };

  void enter(uint32_t rule) {
    met_[rule] = state::on_path;
    path_.push_back({.rule = rule, .position = of_.rules[rule].starts.front()});
  }

  void leave() {
    const uint32_t rule = path_.back().rule;
    of_.rules[rule].rank = --next_rank_;
    met_[rule] = state::ranked;
    path_.pop_back();
  }

  // Looks at one element of the current alternative of the path's last rule.
  result<void> step() {
    visit& at = path_.back();
    const rule& r = of_.rules[at.rule];
    const element e = of_.elements[at.position];
    if (e.what != element::kind::rule) {
      if (++at.alternative == r.starts.size())
        leave();
      else
        at.position = r.starts[at.alternative];
      return {};
    }
    const bool is_last = of_.elements[at.position + 1].what == element::kind::end;
    const bool is_first = at.position == r.starts[at.alternative];
    if (of_.rules[e.index].can_be_empty) {
      ++at.position;
    } else if (++at.alternative < r.starts.size()) {
      at.position = r.starts[at.alternative];
    } else {
      --at.alternative;  // none is left: the next step finds the end
      while (of_.elements[at.position].what != element::kind::end) ++at.position;
    }
    // In x ::= y x an empty y adds no text, so this is allowed; repetitions are written so.
    if (e.index == at.rule && is_last && !is_first) return {};
    if (met_[e.index] == state::on_path) return begins_with_itself(e.index);
    if (met_[e.index] == state::unknown) enter(e.index);
    return {};
  }

  [[nodiscard]] result<void> begins_with_itself(uint32_t rule) const {
    std::vector<std::string> names;
    const auto first = std::ranges::find(path_, rule, &visit::rule);
    for (auto at = first; at != path_.end(); ++at)
      if (std::string name = shown_name(of_.name_of(at->rule));
          names.empty() || names.back() != name)
        names.push_back(std::move(name));
    if (names.size() > most_names) {
      names.resize(most_names);
      names.emplace_back("...");
    }
    if (names.size() == 1 || names.back() != names.front()) names.push_back(names.front());
    std::string cycle;
    for (const std::string& name : names) cycle += (cycle.empty() ? "" : " -> ") + name;
    return std::unexpected(wrong_at(
        of_.rules[rule].where,
        fmt::format("the rule '{}' can begin with itself ({}), which has no end; put what comes "
                    "first first, and repeat the rest: list ::= item (\",\" item)*",
                    shown_name(of_.name_of(rule)), cycle)));
  }

  rule_set& of_;
  std::vector<state> met_;
  std::vector<visit> path_;
  uint32_t next_rank_ = 0;
};

}  // namespace

result<void> check_rules(rule_set& of) {
  const std::vector<bool> ends = deriving(of, true);
  if (const auto at = std::ranges::find(ends, false); at != ends.end()) {
    const auto endless = static_cast<uint32_t>(at - ends.begin());
    return std::unexpected(
        wrong_at(of.rules[endless].where,
                 fmt::format("the rule '{}' has no end: each of its alternatives needs "
                             "it again; add one that does not",
                             shown_name(of.name_of(endless)))));
  }
  const std::vector<bool> empty = deriving(of, false);
  for (std::size_t r = 0; r < of.rules.size(); ++r) of.rules[r].can_be_empty = empty[r];
  return ranking(of).run();
}

}  // namespace bitnet::grammar
