#pragma once
// A conversation as a prompt that leaves room for its answer.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "chat/template.hpp"

namespace bitnet::chat {

struct prompt {
  std::vector<tokenizer::token> ids;
  std::size_t left_out = 0;  // oldest messages, behind a system prompt that comes first
};

// `context`: tokens that prompt and answer share, 0 for no bound. 64 of them, or an eighth where
// that is less, stay free for the answer: where they would not, the oldest turns are left out, but
// never the system prompt or the last message. A turn ends before the next message of the user.
// BITNET_CONTEXT_FULL where those two alone are too long.
result<prompt> fit(std::string_view form, const tokenizer::tokenizer& tokens,
                   std::span<const message> messages, bool parse_special_in_messages,
                   uint64_t context);

}  // namespace bitnet::chat
