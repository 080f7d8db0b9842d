#include "measure/number_list.hpp"

#include <fmt/format.h>

#include <optional>

#include "settings/value.hpp"
#include "text/items.hpp"

namespace bitnet::host::measure {
namespace {

struct range {
  int64_t first = 0, last = 0, step = 1;
  bool multiplies = false;

  [[nodiscard]] int64_t next(int64_t n) const { return multiplies ? n * step : n + step; }
  [[nodiscard]] bool ends() const { return multiplies ? step > 1 && first > 0 : step > 0; }
};

std::optional<range> range_of(std::string_view item) {
  const auto dash = item.find('-', 1);
  const auto first = parse_integer(item.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) return range{*first, *first, 1, false};
  const std::string_view rest = item.substr(dash + 1);
  // The first character may be a number's sign; a later sign begins a step.
  const auto sign = rest.empty() ? std::string_view::npos : rest.find_first_of("+*", 1);
  const auto last = parse_integer(rest.substr(0, sign));
  if (!last) return std::nullopt;
  if (sign == std::string_view::npos) return range{*first, *last, 1, false};
  const auto step = parse_integer(rest.substr(sign + 1));
  if (!step) return std::nullopt;
  return range{*first, *last, *step, rest[sign] == '*'};
}

}  // namespace

std::expected<std::vector<uint32_t>, std::string> number_list(std::string_view text,
                                                              uint32_t lowest, uint32_t highest) {
  std::vector<uint32_t> out;
  for (const std::string_view item : text::items(text)) {
    const auto all = range_of(item);
    if (!all || all->first < lowest || all->last > highest || all->last < all->first ||
        !all->ends())
      return std::unexpected(fmt::format("'{}'", text));
    // A number below 2^32 times a factor below 2^31 fits 64 bits.
    if (all->step > INT32_MAX) return std::unexpected(fmt::format("a step of {}", all->step));
    for (int64_t n = all->first; n <= all->last; n = all->next(n)) {
      if (out.size() == most_numbers)
        return std::unexpected(fmt::format("more than {} of them", most_numbers));
      out.push_back(static_cast<uint32_t>(n));
    }
  }
  return out;
}

}  // namespace bitnet::host::measure
