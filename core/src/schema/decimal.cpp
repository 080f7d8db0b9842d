#include "schema/decimal.hpp"

#include <charconv>
#include <cstdint>

namespace bitnet::schema {
namespace {

constexpr std::size_t most_digits = 100;

std::strong_ordering magnitudes(const decimal& a, const decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() <=> b.whole.size();
  if (const auto order = a.whole <=> b.whole; order != 0) return order;
  return a.fraction <=> b.fraction;
}

}  // namespace

std::optional<decimal> decimal::parse(std::string_view text) {
  decimal out;
  out.negative = text.starts_with('-');
  if (out.negative) text.remove_prefix(1);
  int64_t exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (read.ec != std::errc{}) return {};
    text = text.substr(0, e);
  }
  const auto point = text.find('.');
  out.whole = text.substr(0, point);
  if (point != std::string_view::npos) out.fraction = text.substr(point + 1);
  constexpr auto most = static_cast<int64_t>(most_digits);
  if (out.whole.size() + out.fraction.size() > most_digits || exponent > most || exponent < -most)
    return {};
  for (; exponent > 0; --exponent) {
    out.whole += out.fraction.empty() ? '0' : out.fraction.front();
    if (!out.fraction.empty()) out.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    out.fraction.insert(0, 1, out.whole.empty() ? '0' : out.whole.back());
    if (!out.whole.empty()) out.whole.pop_back();
  }
  out.whole.erase(0, out.whole.find_first_not_of('0'));
  if (out.whole.empty()) out.whole = "0";
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  if (out.is_zero()) out.negative = false;
  if (out.whole.size() + out.fraction.size() > most_digits) return {};
  return out;
}

decimal decimal::negated() const {
  decimal out = *this;
  out.negative = !negative && !is_zero();
  return out;
}

decimal decimal::floor() const {
  decimal out{negative, whole, {}};
  if (negative && !fraction.empty()) {  // round away from 0
    std::size_t at = out.whole.size();
    while (at > 0 && out.whole[at - 1] == '9') out.whole[--at] = '0';
    if (at == 0)
      out.whole.insert(0, 1, '1');
    else
      ++out.whole[at - 1];
  }
  if (out.is_zero()) out.negative = false;
  return out;
}

std::string decimal::text() const {
  return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
}

std::strong_ordering decimal::operator<=>(const decimal& other) const {
  if (negative != other.negative)
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  return negative ? magnitudes(other, *this) : magnitudes(*this, other);
}

}  // namespace bitnet::schema
