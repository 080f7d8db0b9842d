#pragma once
// Makes the prompt tokens of a request with the model's tokenizer and chat template.

#include <memory>
#include <string>
#include <vector>

#include "openai/request.hpp"

namespace bitnet::host::openai {

struct prompt {
  token_list ids;
  std::shared_ptr<bitnet_chat> chat;  // parses the answer; NULL: plain text
  std::string echoed;                 // the prompt's text, for `echo`
  std::string unbound;                // as in bitnet_chat_info
};

// Returns one prompt for a chat, else one per input. `template_name` as in bitnet_chat_format; ""
// means auto. If model.n_context is not 0, a prompt must leave room for an answer, and an input to
// embed must fit it. A tool call that a chat demands becomes the grammar of `from`, which then has
// no other form.
[[nodiscard]] parsed<std::vector<prompt>> prompts_of(request& from, const bitnet_model* with,
                                                     const model_limits& model,
                                                     const std::string& template_name);

}  // namespace bitnet::host::openai
