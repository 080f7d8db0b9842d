#pragma once
// Decides whether a web page that sends a request came from this server itself.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::http {

// A page is the server's own where its origin is the one that the request was sent to, and the host
// there cannot be another site's: a site can have its own name lead to an address of this server
// (DNS rebinding), and its pages then send requests to the origin that they came from. It can have
// neither an address for a name, nor "localhost", nor a name that the user gave.
class own_names {
 public:
  // A name or an address of --host.
  void add(std::string_view host);
  // `origin` and `host` are those fields of the request; `is_tls`: it came through TLS.
  [[nodiscard]] bool is_own_page(std::string_view origin, std::string_view host, bool is_tls) const;

 private:
  std::vector<std::string> names_;  // lower case
};

}  // namespace bitnet::host::http
