#pragma once
// What a body says of how an answer is generated, and the options of bitnet.h for it.

#include <cstdint>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "openai/body.hpp"

namespace bitnet::host::openai {

using token_list = std::vector<bitnet_token>;

// Values only; generation_view has the pointers.
struct generation_wish {
  generation_wish();  // the library's defaults

  bitnet_sampling sampling{};
  bool has_seed = false;  // else whoever submits draws one
  std::vector<bitnet_logit_bias> biases;
  std::vector<std::string> stops;
  std::string grammar;
  int32_t max_tokens = -1;
  uint32_t n_choices = 1;
  bool logprobs = false;
  uint32_t n_top_logprobs = 0;
};

// The members that chats and completions have in common; what is absent stays as it is in `how`.
// Logit biases are of ids below n_vocab.
void read_generation(field_reader& in, uint32_t n_vocab, generation_wish& how);

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
  std::vector<bitnet_str> stops_;
  bitnet_generation generation_{};
  bitnet_request_options request_{};
};

}  // namespace bitnet::host::openai
