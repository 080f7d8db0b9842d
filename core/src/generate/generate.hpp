#pragma once
// From a prompt to text: evaluate, sample, stream, stop.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/guide.hpp"
#include "sampling/sampler.hpp"
#include "session/session.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

struct options {
  int64_t max_tokens = -1;  // -1: until something else ends it
  sampling::parameters sampling;
  bool ignore_end = false;  // go on past end-of-generation tokens
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_tokens;
  grammar::guide* grammar = nullptr;  // what the text keeps to; for the tokens of the model
  std::function<bool(std::string_view)> text;  // false stops
  const std::atomic<bool>* cancelled = nullptr;
};

struct outcome {
  uint32_t stop_reason = 0;  // BITNET_STOP_* of bitnet.h
  uint32_t stop_index = BITNET_NONE;
  std::vector<int32_t> tokens;  // including the one that ended it
  uint64_t n_prompt = 0;
  uint64_t prompt_ns = 0, generate_ns = 0;
};

// The texts of a model's tokens that can be a part of a text: not those of control tokens, nor of
// those that end the generation.
std::shared_ptr<const grammar::prefix_tree> text_tokens(const tokenizer::tokenizer& of);

// Appends the prompt to the session, then samples. Sampled tokens stay in the session. A failure
// while evaluating the prompt leaves the session as it was.
result<outcome> run(session::session& s, std::span<const int32_t> prompt, const options& o);

}  // namespace bitnet::generate
