#pragma once
// One request of HTTP/1.1 and its answer, on a connection of its own.

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "load/server_address.hpp"

namespace bitnet::host::load {

struct sent_request {
  std::string method = "POST";
  std::string path;
  std::string body;  // JSON, or "" for none
  std::string key;   // a Bearer token, or "" for none
};

struct exchange_limits {
  int timeout_ms = 600'000;        // without a byte
  std::function<bool()> is_ended;  // asked a few times each second: true breaks it off
};

// Gives each piece of the body to `piece` as it comes, which answers false to break it off. Returns
// the status of the answer. The message says what failed: the connection, the time, or the answer.
[[nodiscard]] std::expected<int, std::string> exchange(
    const server_address& with, const sent_request& what, const exchange_limits& limits,
    const std::function<bool(std::string_view)>& piece);

}  // namespace bitnet::host::load
