#pragma once
// llama-server's routes that compute nothing: tokens, and the prompt of a chat. Each function reads
// a body and returns its answer, on the worker thread.

#include <string>

#include "http/answer.hpp"
#include "serve/serving.hpp"

namespace bitnet::host {

// Answers /tokenize: {content, add_special, parse_special, with_pieces} becomes {tokens}.
[[nodiscard]] http::answer tokens_answer(const serving& in, const served_model& of,
                                         const std::string& body);
// Answers /detokenize: {tokens} becomes {content}.
[[nodiscard]] http::answer text_answer(const serving& in, const served_model& of,
                                       const std::string& body);
// Answers /apply-template: renders the chat of `body` as {"prompt": ...}.
[[nodiscard]] http::answer prompt_answer(const serving& in, const served_model& of,
                                         const std::string& body);

}  // namespace bitnet::host
