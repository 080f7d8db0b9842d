#pragma once
// Finds the tokens for infilling. See docs/reference/tokenizers.md#infilling.

#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Finds tokens for which the file has no key, by the texts of control tokens.
void find_infill_tokens(vocabulary& v);

}  // namespace bitnet::tokenizer
