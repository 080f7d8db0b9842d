#pragma once
// Multiple-choice questions: a model is right if it finds the right answer the likeliest.
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
  uint64_t line = 0;  // in its file, from 1
  // The text before each ending: ctx, or "Question: ...\nAnswer:".
  std::string context;
  std::vector<std::string> endings;  // at least two
  std::size_t label = 0;             // index of the right one
};

// Parses one line. The message says what is wrong, without the line's number.
[[nodiscard]] std::expected<choice_item, std::string> read_choice_item(std::string_view text);

// Context and ending, with a blank between them unless one of them brings white space.
[[nodiscard]] std::string joined(const choice_item& item, std::size_t ending);

// Length of the common prefix, in tokens.
[[nodiscard]] std::size_t common_prefix(std::span<const bitnet_token> a,
                                        std::span<const bitnet_token> b);

// Number of Unicode characters in UTF-8 text.
[[nodiscard]] std::size_t characters_of(std::string_view text);

// A model's score of an item: the log probability of each ending after the context.
struct choice_score {
  std::vector<double> logprobs;  // sum over the ending's tokens
  std::vector<double> lengths;   // characters of each ending
};
// Index of the likeliest ending, the first of equal ones. `normalised`: by log probability per
// character.
[[nodiscard]] std::size_t chosen(const choice_score& score, bool normalised);

struct choice_summary {
  share right, right_normalised;
  double random = 0;  // accuracy of guessing: the mean of 1 / endings
};
[[nodiscard]] choice_summary summary_of(std::span<const choice_item> items,
                                        std::span<const choice_score> scores);

}  // namespace bitnet::host::eval
