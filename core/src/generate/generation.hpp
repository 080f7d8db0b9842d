#pragma once
// From rows of logits to text: sample, stream, stop. It evaluates nothing: the caller computes the
// rows, in any steps and together with any other sequences.
//
//   while (true) {
//     wish w = wants();                 // its row: behind the prompt, then behind each token
//     if (!w.more) break;
//     take(row of w.top_logits);        // gives a token; read last()
//   }
//   finish();                           // the text that waited for the rest of a stop string
//
// Rows    are read in take() and not kept, so a sequence may be thrown out and computed again
//         between any two calls. wants() may be called again before take(): the answer is the same.
// Several generations may go on from the same history; each has a sampler and a guide of its own.
// Errors  of a call: the generation is of no use after one.
// Threads one at a time.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "generate/logits_row.hpp"
#include "generate/logprobs.hpp"
#include "generate/text_stream.hpp"
#include "generate/thinking_bound.hpp"
#include "grammar/guide.hpp"
#include "sampling/sampler.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

struct options {
  int64_t max_tokens = -1;  // -1: until something else ends it
  sampling::parameters sampling;
  bool ignore_end = false;  // go on past end-of-generation tokens
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_tokens;
  // The grammar that the text must match, for the tokens of the model. Borrowed; no other
  // generation may use it meanwhile.
  grammar::guide* grammar = nullptr;
  // Gets the text as it comes, in take() and finish(); false cancels. May be empty: last() and
  // finish() return the same text.
  std::function<bool(std::string_view)> text;
  bool logprobs = false;    // of each token; every step then has to bring all logits
  uint32_t n_logprobs = 0;  // of how many of the largest logits beside it, <= most_logprobs
  // The bound on thinking. Tokens that end the thinking are forced whatever the rows say, and count
  // as all others do.
  thinking_options thinking;
};

struct outcome {
  uint32_t stop_reason = 0;  // BITNET_STOP_* of bitnet.h; 0: it goes on
  uint32_t stop_index = BITNET_NONE;
  std::vector<int32_t> tokens;  // including the one that ended it
};

// The result of take().
struct taken {
  int32_t token = -1;
  bool is_end = false;      // a stop token, or one that ends a generation: it has no text
  std::string text;         // complete characters; "" while a stop string may begin
  token_logprobs logprobs;  // if options.logprobs
};

class generation {
 public:
  // `history`: the tokens before, with the prompt; for penalties. `room`: how many further tokens
  // the context takes. `tokens` is borrowed. BITNET_INVALID_ARGUMENT for options out of range.
  static result<generation> make(const tokenizer::tokenizer& tokens, uint32_t n_vocab, options o,
                                 std::span<const int32_t> history, uint64_t room = no_bound);
  static constexpr uint64_t no_bound = std::numeric_limits<uint64_t>::max();

  // Says whether the generation goes on, and how many of the largest logits the next row must have;
  // 0: all. Asks the grammar. May end the generation: at its length, at the end of the grammar, or
  // of the context. BITNET_UNSUPPORTED if no token continues the grammar.
  struct wish {
    bool more = false;
    uint32_t top_logits = 0;
  };
  result<wish> wants();

  // Samples from the row that wants() asked for, and returns the token. May end the generation: by
  // a token or a stop string, or because options.text returned false.
  result<int32_t> take(const logits_row& r);
  // The result of the last take(), until the next.
  [[nodiscard]] const taken& last() const { return last_; }

  // Ends it from outside, unless it has ended: BITNET_STOP_*.
  void end(uint32_t reason);
  void cancel() { end(BITNET_STOP_CANCELLED); }
  // After the end: returns the text that was held back, "" if there is none or it was returned
  // before. options.text gets it, too.
  std::string finish();

  [[nodiscard]] bool ended() const { return out_.stop_reason != 0; }
  [[nodiscard]] const outcome& so_far() const { return out_; }

 private:
  generation(const tokenizer::tokenizer& tokens, uint32_t n_vocab, options o,
             sampling::sampler sampler, std::span<const int32_t> history, uint64_t room);
  result<void> bound_thinking();
  result<void> ask_grammar();
  [[nodiscard]] uint32_t needed_logits() const;
  [[nodiscard]] bool is_long_enough() const;
  [[nodiscard]] result<int32_t> sample(const logits_row& r);
  bool find_end(int32_t id);
  result<void> push_text(int32_t id);
  [[nodiscard]] bool show(std::string_view text) const;

  options options_;
  const tokenizer::tokenizer* tokens_;
  std::vector<int32_t> tags_;  // control tokens that are text here: tags of answers
  sampling::sampler sampler_;
  text_stream stream_;
  std::optional<thinking_bound> thinking_;
  uint32_t n_vocab_;
  bool begins_;  // nothing is before the text
  uint64_t room_;
  bool wished_ = false;                // wants() was called, and take() not yet
  std::span<const uint64_t> allowed_;  // by the grammar, behind the last token; empty: all
  uint32_t n_allowed_ = 0;
  taken last_;
  outcome out_;
};

}  // namespace bitnet::generate
