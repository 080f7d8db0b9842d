#pragma once
// Reads from a body how to generate the answer, and makes bitnet.h's options of it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/bitnet.h"
#include "openai/body.hpp"

namespace bitnet::host::openai {

using token_list = std::vector<bitnet_token>;

// Values only; generation_view has the pointers to them.
struct generation_wish {
  generation_wish();  // sets the library's defaults

  bitnet_sampling sampling{};
  bool has_seed = false;  // false: the caller draws a seed before it submits the request
  std::vector<bitnet_logit_bias> biases;
  std::vector<std::string> stops;
  std::string grammar;      // at most one of these two is set
  std::string json_schema;  // raw text
  std::string form_member;  // the member that set it, for errors; "": none
  std::optional<std::vector<std::string>> dry_breakers;  // nullopt: the library's
  int32_t max_tokens = -1;                               // 0: only allowed with `echo`
  uint32_t n_choices = 1;
  uint32_t best_of = 0;  // generates this many, returns n_choices; 0: n_choices
  bool echo = false;     // returns the prompt and its logprobs before the answer
  bool logprobs = false;
  uint32_t n_top_logprobs = 0;
  bitnet_speculation speculation{};  // its model is borrowed
  int32_t reasoning_budget = -1;     // tokens of thinking; -1: unlimited
  bool in_reasoning = false;         // the prompt ends inside the thinking, delimited by:
  std::string reasoning_begins, reasoning_ends;  // ends "": thinking is not separated
  // Whether volatile lines of a system prompt are kept or moved: system_lines.hpp.
  bool keeps_billing_header = true;
  bool moves_date_lines = false;

  [[nodiscard]] bool has_form() const { return !grammar.empty() || !json_schema.empty(); }
};

inline constexpr uint32_t most_choices = 128;  // of one request to a scheduler

// Reads the members that chats and completions share; absent ones leave `how` unchanged. Ids of
// logit biases must be below n_vocab. `body`: raw text of the object that `in` reads.
void read_generation(field_reader& in, std::string_view body, uint32_t n_vocab,
                     generation_wish& how);

// The options of a request to a scheduler. They point into `how` and `prompt`, which must outlive
// this object unchanged.
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
