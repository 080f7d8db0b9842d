#pragma once
// The parts in which APIs differ: reading a body, and writing an answer. Another API is another
// value of api_form.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "openai/answer.hpp"
#include "openai/answer_writer.hpp"

namespace bitnet::host::openai {

struct api_form {
  endpoint to;                 // endpoint whose prompts and lane it uses
  std::string_view id_prefix;  // prefix of answer ids: "chatcmpl-"

  // Like parse_request.
  parsed<request> (*read)(const nlohmann::json& body, std::string_view text,
                          const model_limits& model, const generation_wish& defaults);
  // Opens the writer of a stream if from.stream, else of a complete body. All but `about` outlive
  // it.
  parsed<std::unique_ptr<answer_writer>> (*open)(const request& from, object_facts about,
                                                 std::span<const prompt> prompts,
                                                 const bitnet_model* with);
  // The body of an error.
  nlohmann::ordered_json (*error_body)(const api_error& why);
  // The body of an answer that counts a prompt's tokens.
  nlohmann::ordered_json (*count_body)(std::size_t n_tokens) = nullptr;
};

[[nodiscard]] const api_form& form_of(endpoint to);

// {"error": {...}}
[[nodiscard]] nlohmann::ordered_json error_body(const api_error& why);
// One line; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string line_of(const nlohmann::ordered_json& content);

}  // namespace bitnet::host::openai
