#include "schema/number_texts.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "schema/pattern.hpp"

namespace bitnet::schema {
namespace {

constexpr uint32_t most_step = 2000;  // the automaton has a state for each remainder

std::string more_digits(std::size_t n) {
  return fmt::format("[0-9]{{{}}}", n);
}

// Whole parts with more digits than `whole`.
std::string longer(const std::string& whole) {
  return fmt::format("[1-9][0-9]{{{},}}", whole.size());
}

// Whole parts above `of`.
std::string above(const std::string& of) {
  std::string out = longer(of);
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i] < '9')
      out += fmt::format("|{}[{}-9]{}", of.substr(0, i), static_cast<char>(of[i] + 1),
                         more_digits(of.size() - i - 1));
  return out;
}

// Whole parts below `of`; "" where there are none.
std::string below(const std::string& of) {
  std::vector<std::string> out;
  if (of != "0" && of.size() > 1) {
    out.emplace_back("0");
    if (of.size() > 2)
      out.push_back(fmt::format("[1-9][0-9]{{0,{}}}", of.size() - 2));
    else
      out.emplace_back("[1-9]");
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    const char least = i == 0 && of.size() > 1 ? '1' : '0';
    if (of[i] > least)
      out.push_back(fmt::format("{}[{}-{}]{}", of.substr(0, i), least, static_cast<char>(of[i] - 1),
                                more_digits(of.size() - i - 1)));
  }
  return fmt::format("{}", fmt::join(out, "|"));
}

// Fractions with their point that are >= 0.digits, or > if `exclusive`.
std::string fraction_from(const std::string& digits, bool exclusive) {
  if (digits.empty()) return exclusive ? R"(\.[0-9]*[1-9][0-9]*)" : R"((?:\.[0-9]+)?)";
  std::string out = exclusive ? digits + "[0-9]*[1-9][0-9]*" : digits + "[0-9]*";
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (digits[i] < '9')
      out += fmt::format("|{}[{}-9][0-9]*", digits.substr(0, i), static_cast<char>(digits[i] + 1));
  return R"(\.(?:)" + out + ")";
}

// Fractions that are <= 0.digits, or < if `exclusive`; nullopt if there are none.
std::optional<std::string> fraction_to(const std::string& digits, bool exclusive) {
  if (digits.empty()) return exclusive ? std::nullopt : std::optional<std::string>(R"((?:\.0+)?)");
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0) out += "|" + digits.substr(0, i);
    if (digits[i] > '0')
      out += fmt::format("|{}[0-{}][0-9]*", digits.substr(0, i), static_cast<char>(digits[i] - 1));
  }
  if (!exclusive) out += "|" + digits + "0*";
  return R"((?:\.(?:)" + out.substr(1) + "))?";
}

// Magnitudes >= the bound, or > if it is exclusive.
std::string from(const number_bound& b, bool integer) {
  if (integer) {
    const std::string more = above(b.at.whole);
    return b.exclusive || !b.at.is_integer() ? more : b.at.whole + "|" + more;
  }
  return fmt::format(R"((?:{})(?:\.[0-9]+)?|{}{})", above(b.at.whole), b.at.whole,
                     fraction_from(b.at.fraction, b.exclusive));
}

// Magnitudes <= the bound, or < if it is exclusive; "" if there are none.
std::string upto(const number_bound& b, bool integer) {
  const std::string less = below(b.at.whole);
  std::vector<std::string> out;
  if (integer) {
    if (!less.empty()) out.push_back(less);
    if (!b.exclusive || !b.at.is_integer()) out.push_back(b.at.whole);
  } else {
    if (!less.empty()) out.push_back(fmt::format(R"((?:{})(?:\.[0-9]+)?)", less));
    if (const auto fraction = fraction_to(b.at.fraction, b.exclusive))
      out.push_back(b.at.whole + *fraction);
  }
  return fmt::format("{}", fmt::join(out, "|"));
}

// Magnitudes from `low` to `high` of numbers of one sign.
text_automaton magnitudes(const std::optional<number_bound>& low,
                          const std::optional<number_bound>& high, const numbers& of,
                          const std::string& sign, const std::string& where, faults& to) {
  const auto texts = [&](const std::string& pattern) {
    if (pattern.empty()) return text_automaton{};
    return texts_of_pattern(fmt::format("{}(?:{})", sign, pattern), matching::whole, where, to);
  };
  const number_bound zero;
  text_automaton out = texts(from(low.value_or(zero), of.integer));
  if (high) out = common(out, texts(upto(*high, of.integer)), to);
  return out;
}

