#pragma once
// Times of an answer, under llama-server's names.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "bitnet/bitnet.h"

namespace bitnet::host::openai {

// Covers all prompts and choices of a body. Tokens are summed; of times, which overlap, the longest
// counts.
class timings {
 public:
  void take_end(const bitnet_event& end);
  // {cache_n, prompt_n, prompt_ms, prompt_per_token_ms, prompt_per_second, predicted_n,
  // predicted_ms, predicted_per_token_ms, predicted_per_second}. prompt_n excludes cached tokens. A
  // rate without tokens is 0.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  uint64_t n_cached_ = 0, n_prompt_ = 0, n_generated_ = 0;
  uint64_t prompt_ns_ = 0, generate_ns_ = 0;
};

}  // namespace bitnet::host::openai
