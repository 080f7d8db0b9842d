#include "jinja/arithmetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/percent_format.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

constexpr int64_t smallest = std::numeric_limits<int64_t>::min();

value too_large(rendering& at) {
  return at.wrong("a number leaves the 64 bits that integers have here");
}

value whole_arithmetic(rendering& at, std::string_view sign, int64_t a, int64_t b) {
  int64_t out = 0;
  if (sign == "+") return __builtin_add_overflow(a, b, &out) ? too_large(at) : value(out);
  if (sign == "-") return __builtin_sub_overflow(a, b, &out) ? too_large(at) : value(out);
  if (sign == "*") return __builtin_mul_overflow(a, b, &out) ? too_large(at) : value(out);
  if (sign == "**") {
    if (b < 0)
      return a == 0 ? at.wrong("0 cannot be raised to a negative power")
                    : value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    if (a == 0 || a == 1) return value(b == 0 ? int64_t{1} : a);
    if (a == -1) return value(b % 2 == 0 ? int64_t{1} : int64_t{-1});
    out = 1;
    for (int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(out, a, &out)) return too_large(at);
    return value(out);
  }
  if (b == 0) return at.wrong("division by zero");
  if (sign == "/") return value(static_cast<double>(a) / static_cast<double>(b));
  if (a == smallest && b == -1) return too_large(at);
  const int64_t rest = a % b;
  const bool other_side = rest != 0 && (rest < 0) != (b < 0);
  if (sign == "//") return value(a / b - (other_side ? 1 : 0));
  return value(other_side ? rest + b : rest);
}

value real_arithmetic(rendering& at, std::string_view sign, double a, double b) {
  if (sign == "+") return value(a + b);
  if (sign == "-") return value(a - b);
  if (sign == "*") return value(a * b);
  if (sign == "**") {
    const double out = std::pow(a, b);
    if (!std::isfinite(out) && std::isfinite(a) && std::isfinite(b))
      return at.wrong("the power is no number that a float holds");
    if (std::isnan(out) && !std::isnan(a) && !std::isnan(b))
      return at.wrong("the power is no number that a float holds");
    return value(out);
  }
  if (b == 0) return at.wrong("division by zero");
  if (sign == "/") return value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (rest == 0) rest = std::copysign(0.0, b);
  if (sign == "%") return value(rest);
  double whole = (a - rest) / b;
  if (whole != 0) {
    const double below = std::floor(whole);
    whole = whole - below > 0.5 ? below + 1 : below;
  } else {
    whole = std::copysign(0.0, a / b);
  }
  return value(whole);
}

value repeated(rendering& at, const value& what, int64_t times) {
  const auto n = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  const bool is_text = what.is(kind::text);
  const uint64_t size = is_text ? what.marked().cost() : what.items().size();
  constexpr uint64_t far_too_many = uint64_t{1} << 40U;
  const uint64_t all = size == 0 ? 0 : n > far_too_many / size ? far_too_many : n * size;
  if (is_text) {
    // Copies pieces of whole repetitions.
    const uint64_t one = what.text().size();
    constexpr uint64_t some = 64 << 10;
    const uint64_t most = one == 0 || one > some ? one : some - some % one;
    if (!at.room(all + 4 * std::min(all, most) + 64)) return {};
    const uint64_t bytes = all > 0 ? n * one : 0;
    marked_text out;
    out.reserve(bytes);
    if (bytes > 0) out.append(what.marked());
    while (out.size() < bytes) {  // doubles within the granted room
      const marked_text more =
          out.part(0, std::min<uint64_t>({out.size(), bytes - out.size(), most}));
      out.append(more);
    }
    return at.kept(std::move(out));
  }
  list_maker out(at);
  if (!out.reserve(all) || !at.step(all)) return {};
  for (uint64_t i = 0; all > 0 && i < n; ++i)
    out.items().insert(out.items().end(), what.items().begin(), what.items().end());
  return what.is(kind::tuple) ? out.tuple() : out.list();
}

}  // namespace

value unsupported(rendering& at, std::string_view sign, const value& a, const value& b) {
  if (a.is(kind::undefined)) return at.wrong(a.why_undefined());
  if (b.is(kind::undefined)) return at.wrong(b.why_undefined());
  return at.wrong(fmt::format("unsupported operand types for {}: '{}' and '{}'", sign, type_name(a),
                              type_name(b)));
}

value arithmetic(rendering& at, std::string_view sign, const value& a, const value& b) {
  if (!at.step()) return {};
  if (a.is_whole() && b.is_whole()) return whole_arithmetic(at, sign, a.whole(), b.whole());
  if (a.is_number() && b.is_number()) return real_arithmetic(at, sign, a.number(), b.number());
  if (sign == "+") {
    if (a.is(kind::text) && b.is(kind::text)) {
      if (!at.room(2 * (a.text().size() + b.text().size()))) return {};
      marked_text out;
      out.reserve(a.text().size() + b.text().size());
      return at.kept(std::move(out.append(a.marked()).append(b.marked())));
    }
    if (a.is_sequence() && a.what() == b.what()) {
      const uint64_t all = a.items().size() + b.items().size();
      list_maker out(at);
      if (!out.reserve(all) || !at.step(all / 16)) return {};
      for (const value* part : {&a, &b})
        out.items().insert(out.items().end(), part->items().begin(), part->items().end());
      return a.is(kind::tuple) ? out.tuple() : out.list();
    }
  }
  if (sign == "*") {
    if ((a.is(kind::text) || a.is_sequence()) && b.is_whole()) return repeated(at, a, b.whole());
    if ((b.is(kind::text) || b.is_sequence()) && a.is_whole()) return repeated(at, b, a.whole());
  }
  if (sign == "%" && a.is(kind::text)) return percent_formatted(at, a.marked(), b);
  return unsupported(at, sign, a, b);
}

value negative(rendering& at, const value& a) {
  if (a.is(kind::real)) return {-a.number()};
  if (a.is_whole()) return a.whole() == smallest ? too_large(at) : value(-a.whole());
  if (a.is(kind::undefined)) return at.wrong(a.why_undefined());
  return at.wrong(fmt::format("a '{}' has no negative", type_name(a)));
}

value positive(rendering& at, const value& a) {
  if (a.is(kind::real)) return a;
  if (a.is_whole()) return {a.whole()};
  if (a.is(kind::undefined)) return at.wrong(a.why_undefined());
  return at.wrong(fmt::format("a '{}' is no number", type_name(a)));
}

}  // namespace bitnet::jinja
