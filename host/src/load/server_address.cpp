#include "load/server_address.hpp"

#include <fmt/format.h>

#include "text/printable.hpp"

namespace bitnet::host::load {

std::string server_address::path(std::string_view route) const {
  constexpr std::string_view version = "/v1";
  if (url.path.ends_with(version) && route.starts_with(version))
    route.remove_prefix(version.size());
  return url.path + std::string(route);
}

std::expected<server_address, std::string> parse_address(std::string_view url) {
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(
        fmt::format("expected http://HOST:PORT, found '{}': {}", text::printable(url, 80), why));
  };
  auto out = client::parse_http_url(url, "80");
  if (!out) return wrong(out.error());
  if (out->path.find_first_of("?#") != std::string::npos) return wrong("it has a query");
  while (out->path.ends_with('/')) out->path.pop_back();
  return server_address{*std::move(out)};
}

}  // namespace bitnet::host::load
