#pragma once
// One request of HTTP/1.1 and its answer, on a connection of its own.

#include <chrono>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "client/http_url.hpp"

namespace bitnet::host::client {

struct sent_request {
  std::string method = "POST";
  std::string target;  // path and query
  std::string body;    // JSON, or "" for none
  std::string key;     // a Bearer token, or "" for none
  std::string user_agent;
};

struct exchange_limits {
  std::chrono::milliseconds without_a_byte{600'000};
  std::chrono::nanoseconds in_all = std::chrono::nanoseconds::max();  // limit, from the call on
  std::function<bool()> is_ended;  // polled a few times a second: true cancels
};

// Passes each piece of the body to `piece` as it comes; `piece` returns false to cancel. Returns
// the HTTP status. The message names what failed: the host name, the connection, the time limit or
// the answer. A running name lookup cannot be cancelled.
[[nodiscard]] std::expected<int, std::string> exchange(
    const http_url& with, const sent_request& what, const exchange_limits& limits,
    const std::function<bool(std::string_view)>& piece);

}  // namespace bitnet::host::client
