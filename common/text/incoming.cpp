#include "text/incoming.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::text {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF"sv;

// Name of a UTF-16 or UTF-32 form; "" if the text may be UTF-8.
std::string_view wide_form(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (bytes.starts_with("\xFF\xFE"sv) || bytes.starts_with("\xFE\xFF"sv)) return "UTF-16";
  // Without a mark: in UTF-16 of European letters every other byte is 0.
  constexpr std::size_t looked_at = 256;
  const std::string_view start = bytes.substr(0, looked_at);
  std::size_t zeros[2] = {};
  for (std::size_t i = 0; i < start.size(); ++i) zeros[i % 2] += start[i] == '\0' ? 1 : 0;
  const std::size_t half = start.size() / 2;
  const bool one_side = (zeros[0] == 0) != (zeros[1] == 0);
  return half > 0 && one_side && std::max(zeros[0], zeros[1]) * 2 > half ? "UTF-16" : "";
}

void check_first_bytes(std::string_view bytes, complaint& why) {
  if (const std::string_view form = wide_form(bytes); !form.empty())
    why = "it is " + std::string(form) +
          ", and text is UTF-8 here; save it as UTF-8, or convert it: iconv -f " +
          std::string(form) + " -t UTF-8";
}

void check_zeros(std::string_view bytes, complaint& why) {
  if (const auto at = bytes.find('\0'); why.empty() && at != std::string_view::npos)
    why = "it has a byte 0 at offset " + std::to_string(at) +
          ", which no text has; is it the right file?";
}

void drop_mark(std::string& bytes) {
  if (bytes.starts_with(utf8_mark)) bytes.erase(0, utf8_mark.size());
}

void drop_returns(std::string& bytes) {
  auto to = bytes.begin();
  for (auto from = bytes.begin(); from != bytes.end(); ++from) {
    const bool before_end = from + 1 != bytes.end() && *(from + 1) == '\n';
    if (*from != '\r' || !before_end) *to++ = *from;
  }
  bytes.erase(to, bytes.end());
}

}  // namespace

std::expected<std::string, complaint> incoming(std::string bytes) {
  complaint why;
  check_first_bytes(bytes, why);
  check_zeros(bytes, why);
  if (!why.empty()) return std::unexpected(std::move(why));
  drop_mark(bytes);
  drop_returns(bytes);
  return bytes;
}

std::expected<std::string, complaint> incoming_lines::next(std::string line) {
  complaint why;
  const bool first = std::exchange(first_, false);
  if (first) check_first_bytes(line, why);
  check_zeros(line, why);
  if (!why.empty()) return std::unexpected(std::move(why));
  if (first) drop_mark(line);
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace bitnet::text