// Unites two automata whose texts begin with different characters.
text_automaton either(text_automaton a, const text_automaton& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const auto shift = static_cast<uint32_t>(a.states.size());
  for (const auto& s : b.states) {
    a.states.push_back(s);
    for (auto& e : a.states.back().edges) e.to += shift;
  }
  auto& first = a.states[0].edges;
  for (auto e : b.states[0].edges) {
    e.to += shift;
    first.push_back(e);
  }
  std::ranges::sort(first);
  return a;
}

// Digits of the multiples of a number, with or without - in front.
text_automaton multiples(uint32_t by) {
  text_automaton out;
  out.states.resize(by + 1);
  const auto digits = [&](uint32_t remainder) {
    std::vector<text_automaton::edge> edges;
    for (uint32_t d = 0; d < 10; ++d)
      edges.push_back({{U'0' + d, U'0' + d}, 1 + (remainder * 10 + d) % by});
    return edges;
  };
  for (uint32_t r = 0; r < by; ++r) out.states[r + 1] = {.whole = r == 0, .edges = digits(r)};
  // The first state is that of remainder 0, where a sign may also come.
  out.states[0].edges = digits(0);
  out.states[0].edges.insert(out.states[0].edges.begin(), {{U'-', U'-'}, 1});
  return out;
}

std::optional<number_bound> negated(const std::optional<number_bound>& b) {
  if (!b) return {};
  return number_bound{b->at.negated(), b->exclusive};
}

bool is_below_zero(const std::optional<number_bound>& b) {
  return b && (b->at.negative || (b->at.is_zero() && b->exclusive));
}

text_automaton within_bounds(const numbers& of, const std::string& where, faults& to) {
  const number_bound zero;
  text_automaton out;
  if (!of.high || !of.high->at.negative) {  // some are not below 0
    const bool open = !of.low || of.low->at.negative;
    out = magnitudes(open ? std::optional(zero) : of.low, of.high, of, "", where, to);
  }
  if (!of.low || of.low->at.negative) {  // some are below 0
    const bool below = is_below_zero(of.high);
    const std::optional<number_bound> high = negated(of.low);
    out = either(std::move(out), magnitudes(below ? negated(of.high) : std::optional(zero), high,
                                            of, "-", where, to));
  }
  return out;
}

}  // namespace

numbers numbers::met(const numbers& other) const {
  numbers out = *this;
  out.integer = integer || other.integer;
  out.steps.insert(out.steps.end(), other.steps.begin(), other.steps.end());
  if (other.low && (!out.low || out.low->at < other.low->at ||
                    (out.low->at == other.low->at && other.low->exclusive)))
    out.low = other.low;
  if (other.high && (!out.high || other.high->at < out.high->at ||
                     (out.high->at == other.high->at && other.high->exclusive)))
    out.high = other.high;
  return out;
}

bool numbers::is_void() const {
  if (!low || !high) return false;
  return low->at > high->at || (low->at == high->at && (low->exclusive || high->exclusive));
}

bool can_step(const decimal& by) {
  if (by.negative || by.is_zero()) return false;
  if (by.is_integer()) return by <= decimal::of(most_step);
  return by.whole == "0" && by.fraction.find_first_not_of('0') == by.fraction.size() - 1 &&
         by.fraction.back() == '1';
}

text_automaton texts_of(const numbers& given, const std::string& where, faults& to) {
  numbers of = given;
  std::size_t digits = SIZE_MAX;  // the most digits behind the point
  for (const decimal& step : of.steps) {
    if (step.is_integer())
      of.integer = true;
    else
      digits = std::min(digits, step.fraction.size());
  }
  if (of.is_void()) return {};
  text_automaton out;
  if (!of.integer && !of.low && !of.high && of.steps.empty())
    return texts_of_pattern(R"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)",
                            matching::whole, where, to);
  if (of.low && of.high && of.low->at == of.high->at) {  // one number has one form
    if (!of.integer || of.low->at.is_integer())
      out = one_of({characters_of(of.low->at.text())}, to);
  } else {
    out = within_bounds(of, where, to);
  }
  if (!of.integer && digits != SIZE_MAX)
    out = common(out,
                 texts_of_pattern(fmt::format(R"(-?[0-9]+(?:\.[0-9]{{1,{}}})?)", digits),
                                  matching::whole, where, to),
                 to);
  for (const decimal& step : of.steps)
    if (step.is_integer())
      out = common(out, multiples(static_cast<uint32_t>(std::stoul(step.whole))), to);
  return out;
}

}  // namespace bitnet::schema
