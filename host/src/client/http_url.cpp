#include "client/http_url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "settings/value.hpp"

namespace bitnet::host::client {
namespace {

constexpr std::size_t longest_url = 2048;

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

bool is_port(std::string_view text) {
  const auto n = parse_integer(text);
  return n && *n >= 1 && *n <= 65535 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string http_url::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::expected<http_url, std::string> parse_http_url(std::string_view url,
                                                    std::string_view default_port) {
  constexpr std::string_view scheme = "http://";
  const auto wrong = [](std::string why) { return std::unexpected(std::move(why)); };
  if (url.size() > longest_url) return wrong("it is too long");
  if (url.starts_with("https://")) return wrong("TLS is not spoken here");
  if (!url.starts_with(scheme)) return wrong("it does not begin with http://");
  std::string_view rest = url.substr(scheme.size());
  if (!is_plain(rest)) return wrong("it has blanks or bytes that are not ASCII");
  const auto slash = std::min(rest.find('/'), rest.size());
  http_url out{"", std::string(default_port), std::string(rest.substr(slash))};
  rest = rest.substr(0, slash);
  if (rest.find('@') != std::string_view::npos) return wrong("names and keys are not sent from it");
  const bool is_v6 = rest.starts_with('[');
  const auto end = is_v6 ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (end == std::string_view::npos) return wrong("its bracket is not closed");
  out.host = rest.substr(is_v6 ? 1 : 0, end - (is_v6 ? 1 : 0));
  const std::string_view behind = rest.substr(end + (is_v6 ? 1 : 0));
  if (out.host.empty()) return wrong("it has no host");
  if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1))))
    return wrong("its port is no number from 1 to 65535");
  if (!behind.empty()) out.port = behind.substr(1);
  return out;
}

}  // namespace bitnet::host::client
