#pragma once
// Shortens a conversation so that its prompt leaves room for an answer.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "chat/template.hpp"

namespace bitnet::chat {

struct prompt {
  std::vector<tokenizer::token> ids;
  std::size_t left_out = 0;  // oldest messages, counted behind a leading system prompt
};

// Renders and encodes the conversation without its `left_out` oldest messages, counted behind a
// leading system prompt.
using prompt_maker = std::function<result<std::vector<tokenizer::token>>(std::size_t left_out)>;

// `context`: tokens that prompt and answer share; 0: unlimited. 64 of them, or an eighth if that is
// less, are kept free for the answer: the oldest turns are left out, but never the system prompt or
// the last message. A turn ends before the user's next message. BITNET_CONTEXT_FULL if those two
// are too long. `roles`: of the messages.
result<prompt> fit(std::span<const std::string_view> roles, uint64_t context,
                   const prompt_maker& make);
result<prompt> fit(std::string_view form, const source& from, std::span<const message> messages,
                   bool parse_special_in_messages, uint64_t context);

// Number of leading messages that are never left out: 1 for a leading system prompt, else 0.
std::size_t kept_at_front(std::span<const std::string_view> roles);

}  // namespace bitnet::chat
