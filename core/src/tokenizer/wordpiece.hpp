#pragma once
// WordPiece: converts words to token ids by the longest matching token, from the left.
//
// Rule     The first token of a word is one that begins words (stored with U+2581 in front), the
//          others continue words (stored as they are). A word that no tokens make up, or of more
//          than 100 characters, becomes one unknown token.
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
