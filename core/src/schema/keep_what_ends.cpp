#include <algorithm>
#include <utility>

#include "schema/rule_writer.hpp"

namespace bitnet::schema {
namespace {

using grammar::element;
using grammar::rule_set;

constexpr uint32_t left_out = 0xffffffff;

// Which rules derive a text.
std::vector<bool> ending(const rule_set& of) {
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> used_by(of.rules.size());
  std::vector<std::vector<uint32_t>> missing(of.rules.size());  // rules of each alternative
  std::vector<bool> ends(of.rules.size(), false);
  std::vector<uint32_t> news;
  for (uint32_t r = 0; r < of.rules.size(); ++r)
    for (uint32_t a = 0; a < of.rules[r].starts.size(); ++a) {
      uint32_t n = 0;
      for (const element* e = &of.elements[of.rules[r].starts[a]]; e->what != element::kind::end;
           ++e)
        if (e->what == element::kind::rule) {
          used_by[e->index].emplace_back(r, a);
          ++n;
        }
      missing[r].push_back(n);
      if (n == 0 && !ends[r]) {
        ends[r] = true;
        news.push_back(r);
      }
    }
  while (!news.empty()) {
    const uint32_t rule = news.back();
    news.pop_back();
    for (const auto& [r, a] : used_by[rule])
      if (--missing[r][a] == 0 && !ends[r]) {
        ends[r] = true;
        news.push_back(r);
      }
  }
  return ends;
}

}  // namespace

bool keep_what_ends(rule_set& of) {
  const std::vector<bool> ends = ending(of);
  if (!ends[of.root]) return false;
  const auto is_kept = [&](uint32_t start) {
    for (const element* e = &of.elements[start]; e->what != element::kind::end; ++e)
      if (e->what == element::kind::rule && !ends[e->index]) return false;
    return true;
  };
  rule_set out;
  out.classes = std::move(of.classes);
  out.elements.emplace_back();
  std::vector<uint32_t> number(of.rules.size(), left_out), order;
  const auto number_of = [&](uint32_t rule) {
    if (number[rule] == left_out) {
      number[rule] = static_cast<uint32_t>(order.size());
      order.push_back(rule);
      out.rules.push_back({.name = "value", .named_by = number[rule], .where = {}});
    }
    return number[rule];
  };
  out.root = number_of(of.root);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const uint32_t start : of.rules[order[i]].starts) {
      if (!is_kept(start)) continue;
      out.rules[i].starts.push_back(static_cast<uint32_t>(out.elements.size()));
      for (const element* e = &of.elements[start]; e->what != element::kind::end; ++e)
        out.elements.push_back(
            {e->what, e->what == element::kind::rule ? number_of(e->index) : e->index});
      out.elements.emplace_back();
    }
  of = std::move(out);
  return true;
}

}  // namespace bitnet::schema
