#pragma once
// Where a server of OpenAI's API is: http://HOST[:PORT][/PREFIX].

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace bitnet::host::load {

struct server_address {
  std::string host;    // without the brackets of an IPv6 address
  std::string port;    // decimal
  std::string prefix;  // of paths, without a slash at its end; "" or "/openai"

  // "/v1/completions" behind a prefix that may have the /v1 itself.
  [[nodiscard]] std::string path(std::string_view route) const;
  [[nodiscard]] std::string authority() const;  // of the head line Host
};
// The message says what is wrong.
[[nodiscard]] std::expected<server_address, std::string> parse_address(std::string_view url);

}  // namespace bitnet::host::load
