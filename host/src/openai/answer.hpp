#pragma once
// Collects the events of a request until it has ended, and builds the objects of OpenAI's API.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "openai/prompt.hpp"

namespace bitnet::host::openai {

struct token_logprob {
  std::string piece;             // bytes, which may be part of a character
  std::optional<float> logprob;  // natural logarithm; the first token of a prompt has none
  std::vector<std::pair<std::string, float>> top;
};

// One answer to one prompt.
struct choice {
  std::string text;
  const char* finish_reason = "stop";  // or "length"
  std::vector<token_logprob> logprobs;
};

// Counts of tokens.
struct usage {
  uint64_t prompt = 0;
  uint64_t completion = 0;
  uint64_t cached = 0;  // prompt tokens known from an earlier request

  void add(const usage& other);
};

// The results of one request at a scheduler.
class collected_answer {
 public:
  // `with` outlives it; it gives the text of tokens with log probabilities.
  collected_answer(uint32_t n_choices, const bitnet_model* with)
      : choices_(n_choices), with_(with), n_open_(n_choices) {}

  // Takes a PROMPT, TEXT or END event; for an embedding, only its END.
  void take(const bitnet_event& e, bool with_logprobs);
  [[nodiscard]] bool ended() const { return n_open_ == 0; }

  [[nodiscard]] std::span<const choice> choices() const { return choices_; }
  // Log probabilities of the prompt's tokens, if PROMPT events came.
  [[nodiscard]] std::span<const token_logprob> prompt_logprobs() const { return prompt_logprobs_; }
  [[nodiscard]] std::span<const float> embedding() const { return embedding_; }
  [[nodiscard]] const usage& used() const { return used_; }

 private:
  [[nodiscard]] token_logprob logprob_of(const bitnet_event& e) const;
  void end(const bitnet_event& e, choice& of);

  std::vector<choice> choices_;
  std::vector<token_logprob> prompt_logprobs_;
  std::vector<float> embedding_;
  const bitnet_model* with_;
  usage used_;
  uint32_t n_open_;
};

// Members that every object has.
struct object_facts {
  std::string id;       // "chatcmpl-...", "cmpl-..."
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::string fingerprint;  // of model and program: system_fingerprint
};

// `answers` and `prompts` have an element for each prompt of `from`, in its order.
// {"object": "chat.completion", ...}, "text_completion", or a "list" of embeddings.
// An error has the status 500: memory is short.
[[nodiscard]] parsed<nlohmann::ordered_json> response_json(
    const request& from, const object_facts& about, std::span<const collected_answer> answers,
    std::span<const prompt> prompts);

// Members of these objects, for chunks: `logprobs` for all tokens of a choice, and `usage`.
[[nodiscard]] nlohmann::ordered_json logprobs_json(endpoint to, const choice& said);
[[nodiscard]] nlohmann::ordered_json usage_of_answers(const usage& used);
// Adds "unbound_tools", with a text per line of prompt::unbound; adds nothing if there is none.
void add_unbound(nlohmann::ordered_json& to, const std::string& lines);

}  // namespace bitnet::host::openai
