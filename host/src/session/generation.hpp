#pragma once
// One call of bitnet_generate, with settings turned into its options and its answer into JSON.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "session/engine.hpp"

namespace bitnet::host {

// The form that generated text must have; at most one of the members is set.
struct text_form {
  std::string grammar;
  std::string json_schema;
};
// Reads and checks --grammar, --json-schema and the options of their files. A file is read once,
// since it may be a pipe. Exit code 2 with the place of the error.
[[nodiscard]] result<text_form> given_form(const settings& set);

// Copies the sampling options that are plain numbers.
void take_parameters(const settings& set, bitnet_sampling& to);

// Owns everything that bitnet_generation points to. Its parts point to each other's heap memory, so
// it can be moved but not copied.
class generation_setup {
 public:
  generation_setup(generation_setup&&) noexcept = default;
  generation_setup& operator=(generation_setup&&) noexcept = default;

  // Draws a seed if it is -1. Exit code 2 for a malformed bias or stop id.
  static result<generation_setup> from(const settings& set, text_form form);

  [[nodiscard]] uint32_t seed() const { return sampling_.seed; }
  [[nodiscard]] bool is_random() const { return sampling_.temperature > 0; }
  [[nodiscard]] const std::vector<std::string>& stop_texts() const { return stops_; }
  [[nodiscard]] const token_list& stop_ids() const { return stop_ids_; }

  // The model of --model-draft, borrowed; NULL: there is none.
  void draft_with(bitnet_model* draft);
  // Sets the chat whose thinking --reasoning-budget limits. NULL: none.
  void answer_to(const bitnet_chat* chat);
  // The result points into this setup: keep the setup alive, unmoved and unchanged.
  [[nodiscard]] bitnet_generation options() const;

 private:
  generation_setup() = default;
  result<void> take_breakers(const settings& set);

  bitnet_sampling sampling_{};
  std::vector<bitnet_logit_bias> biases_;
  std::vector<std::string> breakers_;
  std::vector<bitnet_str> breaker_views_;
  std::vector<std::string> stops_;
  std::vector<bitnet_str> stop_views_;
  token_list stop_ids_;
  text_form form_;
  bitnet_speculation speculation_{};
  int32_t max_tokens_ = -1;
  int32_t reasoning_budget_ = -1;
  bool in_reasoning_ = false;
  std::string reasoning_begins_, reasoning_ends_;
};

// Reads --spec-type, --draft-max, --draft-min and --spec-ngram-size-n; the draft model is not set.
// Exit code 2 for --spec-type draft without --model-draft.
[[nodiscard]] result<bitnet_speculation> given_speculation(const settings& set);
// Summarises the report of a session or scheduler: "speculation by ngram: 30 of 40 drafted tokens
// accepted, ..."; "" if nothing was drafted by request.
[[nodiscard]] std::string speculation_line(const nlohmann::json& report);

struct generated {
  bitnet_generation_result result{};
  token_list ids;
  std::string text;
};

// Runs until the generation ends, until Ctrl-C, or until `sink` returns false. Ctrl-C has the
// stop_reason BITNET_STOP_CANCELLED even during the prompt.
[[nodiscard]] result<generated> generate(bitnet_session* session, const token_list& prompt,
                                         const generation_setup& setup,
                                         const std::function<bool(std::string_view)>& sink);

// Generates ids as `how` says, whose out_tokens it sets. Exit code `interrupted` after Ctrl-C.
[[nodiscard]] result<token_list> generated_ids(bitnet_session* session, const token_list& prompt,
                                               bitnet_generation how);

[[nodiscard]] const char* stop_name(uint32_t reason);
// Timings under llama-server's names: prompt_n, prompt_ms, prompt_per_second, predicted_n, ...
[[nodiscard]] nlohmann::json timings_json(const bitnet_generation_result& done);
// "prompt 12 tokens in 34.5 ms (347.8/s), generated ..."
[[nodiscard]] std::string timings_line(const bitnet_generation_result& done);

// "1 2 3", "1,2,3" or "[1, 2, 3]". Exit code 2 for anything else.
[[nodiscard]] result<token_list> parse_ids(std::string_view text);

}  // namespace bitnet::host
