#pragma once
// SentencePiece's spelling of blanks: U+2581.

#include <string>
#include <string_view>

namespace bitnet::tokenizer {

// Begins a word: a blank in SentencePiece, a mark before words in WordPiece.
inline constexpr std::string_view blank = "\xE2\x96\x81";  // U+2581

// " abc" to "▁abc". `space_before`: adds a space in front.
[[nodiscard]] std::string with_marked_blanks(std::string_view text, bool space_before);

// "▁abc" to " abc".
[[nodiscard]] std::string with_plain_blanks(std::string_view text);

}  // namespace bitnet::tokenizer
