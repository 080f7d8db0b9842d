#include "base/wording.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "text/printable.hpp"

namespace bitnet {
namespace {

constexpr std::size_t longest_words = 100;  // bytes: a message of bitnet_error has 407

struct word_row {
  std::string_view id, library;
};

#define BITNET_WORD_ROW(id, library, program) word_row{#id, library},
constexpr auto word_rows = std::to_array<word_row>({BITNET_WORDING(BITNET_WORD_ROW)});
#undef BITNET_WORD_ROW

// The process's names; the program sets them before its other calls.
struct program_words {
  std::mutex changing;
  std::array<std::optional<std::string>, word_rows.size()> texts;
};

program_words& of_program() {
  static auto& words = *new program_words;  // never destroyed: threads may outlive main
  return words;
}

std::string say_row(std::size_t row) {
  program_words& set = of_program();
  const std::scoped_lock lock(set.changing);
  return set.texts[row].value_or(std::string(word_rows[row].library));
}

// The row of an id, or how many rows there are.
std::size_t row_of(std::string_view id) {
  const auto* const found = std::ranges::find(word_rows, id, &word_row::id);
  return static_cast<std::size_t>(found - word_rows.begin());
}

}  // namespace

std::string say(word what) {
  return say_row(static_cast<std::size_t>(what));
}

std::string say_in(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    const std::size_t row = end == std::string_view::npos
                                ? word_rows.size()
                                : row_of(text.substr(at + 1, end - at - 1));
    if (row == word_rows.size()) {
      out += text[at];
      continue;
    }
    out += say_row(row);
    at = end;
  }
  return out;
}

result<void> set_wording(std::string_view id, const char* text) {
  const std::size_t row = row_of(id);
  if (row == word_rows.size())
    return fail(BITNET_NOT_FOUND, fmt::format("no message of this library says '{}'; the words are "
                                              "in docs/reference/wording.md",
                                              text::printable(id.substr(0, longest_words))));
  std::optional<std::string> said;
  if (text != nullptr) said = text;
  if (said && (said->empty() || said->size() > longest_words || text::printable(*said) != *said))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the words for {} are not one line of 1 to {} bytes of UTF-8", id,
                            longest_words));
  program_words& set = of_program();
  const std::scoped_lock lock(set.changing);
  set.texts[row] = std::move(said);
  return {};
}

}  // namespace bitnet
