#pragma once
// Python's operations on texts. Characters are code points, not bytes.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::jinja {

[[nodiscard]] std::string float_text(double d);  // repr(d)
// Parts of repr(text): its quote, and the characters that it escapes.
[[nodiscard]] char quote_of(std::string_view text);
[[nodiscard]] bool is_quoted_plainly(char32_t c, char quote);
[[nodiscard]] std::string quoted_character(char32_t c);
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text, int base);  // int(text, base)
[[nodiscard]] std::optional<double> parse_float(std::string_view text);           // float(text)

[[nodiscard]] bool is_space(char32_t c);   // str.isspace
[[nodiscard]] bool is_letter(char32_t c);  // str.isalpha
[[nodiscard]] bool is_digit(char32_t c);   // str.isdigit, for decimal digits
[[nodiscard]] bool is_upper(char32_t c);
[[nodiscard]] bool is_lower(char32_t c);

// Offsets of the `n` characters, and at the end the length.
[[nodiscard]] std::vector<std::size_t> borders(std::string_view text, std::size_t n);
[[nodiscard]] uint64_t count_characters(std::string_view text);
// Bytes of the first n characters; npos if the text has fewer.
[[nodiscard]] std::size_t bytes_of(std::string_view text, uint64_t n);
// The first character and its size in bytes; U+FFFD for an invalid byte. `text` is not empty.
struct character {
  char32_t code;
  std::size_t length;
};
[[nodiscard]] character first_character(std::string_view text);
[[nodiscard]] character last_character(std::string_view text);

// Simple one-to-one mappings, and ß to SS.
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string capitalized(std::string_view text);
[[nodiscard]] std::string titled(std::string_view text);            // str.title
[[nodiscard]] std::string titled_by_filter(std::string_view text);  // the filter title

enum class side : uint8_t { left = 1, right = 2, both = 3 };
// A set of characters. Takes 4 bytes for each that is not ASCII.
class character_set {
 public:
  explicit character_set(std::string_view of);
  [[nodiscard]] bool has(std::string_view character) const;  // its bytes

 private:
  std::array<bool, 128> ascii_{};
  std::vector<uint32_t> others_;
};
// `characters` nullptr: strips white space.
[[nodiscard]] std::string_view stripped(std::string_view text, side where,
                                        const character_set* characters = nullptr);
// Removes and returns the first line of `rest`, which is not empty.
[[nodiscard]] std::string_view take_line(std::string_view& rest, bool keep_ends);

}  // namespace bitnet::jinja
