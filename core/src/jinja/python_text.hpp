#pragma once
// Texts as Python writes, cuts and changes them: characters are code points, never bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::jinja {

[[nodiscard]] std::string float_text(double d);                                   // repr(d)
[[nodiscard]] std::string quoted(std::string_view text);                          // repr(text)
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text, int base);  // int(text, base)
[[nodiscard]] std::optional<double> parse_float(std::string_view text);           // float(text)

[[nodiscard]] bool is_space(char32_t c);   // str.isspace
[[nodiscard]] bool is_letter(char32_t c);  // str.isalpha
[[nodiscard]] bool is_digit(char32_t c);   // str.isdigit, for decimal digits
[[nodiscard]] bool is_upper(char32_t c);
[[nodiscard]] bool is_lower(char32_t c);

// Where each character begins, and past the last one the length: size is characters + 1.
[[nodiscard]] std::vector<std::size_t> borders(std::string_view text);
[[nodiscard]] uint64_t count_characters(std::string_view text);
// The first character and its bytes; U+FFFD for a byte that is none. `text` must not be empty.
struct character {
  char32_t code;
  std::size_t length;
};
[[nodiscard]] character first_character(std::string_view text);
[[nodiscard]] character last_character(std::string_view text);

// By simple mappings of one character to one, and ß to SS.
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string capitalized(std::string_view text);
[[nodiscard]] std::string titled(std::string_view text);            // str.title
[[nodiscard]] std::string titled_by_filter(std::string_view text);  // the filter title

enum class side : uint8_t { left = 1, right = 2, both = 3 };
// `characters` nullopt: white space.
[[nodiscard]] std::string_view stripped(std::string_view text, side where,
                                        std::optional<std::string_view> characters = {});
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);

}  // namespace bitnet::jinja
