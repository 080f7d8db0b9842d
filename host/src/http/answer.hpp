#pragma once
// Answers of handlers, and errors that the server itself reports, in OpenAI's form or in that of
// the route's or the client's API.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.hpp"

namespace bitnet::host::http {

// {"error": {message, type, param, code}}. `type` "" means the type of the status:
// invalid_request_error, authentication_error, rate_limit_error, unavailable_error or server_error.
// "" in `param` and `code` becomes null.
struct error_facts {
  int status = 400;
  std::string message;
  std::string type = {};
  std::string param = {};
  std::string code = {};
};

struct answer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<field> fields = {};  // besides the fields of every answer
  // If set, the answer is an error, which `body` has in OpenAI's form; an error_form rewrites it.
  std::optional<error_facts> error = {};
};

// An API's own form of errors, if it differs from OpenAI's.
struct error_form {
  std::string (*body)(const error_facts& facts, std::string_view request_id);
  // Requests with this header field get errors of this form on every route; "": none.
  std::string_view field = {};
  // A second header field with the request's id, besides X-Request-Id, for clients that look for it
  // there; "": none.
  std::string_view id_field = {};
  std::string_view schema = {};  // its name in /openapi.json
};

[[nodiscard]] std::string error_body(const error_facts& facts);
[[nodiscard]] answer error_answer(const error_facts& facts);
// 503 with Retry-After in seconds.
[[nodiscard]] answer unavailable_answer(std::string message, unsigned retry_after_s);

[[nodiscard]] std::string_view reason_phrase(int status);

// How the end of the body is marked.
enum class body_end : uint8_t { length, chunks, close };

struct head_facts {
  int status = 200;
  std::string_view content_type = {};
  body_end end = body_end::length;
  std::size_t length = 0;  // body bytes, if `end` is length
  bool keeps_alive = true;
  bool is_1_1 = true;
  std::string_view id = {};  // the request's id
};
// Status line and header fields, with the empty line. CR and LF in a value become blanks, so that a
// value cannot start another field.
[[nodiscard]] std::string head_text(const head_facts& facts, const std::vector<field>& more);

}  // namespace bitnet::host::http
