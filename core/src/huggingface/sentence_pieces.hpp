#pragma once
// Reads how a tokenizer.json with byte fallback adds a leading blank, as converted SentencePiece
// models do.
//
// Errors  BITNET_UNSUPPORTED, naming the component, for components that change the text in another
//         way.
// Source  tokenizers' Prepend, Replace and Metaspace.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"

namespace bitnet::huggingface {

enum class blank_before : uint8_t {
  never,
  // SentencePiece: before a text, and before text that follows a special token
  always,
  // Metaspace: unless the text begins with one
  unless_there,
  unless_there_at_beginning,  // not behind special tokens
};

// `has_inner_blanks`: some token has a blank behind its first character.
[[nodiscard]] result<blank_before> marks_of(const nlohmann::json& file,
                                            const std::function<bool()>& has_inner_blanks);

}  // namespace bitnet::huggingface
