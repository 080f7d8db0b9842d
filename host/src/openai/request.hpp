#pragma once
// A request body of OpenAI's API as values: chats, completions and embeddings.

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

// "/v1/chat/completions" and so on; llama-server has them without /v1 too.
[[nodiscard]] std::optional<endpoint> endpoint_of(std::string_view url);

// One text, or its tokens.
using text_or_ids = std::variant<std::string, token_list>;

// A gap behind a text that the model fills in.
struct infill_gap {
  std::string suffix;  // behind it
  // A file of what is known beside it, in the order of the prompt.
  struct file {
    std::string name, text;
  };
  std::vector<file> others;
  bool in_repository = false;  // the prompt says so, where the model has tokens for that
  bool only_computes = false;  // the prompt: what comes behind it is not wanted
  const char* member = "";     // that asked for it, for errors
};

struct request {
  endpoint to = endpoint::chat;
  std::string model;  // "" where the body has none
  // Of a chat, JSON for bitnet_chat_request; "" where the body has none.
  std::string messages, tools, tool_choice, template_arguments;
  bool one_call = false;            // at most one call of a tool
  std::vector<text_or_ids> inputs;  // of the others, at least one
  std::optional<infill_gap> gap;    // of completions: behind each input
  generation_wish how;              // of chats and completions
  bool stream = false;
  bool include_usage = false;  // in a stream
  bool base64 = false;         // of embeddings
  // What the answer repeats of the body, for APIs that do: members of a JSON object in one line,
  // without its braces.
  std::string repeated;
  // Which members of the answer are asked for, of an API that has that: a JSON array; "": all.
  std::string answer_members;
};

// What a body is checked against.
struct model_limits {
  uint32_t n_vocab = 0;
  uint32_t n_embedding = 0;
  uint32_t n_context = 0;  // tokens of a prompt and its answer; 0: not known yet
};

// `text` is what `body` was parsed from. `defaults`: of what a body leaves open. Members that are
// not known are ignored.
[[nodiscard]] parsed<request> parse_request(endpoint to, const nlohmann::json& body,
                                            std::string_view text, const model_limits& model,
                                            const generation_wish& defaults);

// The member that the prompt comes from, for errors: "messages", "prompt" or "input".
[[nodiscard]] const char* prompt_member(endpoint to);

}  // namespace bitnet::host::openai
