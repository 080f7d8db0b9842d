#pragma once
// The tokens that a request begins with, by the model's tokenizer and chat template.

#include <string>
#include <vector>

#include "openai/request.hpp"

namespace bitnet::host::openai {

struct prompt {
  token_list ids;
  std::string begun;  // of the answer, which the chat template wrote already: "<think>\n", or ""
};

// One for a chat, one for each input of the others. `template_name` as in bitnet_chat_format; "" is
// auto. Where model.n_context is not 0, each leaves room for an answer, and an input to embed has
// no more tokens than it.
[[nodiscard]] parsed<std::vector<prompt>> prompts_of(const request& from, const bitnet_model* with,
                                                     const model_limits& model,
                                                     const std::string& template_name);

}  // namespace bitnet::host::openai
