#pragma once
// Questions with several answers, of which the model shall hold the right one for the likeliest.
//
// HellaSwag  {"ctx": text, "endings": [text...], "label": 2 or "2"}, label from 0
// ARC        {"question": text, "choices": {"text": [text...], "label": ["A"...]},
//             "answerKey": "A"}

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/bitnet.h"
#include "eval/divergence.hpp"

namespace bitnet::host::eval {

struct choice_item {
  uint64_t line = 0;  // of its file, from 1
  // What stands before each ending: ctx, or "Question: ...\nAnswer:".
  std::string context;
  std::vector<std::string> endings;  // at least two
  std::size_t label = 0;             // the right one
};

// One line. The message says what is wrong, without the line's number.
[[nodiscard]] std::expected<choice_item, std::string> read_choice_item(std::string_view text);

// Context and ending, with one blank between them where neither brings white space.
[[nodiscard]] std::string joined(const choice_item& item, std::size_t ending);

// Tokens at the begin that both have.
[[nodiscard]] std::size_t common_prefix(std::span<const bitnet_token> a,
                                        std::span<const bitnet_token> b);

// Unicode characters of UTF-8 text.
[[nodiscard]] std::size_t characters_of(std::string_view text);

// What the model holds of an item: the log probability of each ending behind the context.
struct choice_score {
  std::vector<double> logprobs;  // sums over the tokens of the ending
  std::vector<double> lengths;   // of the endings, in characters
};
// The likeliest ending, the first of equal ones; normalised: by log probability per character.
[[nodiscard]] std::size_t chosen(const choice_score& score, bool normalised);

struct choice_summary {
  share right, right_normalised;
  double random = 0;  // the share that guessing gives: the mean of 1 / endings
};
[[nodiscard]] choice_summary summary_of(std::span<const choice_item> items,
                                        std::span<const choice_score> scores);

}  // namespace bitnet::host::eval
