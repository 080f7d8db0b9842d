#pragma once
// A server's URL as the user writes it: "http://HOST[:PORT][/PATH]".

#include <expected>
#include <string>
#include <string_view>

namespace bitnet::host::client {

struct http_url {
  std::string host;  // without the brackets of an IPv6 address
  std::string port;  // decimal
  std::string path;  // with its query; "" where none is given

  [[nodiscard]] std::string authority() const;  // "HOST:PORT" for the Host field
};

// The error says what is wrong, worded to end a sentence. A URL has at most 2048 bytes of printable
// ASCII and no user name. TLS is not supported.
[[nodiscard]] std::expected<http_url, std::string> parse_http_url(std::string_view url,
                                                                  std::string_view default_port);

}  // namespace bitnet::host::client
