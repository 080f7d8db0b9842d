#pragma once
// Normalises text that a user wrote, from files, pipes and editors of any system. All such text
// passes here.
//
// Dropped  a mark of UTF-8 (BOM) at the begin; the CR of each CR LF, so that a file of Windows
//          gives the tokens that the same file of Linux gives.
// Rejected  UTF-16 and UTF-32, and bytes 0: they are no text, or none in UTF-8.
// Kept     all other bytes, also other CRs and invalid UTF-8: the code that parses the text decides
//          on them. docs/reference/text-input.md

#include <expected>
#include <string>
#include <string_view>

namespace bitnet::text {

// One line: what was expected and what helps. It does not name the source of the text.
using complaint = std::string;

// Normalises a whole file, or all that a pipe gave.
[[nodiscard]] std::expected<std::string, complaint> incoming(std::string bytes);

// Normalises a text that comes line by line; lines have no LF.
class incoming_lines {
 public:
  [[nodiscard]] std::expected<std::string, complaint> next(std::string line);

 private:
  bool first_ = true;
};

}  // namespace bitnet::text
