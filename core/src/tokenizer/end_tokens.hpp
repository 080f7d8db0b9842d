#pragma once
// Which tokens end a generation: docs/reference/tokenizers.md#end-tokens

#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Fills v.eot and v.eom where the file did not name them, and v.ends. A token whose text says that
// it ends a turn becomes a control token whatever its type was: otherwise it would be shown as
// text.
void find_end_tokens(vocabulary& v);

}  // namespace bitnet::tokenizer
