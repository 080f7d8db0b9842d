#pragma once
// The 256 characters that byte-level BPE vocabularies use for the 256 bytes.
//
// Source  GPT-2; docs/reference/tokenizers.md#byte-level-bpe: bytes 33-126, 161-172 and 174-255
//         stand for themselves, the other 68 in order for U+0100, U+0101, ...

#include <optional>
#include <string>
#include <string_view>

namespace bitnet::tokenizer {

[[nodiscard]] std::string_view byte_to_text(unsigned char byte);

// "Ġabc" to " abc"; nullopt if a character stands for no byte.
[[nodiscard]] std::optional<std::string> text_to_bytes(std::string_view text);

}  // namespace bitnet::tokenizer
