#pragma once
// One call of bitnet_generate, with settings turned into its options and its answer into JSON.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "library/engine.hpp"

namespace bitnet::host {

// What texts are kept to: one of both, or neither.
struct text_form {
  std::string grammar;
  std::string json_schema;
};
// What --grammar, --json-schema or the options of their files say, checked. A file is read once: it
// may be a pipe. Exit code 2 with the place of what is wrong.
[[nodiscard]] result<text_form> given_form(const settings& set);

// The sampling options that are plain numbers.
void take_knobs(const settings& set, bitnet_sampling& to);

// Owns what bitnet_generation points to. Its parts point at each other's heap memory, which moves
// with it; a copy would not.
class generation_plan {
 public:
  generation_plan(generation_plan&&) noexcept = default;
  generation_plan& operator=(generation_plan&&) noexcept = default;

  // Draws the seed when it is -1. Exit code 2 for a malformed bias or stop id.
  static result<generation_plan> from(const settings& set, text_form form);

  [[nodiscard]] uint32_t seed() const { return sampling_.seed; }
  [[nodiscard]] bool is_random() const { return sampling_.temperature > 0; }
  [[nodiscard]] const std::vector<std::string>& stop_texts() const { return stops_; }
  [[nodiscard]] const token_list& stop_ids() const { return stop_ids_; }

  // The model of --model-draft, borrowed; NULL: there is none.
  void draft_with(bitnet_model* draft);
  // The chat that is answered, whose thinking --reasoning-budget bounds. NULL: no chat.
  void answer_to(const bitnet_chat* chat);
  // Pointers into this plan; valid while it lives at its place, unchanged.
  [[nodiscard]] bitnet_generation options() const;

 private:
  generation_plan() = default;
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

// As --spec-type, --draft-max, --draft-min and --spec-ngram-size-n say; without its draft model.
// Exit code 2 for --spec-type draft without --model-draft.
[[nodiscard]] result<bitnet_speculation> given_speculation(const settings& set);
// "speculation by ngram: 30 of 40 drafted tokens accepted, ..." of a session's or a scheduler's
// report; "" where nothing was to be drafted.
[[nodiscard]] std::string speculation_line(const nlohmann::json& report);

struct generated {
  bitnet_generation_result result{};
  token_list ids;
  std::string text;
};

// Runs until it ends, Ctrl-C, or `sink` answers false. Ctrl-C while the prompt is evaluated ends it
// the same way as later: stop_reason BITNET_STOP_CANCELLED.
[[nodiscard]] result<generated> generate(bitnet_session* session, const token_list& prompt,
                                         const generation_plan& plan,
                                         const std::function<bool(std::string_view)>& sink);

[[nodiscard]] const char* stop_name(uint32_t reason);
// llama-server's names: prompt_n, prompt_ms, prompt_per_second, predicted_n, ...
[[nodiscard]] nlohmann::json timings_json(const bitnet_generation_result& done);
// "prompt 12 tokens in 34.5 ms (347.8/s), generated ..."
[[nodiscard]] std::string timings_line(const bitnet_generation_result& done);

// "1 2 3", "1,2,3" or "[1, 2, 3]". Exit code 2 for anything else.
[[nodiscard]] result<token_list> parse_ids(std::string_view text);

}  // namespace bitnet::host
