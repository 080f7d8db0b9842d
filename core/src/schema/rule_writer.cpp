#include "schema/rule_writer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace bitnet::schema {
namespace {

constexpr uint32_t unbounded = std::numeric_limits<uint32_t>::max();

}  // namespace

grammar::rule_set rule_writer::run(const node& root) {
  begin();
  out_.root = rule_of(root);
  return finish();
}

grammar::rule_set rule_writer::run_arguments(const node& root) {
  begin();
  out_.root = new_rule();
  const argument_signs* signs = how_.arguments ? &*how_.arguments : nullptr;
  for (const choice& one : forms_.form_of(root)) {
    const auto* o = std::get_if<objects>(&one.is);
    if (o == nullptr || to_.any()) continue;
    to_.work_at(one.from == nullptr ? "#" : one.from->where());
    write(out_.root, *o, signs);
  }
  return finish();
}

void rule_writer::begin() {
  out_.elements.emplace_back();  // the end of the text
  blank_ = new_rule();
  sequence blank;
  add_literal(blank, " ");
  add(blank_, blank);
  add(blank_, {});
}

grammar::rule_set rule_writer::finish() {
  while (!todo_.empty() && !to_.any()) {
    const pending next = std::move(todo_.back());
    todo_.pop_back();
    for (const choice& one : forms_.form_of(next.of)) {
      if (to_.any()) break;
      to_.work_at(one.from == nullptr ? "#" : one.from->where());
      if (const auto* s = std::get_if<strings>(&one.is))
        write(next.rule, *s, next.bare);
      else
        write(next.rule, one);
    }
  }
  if (to_.any()) return {};
  if (!keep_what_ends(out_)) {
    to_.wrong("#", "no value is valid by the schema, or each one needs itself again as a part");
    return {};
  }
  return std::move(out_);
}

uint32_t rule_writer::rule_of(const node& of) {
  std::vector<uint32_t> key;
  for (const value* s : of) key.push_back(s->number);
  const auto [at, is_new] = rules_.try_emplace(std::move(key), 0);
  if (!is_new) return at->second;
  if (rules_.size() > most_nodes)
    to_.unsupported(
        fmt::format("more than {} different subschemas, merged ones included", most_nodes));
  at->second = new_rule();
  todo_.push_back({at->second, of});
  return at->second;
}

void rule_writer::write(uint32_t rule, const choice& one) {
  const std::string where = one.from == nullptr ? "#" : one.from->where();
  if (std::holds_alternative<nulls>(one.is)) {
    sequence text;
    add_literal(text, how_.null);
    add(rule, text);
  } else if (const auto* b = std::get_if<booleans>(&one.is)) {
    write(rule, *b);
  } else if (const auto* n = std::get_if<numbers>(&one.is)) {
    text_automaton texts = texts_of(*n, where, to_);
    if (!how_.numbers.empty()) texts = common(texts, number_limit(), to_);
    write_text(rule, texts, false);
  } else if (const auto* a = std::get_if<arrays>(&one.is)) {
    write(rule, *a);
  } else if (const auto* o = std::get_if<objects>(&one.is)) {
    write(rule, *o);
  }
}

void rule_writer::write(uint32_t rule, const booleans& of) {
  for (const bool truth : {true, false}) {
    if (!(truth ? of.yes : of.no)) continue;
    sequence text;
    add_literal(text, truth ? how_.yes : how_.no);
    add(rule, text);
  }
}

// Writes a rule for each number of items so far, which says what may follow.
void rule_writer::write(uint32_t rule, const arrays& of) {
  const uint32_t most = of.most.value_or(unbounded);
  const uint64_t last =
      of.most ? most : std::max<uint64_t>({of.first.size(), of.least, uint64_t{1}});
  if (!has_room(last * 6)) return;
  uint32_t at = new_rule();
  sequence begin;
  add_literal(begin, "[");
  begin.push_back(call(at));
  add(rule, begin);
  for (uint64_t i = 0; i <= last && !to_.any(); ++i) {
    if (i >= of.least) {
      sequence end;
      add_literal(end, "]");
      add(at, end);
    }
    if (i >= most) break;
    const uint32_t next = i < last ? new_rule() : at;
    sequence more;
    if (i > 0) add_separator(more, ',');
    more.push_back(call(rule_of(of.item(i))));
    more.push_back(call(next));
    add(at, more);
    at = next;
  }
}

