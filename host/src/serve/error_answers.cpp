#include "serve/error_answers.hpp"

#include <nlohmann/json.hpp>

#include "anthropic/writer.hpp"

namespace bitnet::host {
namespace {

std::string anthropic_body(const http::error_facts& facts, std::string_view request_id) {
  openai::api_error why;
  why.status = facts.status;
  why.message = facts.message;
  why.param = facts.param;
  why.code = facts.code;
  return openai::line_of(anthropic::error_body(why, request_id));
}

}  // namespace

http::answer error_answer_of(const openai::api_form& form, const openai::api_error& why) {
  const nlohmann::ordered_json body = form.error_body(why);
  // `type` and `code` come from the form, too, since an API's clients look for them.
  const auto written = [&](const char* name, const std::string& or_else) {
    const auto found = body["error"].find(name);
    return found != body["error"].end() && found->is_string() ? found->get<std::string>() : or_else;
  };
  return {.status = why.status,
          .body = openai::line_of(body),
          .error = http::error_facts{.status = why.status,
                                     .message = written("message", why.message),
                                     .type = why.type,
                                     .param = written("param", why.param),
                                     .code = why.code}};
}

const http::error_form& anthropic_errors() {
  static const http::error_form out{.body = anthropic_body,
                                    .field = "anthropic-version",
                                    .id_field = "request-id",
                                    .schema = "AnthropicError"};
  return out;
}

}  // namespace bitnet::host
