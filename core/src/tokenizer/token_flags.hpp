#pragma once
// Applies the options lstrip, rstrip and single_word of added tokens in a tokenizer.json: such
// tokens take adjacent blanks, or count only between words. Other programs' GGUF files have no such
// flags.
//
// Source  docs/reference/tokenizers.md#special-tokens

#include <string_view>
#include <vector>

#include "tokenizer/special_tokens.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// `parts`: the parts of one text, in order.
[[nodiscard]] std::vector<fragment> with_flags(const vocabulary& v, std::vector<fragment> parts);

}  // namespace bitnet::tokenizer
