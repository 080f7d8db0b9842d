#pragma once
// Special tokens that take blanks beside them, or count only between words, as added tokens of a
// tokenizer.json do (lstrip, rstrip, single_word). No GGUF of others has them.
//
// Source  docs/reference/tokenizers.md#special-tokens

#include <string_view>
#include <vector>

#include "tokenizer/special_tokens.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// `parts` are those of one text, in order.
[[nodiscard]] std::vector<fragment> with_flags(const vocabulary& v, std::vector<fragment> parts);

}  // namespace bitnet::tokenizer
