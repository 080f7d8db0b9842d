#include "http/request_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <cstdint>
#include <limits>

namespace bitnet::host::http {
namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

struct request_reader::beast {
  beast_http::request_parser<beast_http::string_body> parser;
};

namespace {

constexpr std::string_view end_of_head = "\r\n\r\n";

bool has_word(std::string_view list, std::string_view word) {  // "keep-alive, Upgrade"
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
    if (std::ranges::equal(one, word, same)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Whether `text` begins with `with`, or may do so once more bytes have come.
bool begins_alike(std::string_view text, std::string_view with) {
  return text.starts_with(with.substr(0, text.size()));
}

}  // namespace

request_reader::request_reader(const limits& bounds) : bounds_(bounds) {}
request_reader::request_reader(request_reader&&) noexcept = default;
request_reader& request_reader::operator=(request_reader&&) noexcept = default;
request_reader::~request_reader() = default;

void request_reader::reject(rejection why) {
  reason_ = std::move(why);
  at_ = state::rejected;
}

std::size_t request_reader::body_size() const {
  return beast_ ? beast_->parser.get().body().size() : 0;
}

std::size_t request_reader::take(std::string_view bytes) {
  if (at_ == state::head) return take_head(bytes);
  if (at_ == state::body) return take_body(bytes);
  return 0;
}

std::size_t request_reader::take_head(std::string_view bytes) {
  std::size_t skipped = 0;
  // A client may send an extra empty line after the previous request (RFC 9112, 2.2).
  if (!has_begun_ && !has_skipped_) {
    if (bytes == "\r") return 0;
    has_skipped_ = bytes.starts_with("\r\n");
    if (has_skipped_) bytes.remove_prefix(skipped = 2);
  }
  if (bytes.empty()) return skipped;
  has_begun_ = true;
  const std::size_t from = searched_ - std::min(searched_, end_of_head.size() - 1);
  const auto end = bytes.find(end_of_head, from);
  // If the first line ends with LF alone, the head's end would never come: reject it now.
  if (const auto lf = bytes.find('\n'); lf < bounds_.head_bytes)
    if (lf == 0 || bytes[lf - 1] != '\r') {
      reject({400, "a line of the head ends with a lone LF; lines end with CR LF"});
      return skipped;
    }
  const std::size_t size = end == std::string_view::npos ? bytes.size() : end + end_of_head.size();
  if (size > bounds_.head_bytes) {
    reject({431, fmt::format("the request's head is longer than {} bytes", bounds_.head_bytes)});
    return skipped;
  }
  searched_ = size;
  if (end == std::string_view::npos) return skipped;
  read_head(bytes.substr(0, size));
  return skipped + size;
}

void request_reader::read_head(std::string_view head) {
  if (auto no = check_head(head, bounds_, request_, framing_)) return reject(std::move(no));
  beast_ = std::make_unique<beast>();
  auto& parser = beast_->parser;
  parser.header_limit(static_cast<std::uint32_t>(bounds_.head_bytes));
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // go_on() sets it
  parser.eager(false);
  boost::beast::error_code ec;
  const std::size_t used = parser.put(asio::buffer(head.data(), head.size()), ec);
  const bool agrees =
      !ec && used == head.size() && parser.is_header_done() && parser.chunked() == framing_.chunked;
  if (!agrees)
    return reject({400, fmt::format("the request's head cannot be read: {}", ec.message())});
  const std::string_view connection = request_.value_of("connection");
  keeps_alive_ =
      request_.is_1_1 ? !has_word(connection, "close") : has_word(connection, "keep-alive");
  const std::string_view expected = request_.value_of("expect");
  if (!expected.empty() && !has_word(expected, "100-continue"))
    return reject({417, "Expect knows '100-continue' alone"});
  expects_continue_ = !expected.empty() && has_body() && request_.is_1_1;
  at_ = state::decide;
}

void request_reader::go_on(std::size_t body_bytes) {
  if (at_ != state::decide) return;
  if (framing_.length > body_bytes)
    return reject({413, fmt::format("the body has {} bytes; at most {} are accepted here",
                                    framing_.length, body_bytes)});
  beast_->parser.body_limit(body_bytes);
  beast_->parser.eager(true);
  body_bytes_ = body_bytes;
  left_ = framing_.length;
  at_ = has_body() ? state::body : state::done;
}

// Beast accepts chunk lines that a proxy in front may read differently: extensions, any number of
// leading zeros, fields after the last chunk. So it is only given complete lines of one form, and
// as much data as they announce.
std::size_t request_reader::take_body(std::string_view bytes) {
  std::size_t used = 0;
  while (at_ == state::body && used < bytes.size()) {
    const std::string_view rest = bytes.substr(used);
    const bool is_line = framing_.chunked && left_ == 0;
    const std::size_t n = is_line ? chunk_line(rest) : std::min<uint64_t>(left_, rest.size());
    if (n == 0) break;
    if (!is_line) left_ -= n;
    give(rest.substr(0, n));
    used += n;
  }
  return used;
}

// Length of the line with the next chunk's size, including the CR LF that ends the previous chunk;
// 0 if it is incomplete or rejected.
std::size_t request_reader::chunk_line(std::string_view rest) {
  constexpr std::size_t most_digits = 16;
  constexpr std::string_view line_end = "\r\n";
  const std::size_t before = is_first_chunk_ ? 0 : line_end.size();
  if (before != 0 && !begins_alike(rest, line_end))
    return reject({400, "the data of a chunk does not end with CR LF where its size says"}), 0;
  if (rest.size() <= before) return 0;
  const std::string_view line = rest.substr(before);
  const std::size_t digits =
      std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
  if (digits == 0 || digits > most_digits)
    return reject({400, "a chunk of the body begins with no size of 1 to 16 hexadecimal digits"}),
           0;
  if (digits == line.size()) return 0;
  if (line[digits] == ';')
    return reject({400, "the body's chunks have extensions, which are not accepted"}), 0;
  uint64_t size = 0;
  std::from_chars(line.data(), line.data() + digits, size, 16);
  const std::string_view end = size == 0 ? end_of_head : line_end;
  if (!begins_alike(line.substr(digits), end))
    return reject(
               {400, size == 0
                         ? "the body's last chunk ends with CR LF CR LF; no fields follow it here"
                         : "a chunk's size does not end with CR LF"}),
           0;
  if (line.size() < digits + end.size()) return 0;
  if (size > body_bytes_ - body_size())
    return reject({413, fmt::format("the body is longer than {} bytes, the most that is accepted "
                                    "here",
                                    body_bytes_)}),
           0;
  is_first_chunk_ = false;
  left_ = size;
  return before + digits + end.size();
}

void request_reader::give(std::string_view part) {
  boost::beast::error_code ec;
  std::size_t used = 0;
  while (used < part.size() && !ec)
    used += beast_->parser.put(asio::buffer(part.data() + used, part.size() - used), ec);
  if (ec == beast_http::error::need_more && used == part.size()) ec = {};
  if (ec || used != part.size())
    return reject({400, fmt::format("the body cannot be read: {}", ec.message())});
  if (beast_->parser.is_done()) at_ = state::done;
}

request request_reader::take_request() {
  request out = std::move(request_);
  if (beast_) out.body = std::move(beast_->parser.get().body());
  *this = request_reader(bounds_);
  return out;
}

}  // namespace bitnet::host::http
