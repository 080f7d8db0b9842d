#pragma once
// "http://HOST[:PORT][/PATH]", as a user writes the place of a server.

#include <expected>
#include <string>
#include <string_view>

namespace bitnet::host::client {

struct http_url {
  std::string host;  // without the brackets of an IPv6 address
  std::string port;  // decimal
  std::string path;  // with its query; "" where none is given

  [[nodiscard]] std::string authority() const;  // "HOST:PORT" of the field Host
};

// The error says what is wrong, in words for the end of a sentence. At most 2048 bytes, printable
// ASCII alone, and no name of a user. TLS is not spoken.
[[nodiscard]] std::expected<http_url, std::string> parse_http_url(std::string_view url,
                                                                  std::string_view default_port);

}  // namespace bitnet::host::client
