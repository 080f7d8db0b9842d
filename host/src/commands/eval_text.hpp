#pragma once
// Splits a text into chunks for `eval ppl` and `eval kld`, and evaluates their logits.

#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "eval/likelihood.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

struct text_chunks {
  eval::chunk_rule rule;
  uint64_t n_tokens = 0;  // whole text, with begin-of-sequence
  uint64_t n_chunks = 0;
  token_list tokens;  // of these chunks, as evaluated

  [[nodiscard]] std::span<const bitnet_token> chunk(uint64_t i) const {
    return std::span(tokens).subspan(i * rule.n_context, rule.n_context);
  }
};

// --ctx-size, or 512 as in llama-perplexity.
[[nodiscard]] result<uint32_t> eval_context(const settings& set);
// Returns the text of --file. Exit code 2 if none is given.
[[nodiscard]] result<std::string> eval_text(const settings& set);
// Splits the text into chunks of `n_context` tokens, at most --chunks of them. Exit code 2 if the
// text has fewer than two.
[[nodiscard]] result<text_chunks> chunks_of(const settings& set, const bitnet_model* model,
                                            const std::string& text, uint32_t n_context);
// Opens a session of `n_context` tokens; warns if the model was trained for fewer.
[[nodiscard]] result<engine> open_eval(const invocation& in, const std::string& wanted,
                                       uint32_t n_context);

// Receives rows of logits and, in `targets`, the token that each row scores.
using row_sink =
    std::function<result<void>(std::span<const float> rows, std::span<const bitnet_token> targets)>;
// Evaluates a chunk and passes its scored rows in order, several at a time. The session holds the
// chunk afterwards.
[[nodiscard]] result<void> evaluate_chunk(bitnet_session* session, const settings& set,
                                          std::span<const bitnet_token> ids,
                                          const eval::chunk_rule& rule, uint32_t n_vocab,
                                          const row_sink& sink);

// Returns, for each scored token of a chunk, the number of bytes that it adds to the text.
[[nodiscard]] result<std::vector<std::size_t>> sizes_of(const bitnet_model* model,
                                                        std::span<const bitnet_token> ids,
                                                        const eval::chunk_rule& rule);

// Adds rows of logits, the tokens that follow them, and the bytes of these tokens.
void add_rows(eval::token_tally& to, std::span<const float> rows,
              std::span<const bitnet_token> targets, std::span<const std::size_t> sizes);

// "PPL = 4.5078 +/- 0.0123 ..." and the bits per byte.
[[nodiscard]] std::string tally_lines(const eval::token_tally& tally, const text_chunks& of);
// Adds the members from n_ctx to bits_per_byte_error.
void add_tally(nlohmann::ordered_json& to, const eval::token_tally& tally, const text_chunks& of);

}  // namespace bitnet::host
