#pragma once
// SPM (SentencePiece BPE): converts text to token ids by scored merges.
//
// Rule     Blanks become U+2581; symbols begin as characters. Among all adjacent pairs whose text
//          is a token, the one with the highest score is merged first, ties leftmost. At the end an
//          unused token is split again, and text that is no token becomes one byte token per byte.
// Cost     O(n log n) for n bytes, no recursion.
// Errors   BITNET_BAD_DATA if a byte has neither a byte token nor an unknown token.
// Source   docs/reference/tokenizers.md#sentencepiece

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Appends the ids of `text`, raw bytes; `v` must be of kind spm. `space_before`: adds a space in
// front.
[[nodiscard]] result<void> encode_spm(const vocabulary& v, std::string_view text, bool space_before,
                                      std::vector<token>& out);

}  // namespace bitnet::tokenizer
