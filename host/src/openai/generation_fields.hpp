#pragma once
// What a body says of how an answer is generated, and the options of bitnet.h for it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/bitnet.h"
#include "openai/body.hpp"

namespace bitnet::host::openai {

using token_list = std::vector<bitnet_token>;

// Values only; generation_view has the pointers.
struct generation_wish {
  generation_wish();  // the library's defaults

  bitnet_sampling sampling{};
  bool has_seed = false;  // false: the caller draws a seed before it submits the request
  std::vector<bitnet_logit_bias> biases;
  std::vector<std::string> stops;
  std::string grammar;      // or
  std::string json_schema;  // as it was written
  std::string form_member;  // that asked for one of them, for errors; "": none did
  std::optional<std::vector<std::string>> dry_breakers;  // else the library's
  int32_t max_tokens = -1;                               // 0: with `echo` only
  uint32_t n_choices = 1;
  uint32_t best_of = 0;  // answers of which n_choices are given; 0: no more than these
  bool echo = false;     // the prompt is before the answer, and so are its log probabilities
  bool logprobs = false;
  uint32_t n_top_logprobs = 0;
  bitnet_speculation speculation{};  // its model is borrowed
  int32_t reasoning_budget = -1;     // tokens of thinking; -1: no bound
  bool in_reasoning = false;  // of the prompt, and what separates its thinking from the answer:
  std::string reasoning_begins, reasoning_ends;  // ends is "" where thinking is not separated
  // What becomes of lines of a system prompt that change often: system_lines.hpp.
  bool keeps_billing_header = true;
  bool moves_date_lines = false;

  [[nodiscard]] bool has_form() const { return !grammar.empty() || !json_schema.empty(); }
};

inline constexpr uint32_t most_choices = 128;  // of a request to a scheduler

// The members that chats and completions have in common; what is absent stays as it is in `how`.
// Logit biases are of ids below n_vocab. `body`: the text of the object that `in` reads.
void read_generation(field_reader& in, std::string_view body, uint32_t n_vocab,
                     generation_wish& how);

// The options of a request to a scheduler. They point into `how` and `prompt`, which outlive this
// object and do not change meanwhile.
class generation_view {
 public:
  generation_view(const generation_wish& how, const token_list& prompt);
  generation_view(const generation_view&) = delete;
  generation_view& operator=(const generation_view&) = delete;

  [[nodiscard]] const bitnet_request_options& options() const { return request_; }

 private:
  bitnet_sampling sampling_;
  std::vector<bitnet_str> stops_, breakers_;
  bitnet_generation generation_{};
  bitnet_request_options request_{};
};

}  // namespace bitnet::host::openai
