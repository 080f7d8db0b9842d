#pragma once
// What becomes of a request whose head is read, before its body is: a route, or an answer at once.

#include <optional>

#include "http/access.hpp"
#include "http/answer.hpp"
#include "http/limits.hpp"
#include "http/own_names.hpp"
#include "http/request.hpp"
#include "http/routes.hpp"

namespace bitnet::host::http {

struct policy {
  limits bounds;
  route_table routes;
  api_keys keys;        // none: no route asks for one, but for admin routes
  api_keys admin_keys;  // which other routes take, too; none: admin routes are refused
  origin_list origins;  // pages of other origins that are let in
  own_names names;      // by which the server's own page may reach it
  bool is_tls = false;  // set by the server
};

struct decision {
  std::string id;  // of x-request-id, or a new one
  const route* row = nullptr;
  std::vector<std::pair<std::string, std::string>> path_values = {};  // of {parts}, decoded
  std::optional<answer> at_once = {};  // in place of the route's handler
  std::vector<field> fields = {};      // that the answer has in any case
  std::size_t body_bytes = 0;          // that the body may have
  const error_form* errors = nullptr;  // nullptr: OpenAI's
};

[[nodiscard]] decision decide(const policy& rules, const request& asked);
// Of bytes that are no request: an id, and the form of the error, of what was read of it.
[[nodiscard]] decision decide_refusal(const policy& rules, const request& read);

// 32 hexadecimal digits from the system's source of random numbers.
[[nodiscard]] std::string new_id();

}  // namespace bitnet::host::http
