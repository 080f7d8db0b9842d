#include "load/server_address.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "settings/value.hpp"
#include "text/printable.hpp"

namespace bitnet::host::load {
namespace {

constexpr std::size_t longest_url = 2048;

// What may stand in a request's head as it is.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

bool is_port(std::string_view text) {
  const auto n = parse_integer(text);
  return n && *n >= 1 && *n <= 65535 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string server_address::path(std::string_view route) const {
  constexpr std::string_view version = "/v1";
  if (prefix.ends_with(version) && route.starts_with(version)) route.remove_prefix(version.size());
  return prefix + std::string(route);
}

std::string server_address::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::expected<server_address, std::string> parse_address(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(
        fmt::format("expected http://HOST:PORT, found '{}': {}", text::printable(url, 80), why));
  };
  if (url.size() > longest_url) return wrong("it is too long");
  if (url.starts_with("https://"))
    return wrong("TLS is not spoken here; measure behind what ends it");
  if (!url.starts_with(scheme)) return wrong("it does not begin with http://");
  std::string_view rest = url.substr(scheme.size());
  if (!is_plain(rest)) return wrong("it has blanks or other characters");
  const auto slash = std::min(rest.find('/'), rest.size());
  server_address out{"", "80", std::string(rest.substr(slash))};
  rest = rest.substr(0, slash);
  if (out.prefix.find_first_of("?#") != std::string::npos) return wrong("it has a query");
  if (rest.find('@') != std::string_view::npos) return wrong("use --api-key for a key");
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
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

}  // namespace bitnet::host::load
