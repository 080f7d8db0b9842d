#include "settings/value.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <memory>

namespace bitnet::host {
namespace {

constexpr std::size_t longest_quoted = 60;  // bytes of a bad value in a message

std::unexpected<failure> expects(std::string_view what, std::string_view found) {
  std::string shown;
  for (const char c : found.substr(0, longest_quoted)) {
    shown += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  if (found.size() > longest_quoted) shown += "...";
  return fail(exit_code::usage, fmt::format("expects {}, found '{}'", what, shown));
}

std::string range_of(const option& row) {
  if (row.lowest == row.highest) return "";
  return fmt::format(" from {} to {}", row.lowest, row.highest);
}

bool in_range(const option& row, double number) {
  return row.lowest == row.highest || (number >= row.lowest && number <= row.highest);
}

bool is_choice(std::string_view choices, std::string_view text) {
  if (text.empty() || text.find('|') != std::string_view::npos) return false;
  const std::string fenced = fmt::format("|{}|", choices);
  return fenced.find(fmt::format("|{}|", text)) != std::string::npos;
}

int64_t multiplier(char suffix) {
  switch (suffix) {
    case 'k':
      return 1000;
    case 'm':
      return int64_t{1000} * 1000;
    case 'g':
      return int64_t{1000} * 1000 * 1000;
    case 'K':
      return int64_t{1} << 10;
    case 'M':
      return int64_t{1} << 20;
    case 'G':
      return int64_t{1} << 30;
    default:
      return 1;
  }
}

}  // namespace

std::optional<bool> parse_bool(std::string_view text) {
  for (const std::string_view yes : {"1", "true", "on", "yes", "enabled"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "off", "no", "disabled"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t number = 0;
  const char* const begin = std::to_address(text.begin());
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc{}) return std::nullopt;
  if (rest == end) return number;
  const int64_t factor = multiplier(*rest);
  if (rest + 1 != end || factor == 1) return std::nullopt;
  if (__builtin_mul_overflow(number, factor, &number)) return std::nullopt;
  return number;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const char* const begin = std::to_address(text.begin());
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || rest != end || std::isnan(number)) return std::nullopt;
  return number;
}

result<value> parse_value(const option& row, std::string_view text) {
  switch (row.type) {
    case kind::flag:
      if (const auto yes = parse_bool(text)) return *yes;
      return expects("true or false", text);
    case kind::integer:
      if (const auto number = parse_integer(text);
          number && in_range(row, static_cast<double>(*number))) {
        return *number;
      }
      return expects(fmt::format("a whole number{}", range_of(row)), text);
    case kind::real:
      if (const auto number = parse_real(text); number && in_range(row, *number)) return *number;
      return expects(fmt::format("a number{}", range_of(row)), text);
    case kind::choice:
      if (is_choice(row.choices, text)) return std::string(text);
      return expects(fmt::format("one of {}", row.choices), text);
    case kind::text:
      return std::string(text);
    case kind::list:
      return std::vector<std::string>{std::string(text)};
  }
  return fail(exit_code::failure, "unknown kind of option");
}

}  // namespace bitnet::host
