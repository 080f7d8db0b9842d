#pragma once
// Routes about text that compute nothing: tokens, and the prompt of a chat. As llama-server has
// them. Each reads a body and gives its answer, on the worker thread.

#include <string>

#include "http/answer.hpp"
#include "serve/serving.hpp"

namespace bitnet::host {

// {content, add_special, parse_special, with_pieces} to {tokens}.
[[nodiscard]] http::answer tokens_answer(const serving& in, const served_model& of,
                                         const std::string& body);
// {tokens} to {content}.
[[nodiscard]] http::answer text_answer(const serving& in, const served_model& of,
                                       const std::string& body);
// The body of a chat to {prompt}.
[[nodiscard]] http::answer prompt_answer(const serving& in, const served_model& of,
                                         const std::string& body);

}  // namespace bitnet::host
