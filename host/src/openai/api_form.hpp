#pragma once
// What the routes of an API have of their own: how a body is read, and how an answer is written.
// A route of another API is one more value of api_form.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "openai/answer.hpp"
#include "openai/answer_writer.hpp"

namespace bitnet::host::openai {

struct api_form {
  endpoint to;                 // whose prompts and lane it has
  std::string_view id_prefix;  // of answers: "chatcmpl-"

  // As parse_request.
  parsed<request> (*read)(const nlohmann::json& body, std::string_view text,
                          const model_limits& model, const generation_wish& defaults);
  // Of a stream where from.stream, else of a whole body. All but `about` outlive it.
  parsed<std::unique_ptr<answer_writer>> (*open)(const request& from, object_facts about,
                                                 std::span<const prompt> prompts,
                                                 const bitnet_model* with);
  // The body of an answer that is an error.
  nlohmann::ordered_json (*error_body)(const api_error& why);
  // The body of the answer to a count of the prompt's tokens.
  nlohmann::ordered_json (*count_body)(std::size_t n_tokens) = nullptr;
};

[[nodiscard]] const api_form& form_of(endpoint to);

// {"error": {...}}
[[nodiscard]] nlohmann::ordered_json error_body(const api_error& why);
// One line; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string line_of(const nlohmann::ordered_json& content);

}  // namespace bitnet::host::openai
