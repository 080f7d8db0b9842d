#pragma once
// A body of OpenAI's API as values: chats, completions and embeddings.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "openai/generation_fields.hpp"

namespace bitnet::host::openai {

enum class endpoint : uint8_t { chat, completions, embeddings };

// Parses "/v1/chat/completions" and so on; llama-server's paths without /v1 are accepted too.
[[nodiscard]] std::optional<endpoint> endpoint_of(std::string_view url);

// A text, or its tokens.
using text_or_ids = std::variant<std::string, token_list>;

// A gap that the model fills in, after the text of the input.
struct infill_gap {
  std::string suffix;  // the text after the gap
  // Another file for context; they come in the order of the prompt.
  struct file {
    std::string name, text;
  };
  std::vector<file> others;
  bool in_repository = false;  // mark it as a repository if the model has tokens for that
  bool only_computes = false;  // only evaluate the prompt; the answer is discarded
  const char* member = "";     // the member that set the gap, for errors
};

struct request {
  endpoint to = endpoint::chat;
  std::string model;  // "": the body names none
  // For chats: JSON for bitnet_chat_request; "" if the body has none.
  std::string messages, tools, tool_choice, template_arguments;
  bool one_call = false;            // at most one tool call
  std::vector<text_or_ids> inputs;  // not for chats; at least one
  std::optional<infill_gap> gap;    // for completions: follows each input
  generation_wish how;              // for chats and completions
  bool stream = false;
  bool include_usage = false;  // for streams
  bool base64 = false;         // for embeddings
  // Members that the answer repeats, for APIs that do: a JSON object's members in one line, without
  // its braces.
  std::string repeated;
  // The members that the answer shall have, for APIs with that: a JSON array; "": all.
  std::string answer_members;
};

// Properties of the model that a body is checked against.
struct model_limits {
  uint32_t n_vocab = 0;
  uint32_t n_embedding = 0;
  uint32_t n_context = 0;  // for prompt and answer; 0: unknown so far
};

// `text` is the raw text of `body`. `defaults` apply to members that the body lacks. Unknown
// members are ignored.
[[nodiscard]] parsed<request> parse_request(endpoint to, const nlohmann::json& body,
                                            std::string_view text, const model_limits& model,
                                            const generation_wish& defaults);

// The member that the prompt comes from, for errors: "messages", "prompt" or "input".
[[nodiscard]] const char* prompt_member(endpoint to);

}  // namespace bitnet::host::openai
