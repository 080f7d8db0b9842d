#pragma once
// Decides whether a web page that sends a request came from this server itself.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::http {

// A page is the server's own if its origin is the one that the request was sent to, and if its host
// cannot belong to another site. A site can point its own name to this server's address (DNS
// rebinding); its pages then send requests to their own origin. It cannot do so with an IP address,
// with "localhost", or with a name that the user gave, so only these are accepted.
class own_names {
 public:
  // Adds a name or an address of --host.
  void add(std::string_view host);
  // `origin`, `host`: the request's fields of these names. `is_tls`: the request came over TLS.
  [[nodiscard]] bool is_own_page(std::string_view origin, std::string_view host, bool is_tls) const;

 private:
  std::vector<std::string> names_;  // lower case
};

}  // namespace bitnet::host::http
