#pragma once
// Splits a list that a user writes as one text.

#include <string_view>
#include <vector>

namespace bitnet::text {

[[nodiscard]] constexpr std::string_view without_blanks_around(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const auto begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

// Splits at separators and trims blanks. Blanks inside an item stay, so that two words do not
// become one. Items may be empty.
[[nodiscard]] inline std::vector<std::string_view> items(std::string_view text,
                                                         char separator = ',') {
  std::vector<std::string_view> out;
  while (true) {
    const auto end = text.find(separator);
    out.push_back(without_blanks_around(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace bitnet::text
