#pragma once
// Tokenizes a text from a body.

#include <string>

#include "openai/request.hpp"

namespace bitnet::host::openai {

// `flags`: BITNET_TOKENIZE_*. `member`: where the text came from, for errors.
[[nodiscard]] parsed<token_list> tokens_of(const std::string& text, uint32_t flags,
                                           const bitnet_model* with, const char* member);

}  // namespace bitnet::host::openai
