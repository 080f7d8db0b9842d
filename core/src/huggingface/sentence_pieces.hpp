#pragma once
// How a tokenizer.json with byte fallback marks blanks, as converted SentencePiece models do.
//
// Errors  BITNET_UNSUPPORTED, naming the component, for what changes a text otherwise.
// Source  tokenizers' Prepend, Replace and Metaspace.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"

namespace bitnet::huggingface {

enum class blank_before : uint8_t {
  never,
  // SentencePiece's: before a text, and before what follows a special token
  always,
  // Metaspace's: not where there is one
  unless_there,
  unless_there_at_beginning,  // not behind special tokens
};

// `has_inner_blanks`: whether a token has a blank behind its first character.
[[nodiscard]] result<blank_before> marks_of(const nlohmann::json& file,
                                            const std::function<bool()>& has_inner_blanks);

}  // namespace bitnet::huggingface
