#pragma once
// Where a server of OpenAI's API is: http://HOST[:PORT][/PREFIX].

#include <expected>
#include <string>
#include <string_view>

#include "client/http_url.hpp"

namespace bitnet::host::load {

struct server_address {
  client::http_url url;  // its path: a prefix without a slash at its end, "" or "/openai"

  // "/v1/completions" behind a prefix that may have the /v1 itself.
  [[nodiscard]] std::string path(std::string_view route) const;
};
// The message says what is wrong.
[[nodiscard]] std::expected<server_address, std::string> parse_address(std::string_view url);

}  // namespace bitnet::host::load
