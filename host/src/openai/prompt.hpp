#pragma once
// The tokens that a request begins with, by the model's tokenizer and chat template.

#include <memory>
#include <string>
#include <vector>

#include "openai/request.hpp"

namespace bitnet::host::openai {

struct prompt {
  token_list ids;
  std::shared_ptr<bitnet_chat> chat;  // which knows how its answer is written; NULL: plain text
  std::string echoed;                 // its text, where the request has `echo`
  std::string unbound;                // as in bitnet_chat_info
};

// One for a chat, one for each input of the others. `template_name` as in bitnet_chat_format; "" is
// auto. Where model.n_context is not 0, each leaves room for an answer, and an input to embed has
// no more tokens than it. A call that a chat demands becomes the grammar of `from`, which has no
// other form then.
[[nodiscard]] parsed<std::vector<prompt>> prompts_of(request& from, const bitnet_model* with,
                                                     const model_limits& model,
                                                     const std::string& template_name);

}  // namespace bitnet::host::openai
