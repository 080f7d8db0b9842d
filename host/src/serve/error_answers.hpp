#pragma once
// Errors of requests as answers, in the form of their route's API.

#include "http/answer.hpp"
#include "openai/api_form.hpp"

namespace bitnet::host {

// As `form` writes it. A client of an API with an error_form gets it in that form.
[[nodiscard]] http::answer error_answer_of(const openai::api_form& form,
                                           const openai::api_error& why);

// {"type": "error", "error": {...}, "request_id"}, as Anthropic's API has it.
[[nodiscard]] const http::error_form& anthropic_errors();

}  // namespace bitnet::host
