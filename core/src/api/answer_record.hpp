#pragma once
// Data on a session's last call of bitnet_generate, for receipts.

#include <cstdint>
#include <string>
#include <vector>

#include "api/generation_options.hpp"
#include "base/result.hpp"
#include "sequence/generating.hpp"

namespace bitnet::api {

struct answer_record {
  bool any = false;  // false: no call yet
  sampling::parameters sampling{};
  std::vector<std::string> dry_breakers{};
  bool ignore_eos = false;
  int64_t max_tokens = 0;
  std::string grammar_sum{}, schema_sum{};  // SHA-256; "": none
  uint64_t n_stop_strings = 0;
  int32_t reasoning_budget = -1;
  std::vector<int32_t> stop_tokens{};
  std::vector<int32_t> prompt{};  // all tokens before the first that was generated
  std::vector<int32_t> output{};
  uint32_t stop_reason = 0;
  uint64_t n_evaluated = 0, prompt_ns = 0, generate_ns = 0, wall_ns = 0;
  bitnet_status status = BITNET_OK;
  std::string message{};  // the error, if the call failed
};

// Made before the call computes: its options, `prompt`, and the tokens `before` it.
answer_record record_of(const bitnet_generation& asked, const generate::options& how,
                        std::span<const int32_t> before, std::span<const int32_t> prompt);
// Adds the result of the call.
void note_answer(answer_record& to, const result<sequence::generated>& done, uint64_t wall_ns);

}  // namespace bitnet::api
