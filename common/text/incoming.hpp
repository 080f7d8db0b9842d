#pragma once
// Text that people write, as it comes from files, pipes and editors of any system: the one place
// where it becomes the text that is meant.
//
// Dropped  a mark of UTF-8 (BOM) at the begin; the CR of each CR LF, so that a file of Windows
//          gives the tokens that the same file of Linux gives.
// Refused  UTF-16 and UTF-32, and bytes 0: they are no text, or none in UTF-8.
// Kept     all else, other CRs and bytes that are no UTF-8 among it: what they mean is for the code
//          that reads further. docs/reference/text-input.md

#include <expected>
#include <string>
#include <string_view>

namespace bitnet::text {

// What was expected and what helps, on one line, without the name of the source.
using complaint = std::string;

// A whole file, or all of a pipe.
[[nodiscard]] std::expected<std::string, complaint> incoming(std::string bytes);

// One line after the other, each without its LF.
class incoming_lines {
 public:
  [[nodiscard]] std::expected<std::string, complaint> next(std::string line);

 private:
  bool first_ = true;
};

}  // namespace bitnet::text
