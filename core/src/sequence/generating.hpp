#pragma once
// A generation on a session of its own: from a prompt to text.

#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "generate/generation.hpp"
#include "sequence/session.hpp"
#include "speculate/speculation.hpp"

namespace bitnet::sequence {

struct generated {
  generate::outcome outcome;
  uint64_t n_prompt = 0;
  uint64_t prompt_ns = 0, generate_ns = 0;
};

// Appends the prompt to the session, then samples. Sampled tokens stay in the session, which has
// each of them before options.text gets its text. If the evaluation of the prompt fails, the
// session is as before. `cancelled` may be set by any thread; nullptr: never.
// `ahead` drafts tokens, which does not change the text; nullptr: nothing is drafted.
result<generated> generate_text(session& s, std::span<const int32_t> prompt, generate::options o,
                                const std::atomic<bool>* cancelled,
                                speculate::speculation* ahead = nullptr);

}  // namespace bitnet::sequence
