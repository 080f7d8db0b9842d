#pragma once
// What a handler answers, and the errors that the server itself answers: in OpenAI's form, or in
// that of the API whose route or client it is.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.hpp"

namespace bitnet::host::http {

// {"error": {message, type, param, code}}. `type` "" is that of the status: invalid_request_error,
// authentication_error, rate_limit_error, unavailable_error, server_error. `param` and `code` ""
// are null.
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
  std::vector<field> fields = {};  // beyond those that every answer has
  // Of an error: what `body` says. An error_form writes it anew.
  std::optional<error_facts> error = {};
};

// How an API writes errors, where it is not as OpenAI's.
struct error_form {
  std::string (*body)(const error_facts& facts, std::string_view request_id);
  // A request that has this field gets errors of this form on every route; "": none does.
  std::string_view field = {};
  // The field of an answer, beside X-Request-Id, in which clients look for the request's id; "":
  // none.
  std::string_view id_field = {};
  std::string_view schema = {};  // its name in /openapi.json
};

[[nodiscard]] std::string error_body(const error_facts& facts);
[[nodiscard]] answer error_answer(const error_facts& facts);
// 503 with Retry-After, in seconds.
[[nodiscard]] answer unavailable_answer(std::string message, unsigned retry_after_s);

[[nodiscard]] std::string_view reason_phrase(int status);

// How the body's end is marked.
enum class body_end : uint8_t { length, chunks, close };

struct head_facts {
  int status = 200;
  std::string_view content_type = {};
  body_end end = body_end::length;
  std::size_t length = 0;  // of the body, where `end` is length
  bool keeps_alive = true;
  bool is_1_1 = true;
  std::string_view id = {};  // of the request
};
// Status line and fields, with the empty line. CR and LF in a value become blanks: no value can
// begin a field of its own.
[[nodiscard]] std::string head_text(const head_facts& facts, const std::vector<field>& more);

}  // namespace bitnet::host::http
