#pragma once
// Which tokens of a vocabulary are for infilling. See docs/reference/tokenizers.md#infilling.

#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Those that no key of the file named, by the texts of control tokens.
void find_infill_tokens(vocabulary& v);

}  // namespace bitnet::tokenizer
