#pragma once
// Decides after a request's head, before its body is read: which route handles it, or which answer
// it gets at once.

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
  api_keys keys;        // empty: only admin routes need a key
  api_keys admin_keys;  // accepted by other routes, too; empty: admin routes are rejected
  origin_list origins;  // other origins whose pages are accepted
  own_names names;      // hosts under which the server's own page may reach it
  bool is_tls = false;  // set by the server
};

struct decision {
  std::string id;  // from x-request-id, or a new one
  const route* row = nullptr;
  std::vector<std::pair<std::string, std::string>> path_values = {};  // values of {parts}, decoded
  std::optional<answer> at_once = {};  // sent in place of calling the handler
  std::vector<field> fields = {};      // added to every answer
  std::size_t body_bytes = 0;          // limit of the body
  const error_form* errors = nullptr;  // nullptr: OpenAI's
};

[[nodiscard]] decision decide(const policy& rules, const request& asked);
// For bytes that are not a request. The id and the form of the error come from what was read of it.
[[nodiscard]] decision decide_rejection(const policy& rules, const request& read);

// 32 hexadecimal digits from the system's source of random numbers.
[[nodiscard]] std::string new_id();

}  // namespace bitnet::host::http