void rule_writer::write(uint32_t rule, const objects& given, const argument_signs* signs) {
  objects of = given;
  if (signs != nullptr && !signs->unlisted) of.others.clear();
  if (!can_count(of)) return;
  std::vector<uint32_t> listed;
  for (const property& p : of.listed) {
    const auto member = member_rule(of, p, signs);
    if (!member) return;
    listed.push_back(*member);
  }
  const std::vector<uint32_t> others = other_members(of, signs);
  const bool counts = of.least > of.n_required() || of.most;
  const counted how{of.least, of.most.value_or(unbounded),
                    !counts   ? 1
                    : of.most ? std::max(*of.most, 1U)
                              : std::max(of.least, 1U)};
  if (!has_room((of.listed.size() + 1) * uint64_t{how.tracked} * 4)) return;
  const uint32_t first = new_rule();
  sequence begin;
  if (signs == nullptr) add_literal(begin, "{");
  begin.push_back(call(first));
  add(rule, begin);
  write_members(first, of, listed, others, how, signs);
}

// A rule without alternatives if the member is forbidden; nullopt past a bound.
std::optional<uint32_t> rule_writer::member_rule(const objects& of, const property& p,
                                                 const argument_signs* signs) {
  const uint32_t member = new_rule();
  const std::u32string name = characters_of(p.name);
  if (!std::ranges::all_of(of.names, [&](const shared_texts& n) { return n->accepts(name); }) ||
      !allowed().accepts(name))
    return member;
  if (!has_room(p.name.size() + 8)) return std::nullopt;
  sequence one;
  if (signs != nullptr) {
    add_argument(one, p, *signs);
  } else {
    add_quoted(one, p.name);
    add_separator(one, ':');
    one.push_back(call(rule_of(p.is)));
  }
  add(member, one);
  return member;
}

// Members of unlisted names may come twice, and then count as one.
bool rule_writer::can_count(const objects& of) {
  const bool exact = of.others.empty() || of.least <= of.n_required() + 1;
  if (!exact)
    to_.unsupported(
        fmt::format("minProperties of {} cannot be counted where members may have any "
                    "name, which may come twice; list them in required, or let "
                    "additionalProperties be false",
                    of.least));
  return exact;
}

// Makes a rule for a member of each class of names.
std::vector<uint32_t> rule_writer::other_members(const objects& of, const argument_signs* signs) {
  std::vector<uint32_t> out;
  if (of.others.empty()) return out;
  std::vector<std::u32string> listed;
  for (const property& p : of.listed) listed.push_back(characters_of(p.name));
  text_automaton free = common(all_but(one_of(listed, to_)), allowed(), to_);
  for (const shared_texts& names : of.names) free = common(free, *names, to_);
  if (signs != nullptr)
    free = common(free, texts_of_pattern(signs->names, matching::whole, "#", to_), to_);
  for (const name_class& one : of.others) {
    const text_automaton names = common(free, *one.names, to_);
    if (names.empty() || to_.any()) continue;
    const uint32_t member = new_rule();
    sequence text;
    if (signs != nullptr) {
      add_literal(text, signs->before_name);
      text.push_back(call(rules_of(names, false)));
      finish_argument(text, *signs, value_rule("", one.is, *signs));
    } else {
      add_literal(text, "\"");
      text.push_back(call(rules_of(names, true)));
      add_separator(text, ':');
      text.push_back(call(rule_of(one.is)));
    }
    add(member, text);
    out.push_back(member);
  }
  return out;
}

// Writes a rule for each place in the list and number of members so far, which says what may
// follow.
void rule_writer::write_members(uint32_t first, const objects& of,
                                const std::vector<uint32_t>& listed,
                                const std::vector<uint32_t>& others, const counted& how,
                                const argument_signs* signs) {
  std::map<std::pair<std::size_t, uint32_t>, uint32_t> known{{{0, 0}, first}};
  std::vector<std::pair<std::size_t, uint32_t>> todo{{0, 0}};
  const auto rest = [&](std::size_t place, uint32_t n) {
    const auto [at, is_new] = known.try_emplace({place, std::min(n, how.tracked)}, 0);
    if (is_new) {
      at->second = new_rule();
      todo.push_back(at->first);
    }
    return call(at->second);
  };
  while (!todo.empty() && !to_.any()) {
    const auto [place, n] = todo.back();
    todo.pop_back();
    const uint32_t rule = known.at({place, n});
    const auto add_member = [&](uint32_t member, std::size_t next) {
      if (n >= how.most) return;
      sequence text;
      if (n > 0 && signs != nullptr)
        add_literal(text, signs->between);
      else if (n > 0)
        add_separator(text, ',');
      text.push_back(call(member));
      text.push_back(rest(next, n + 1));
      add(rule, text);
    };
    if (place < listed.size()) {
      add_member(listed[place], place + 1);
      if (!of.listed[place].required) add(rule, {rest(place + 1, n)});
      continue;
    }
    for (const uint32_t member : others) add_member(member, place);
    // Required members are there, whether or not they were counted.
    if (n < std::min(how.least, how.tracked) && how.least > of.n_required()) continue;
    sequence end;
    if (signs == nullptr) add_literal(end, "}");
    add(rule, end);
  }
}

}  // namespace bitnet::schema
