#include "http/own_names.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace bitnet::host::http {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return out;
}

// Reduces "a:80" of http to "a", as browsers write it.
std::string without_default_port(std::string host, bool is_tls) {
  const std::string_view port = is_tls ? ":443" : ":80";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return host;
}

// Reduces "localhost:8080" to "localhost", "[::1]:8080" to "[::1]".
std::string_view name_of(std::string_view host) {
  const auto begin_of_port = host.rfind(':');
  const auto end_of_address = host.rfind(']');
  const bool has_port =
      begin_of_port != std::string_view::npos &&
      (end_of_address == std::string_view::npos || begin_of_port > end_of_address);
  return has_port ? host.substr(0, begin_of_port) : host;
}

bool is_address(std::string_view name) {
  in_addr v4{};
  in6_addr v6{};
  if (name.starts_with('[') && name.ends_with(']'))
    return ::inet_pton(AF_INET6, std::string(name.substr(1, name.size() - 2)).c_str(), &v6) == 1;
  return ::inet_pton(AF_INET, std::string(name).c_str(), &v4) == 1;
}

}  // namespace

void own_names::add(std::string_view host) {
  if (!host.empty()) names_.push_back(in_lower_case(host));
}

bool own_names::is_own_page(std::string_view origin, std::string_view host, bool is_tls) const {
  const std::string reached = without_default_port(in_lower_case(host), is_tls);
  if (reached.empty() || in_lower_case(origin) != (is_tls ? "https://" : "http://") + reached)
    return false;
  const std::string_view name = name_of(reached);
  return name == "localhost" || is_address(name) || std::ranges::find(names_, name) != names_.end();
}

}  // namespace bitnet::host::http
