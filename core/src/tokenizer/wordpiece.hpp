#pragma once
// WordPiece: words to token ids by the longest token that fits, from the left.
//
// Rule     a word's first token is one that begins words (written U+2581 and its text), the others
//          go on within words (written as they are). A word that no tokens make up, or of more than
//          100 characters, is one unknown token.
// Cost     O(n x longest token) for n bytes.
// Errors   BITNET_BAD_DATA if an unknown token is needed and there is none.
// Source   docs/reference/tokenizers.md.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/unicode_forms.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

// Appends the ids of `text`, valid UTF-8; `v` must be of kind wordpiece.
[[nodiscard]] result<void> encode_wordpiece(const vocabulary& v, const bert_options& options,
                                            std::string_view text, std::vector<token>& out);

// "▁abc" to " abc", "abc" to "abc".
[[nodiscard]] std::string wordpiece_text_to_bytes(std::string_view text);

}  // namespace bitnet::tokenizer
