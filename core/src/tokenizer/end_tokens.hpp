#pragma once
// Finds the tokens that end a generation: docs/reference/tokenizers.md#end-tokens

#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Fills v.eot and v.eom if the file has no key for them, and v.ends. A token whose text ends a turn
// becomes a control token whatever its type was: otherwise it would be shown as text.
void find_end_tokens(vocabulary& v);

}  // namespace bitnet::tokenizer
