#pragma once
// Texts in chunks, as `eval ppl` and `eval kld` read them, and the logits of each chunk.

#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "eval/likelihood.hpp"
#include "library/engine.hpp"

namespace bitnet::host {

struct text_chunks {
  eval::chunk_rule rule;
  uint64_t n_tokens = 0;  // of the whole text, with begin-of-sequence
  uint64_t n_chunks = 0;
  token_list tokens;  // of these chunks, as they are evaluated

  [[nodiscard]] std::span<const bitnet_token> chunk(uint64_t i) const {
    return std::span(tokens).subspan(i * rule.n_context, rule.n_context);
  }
};

// --ctx-size, or 512 as in llama-perplexity.
[[nodiscard]] result<uint32_t> eval_context(const settings& set);
// The text of --file. Exit code 2 where none is given.
[[nodiscard]] result<std::string> eval_text(const settings& set);
// The text in chunks of `n_context`, at most --chunks of them. Exit code 2 where it has less than
// two.
[[nodiscard]] result<text_chunks> chunks_of(const settings& set, const bitnet_model* model,
                                            const std::string& text, uint32_t n_context);
// A session of `n_context` tokens; a warning where the model was trained for fewer.
[[nodiscard]] result<engine> open_eval(const invocation& in, const std::string& wanted,
                                       uint32_t n_context);

// Rows of logits, each followed by the token that it scores: their number is that of `targets`.
using row_sink =
    std::function<result<void>(std::span<const float> rows, std::span<const bitnet_token> targets)>;
// All scored rows of a chunk, in order, some at a time. The session holds the chunk afterwards.
[[nodiscard]] result<void> evaluate_chunk(bitnet_session* session, const settings& set,
                                          std::span<const bitnet_token> ids,
                                          const eval::chunk_rule& rule, uint32_t n_vocab,
                                          const row_sink& sink);

// Of each scored token of a chunk, the bytes that it adds to the text.
[[nodiscard]] result<std::vector<std::size_t>> sizes_of(const bitnet_model* model,
                                                        std::span<const bitnet_token> ids,
                                                        const eval::chunk_rule& rule);

// Counts rows of logits, the tokens behind them, and the bytes of these.
void add_rows(eval::token_tally& to, std::span<const float> rows,
              std::span<const bitnet_token> targets, std::span<const std::size_t> sizes);

// "PPL = 4.5078 +/- 0.0123 ..." and the bits per byte.
[[nodiscard]] std::string tally_lines(const eval::token_tally& tally, const text_chunks& of);
// Members n_ctx to bits_per_byte_error.
void add_tally(nlohmann::ordered_json& to, const eval::token_tally& tally, const text_chunks& of);

}  // namespace bitnet::host
