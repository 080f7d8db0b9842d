#pragma once
// The address of a server of OpenAI's API: http://HOST[:PORT][/PREFIX].

#include <expected>
#include <string>
#include <string_view>

#include "client/http_url.hpp"

namespace bitnet::host::load {

struct server_address {
  client::http_url url;  // the path is a prefix without a slash at its end: "" or "/openai"

  // The prefix followed by a route such as "/v1/completions"; a prefix may end with /v1 itself.
  [[nodiscard]] std::string path(std::string_view route) const;
};
// The error says what is wrong.
[[nodiscard]] std::expected<server_address, std::string> parse_address(std::string_view url);

}  // namespace bitnet::host::load
