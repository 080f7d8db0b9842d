#include "http/head_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/ascii.hpp"
#include "text/printable.hpp"

namespace bitnet::host::http {
namespace {

rejection bad(std::string message, int status = 400) {
  return {status, std::move(message)};
}

std::string shown(std::string_view text) {
  return bitnet::text::printable_ascii(text.substr(0, 80));
}

bool is_token_char(char c) {  // RFC 9110, 5.6.2
  const auto u = static_cast<unsigned char>(c);
  return (u >= '0' && u <= '9') || (u >= 'A' && u <= 'Z') || (u >= 'a' && u <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_value_char(char c) {  // visible, blank, tab, or not ASCII
  const auto u = static_cast<unsigned char>(c);
  return u == '\t' || (u >= 0x20 && u != 0x7f);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Takes the next line, without its CRLF.
rejection next_line(std::string_view& rest, std::string_view& line) {
  const auto end = rest.find_first_of("\r\n");
  if (end == std::string_view::npos || !rest.substr(end).starts_with("\r\n"))
    return bad("a line of the head ends with a lone CR or LF; lines end with CR LF");
  line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return {};
}

// Reduces "http://host:8080/path" to "/path" (RFC 9112, 3.2.2).
std::string_view without_authority(std::string_view target) {
  const std::string begin = lower(target.substr(0, 8));
  const std::size_t scheme = begin.starts_with("http://") ? 7 : begin == "https://" ? 8 : 0;
  if (scheme == 0) return target;
  const auto path = target.find_first_of("/?", scheme);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

rejection check_target(std::string_view target, request& out) {
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (target.empty() || !std::ranges::all_of(target, is_visible))
    return bad("the request's target is empty or has characters that are not visible ASCII");
  const std::string_view local = without_authority(target);
  if (local != "*" && !local.starts_with('/'))
    return bad(fmt::format("the request's target is '{}'; it begins with '/'", shown(target)));
  if (local == "*" && out.method != "OPTIONS")
    return bad("the target '*' is of the method OPTIONS alone");
  if (local.contains('#')) return bad("the request's target has a '#', which is not sent");
  const auto query = local.find('?');
  out.path = local.substr(0, query);
  if (query != std::string_view::npos) out.query = local.substr(query + 1);
  return {};
}

rejection check_request_line(std::string_view line, request& out) {
  constexpr std::size_t longest_method = 32;
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return bad("the request line has not the form 'METHOD TARGET HTTP/1.1'");
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  if (!is_token(method) || method.size() > longest_method)
    return bad("the request's method is not a word of at most 32 characters");
  out.method = method;
  if (version.starts_with("HTTP/") && version != "HTTP/1.1" && version != "HTTP/1.0")
    return bad(fmt::format("HTTP/1.1 and HTTP/1.0 are spoken here, not '{}'", shown(version)), 505);
  if (!version.starts_with("HTTP/"))
    return bad("the request line does not end with 'HTTP/1.1', behind one blank");
  out.is_1_1 = version == "HTTP/1.1";
  return check_target(line.substr(first + 1, last - first - 1), out);
}

rejection check_field(std::string_view line, request& out) {
  if (line.starts_with(' ') || line.starts_with('\t'))
    return bad("a header field goes on in a second line; write it in one");
  const auto colon = line.find(':');
  if (colon == std::string_view::npos)
    return bad(fmt::format("a header field has no colon: '{}'", shown(line)));
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (!is_token(name))
    return bad(fmt::format("'{}' is no name of a header field; no blank stands before the colon",
                           shown(name)));
  if (!std::ranges::all_of(value, is_value_char))
    return bad(fmt::format("the header field '{}' has a control character", shown(name)));
  out.fields.push_back({lower(name), std::string(value)});
  return {};
}

std::size_t count_of(const request& of, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count(of.fields, name, &field::name));
}

rejection check_length(const request& of, body_framing& body) {
  if (count_of(of, "content-length") > 1)
    return bad("Content-Length stands in the head more than once");
  const std::string_view text = of.value_of("content-length");
  const bool is_number = !text.empty() && text.size() <= 18 &&
                         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number)
    return bad(
        fmt::format("Content-Length is '{}'; it is a number of at most 18 digits", shown(text)));
  std::from_chars(text.data(), text.data() + text.size(), body.length);
  return {};
}

rejection check_framing(const request& of, body_framing& body) {
  const bool has_length = of.has("content-length"), is_coded = of.has("transfer-encoding");
  if (has_length && is_coded)
    return bad("Content-Length and Transfer-Encoding exclude each other; send one of them");
  if (has_length) return check_length(of, body);
  if (!is_coded) return {};
  if (!of.is_1_1) return bad("HTTP/1.0 has no Transfer-Encoding; send Content-Length");
  const std::string_view coding = of.value_of("transfer-encoding");
  if (count_of(of, "transfer-encoding") > 1 || lower(coding) != "chunked")
    return bad(fmt::format("Transfer-Encoding is '{}'; 'chunked', once, is known", shown(coding)),
               501);
  body.chunked = true;
  return {};
}

rejection check_host(const request& of) {
  const std::size_t n = count_of(of, "host");
  if (n > 1) return bad("Host stands in the head more than once");
  if (n == 0 && of.is_1_1) return bad("Host is missing, which HTTP/1.1 needs");
  if (of.value_of("host").find_first_of(" \t,/@") != std::string_view::npos)
    return bad("Host is no name or address with an optional port");
  return {};
}

}  // namespace

rejection check_head(std::string_view head, const limits& bounds, request& out,
                     body_framing& body) {
  std::string_view line;
  if (auto no = next_line(head, line)) return no;
  if (auto no = check_request_line(line, out)) return no;
  for (;;) {
    if (auto no = next_line(head, line)) return no;
    if (line.empty()) break;
    if (out.fields.size() == bounds.fields)
      return bad(fmt::format("the head has more than {} fields", bounds.fields), 431);
    if (auto no = check_field(line, out)) return no;
  }
  if (auto no = check_host(out)) return no;
  return check_framing(out, body);
}

}  // namespace bitnet::host::http
