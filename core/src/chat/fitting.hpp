#pragma once
// A conversation as a prompt that leaves room for its answer.

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
  std::size_t left_out = 0;  // oldest messages, behind a system prompt that comes first
};

// Renders and encodes the conversation without so many of its oldest messages, of those behind a
// system prompt that comes first.
using prompt_maker = std::function<result<std::vector<tokenizer::token>>(std::size_t left_out)>;

// `context`: tokens that prompt and answer share, 0 for no bound. 64 of them, or an eighth where
// that is less, stay free for the answer: where they would not, the oldest turns are left out, but
// never the system prompt or the last message. A turn ends before the next message of the user.
// BITNET_CONTEXT_FULL where those two alone are too long. `roles`: of the messages.
result<prompt> fit(std::span<const std::string_view> roles, uint64_t context,
                   const prompt_maker& make);
result<prompt> fit(std::string_view form, const source& from, std::span<const message> messages,
                   bool parse_special_in_messages, uint64_t context);

// Messages at the front that are never left out: a system prompt that comes first.
std::size_t kept_at_front(std::span<const std::string_view> roles);

}  // namespace bitnet::chat
