#pragma once
// Turns errors of requests into answers in the form of their route's API.

#include "http/answer.hpp"
#include "openai/api_form.hpp"

namespace bitnet::host {

// Writes it as `form` does, or in the form of the client's API, if that has an error_form.
[[nodiscard]] http::answer error_answer_of(const openai::api_form& form,
                                           const openai::api_error& why);

// {"type": "error", "error": {...}, "request_id"}, as Anthropic's API has it.
[[nodiscard]] const http::error_form& anthropic_errors();

}  // namespace bitnet::host
