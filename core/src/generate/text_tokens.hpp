#pragma once
// The tokens of a vocabulary that can be a part of a text.

#include <memory>

#include "grammar/prefix_tree.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

// Their texts, for a grammar's guide: not those of control tokens, nor of those that end the
// generation.
std::shared_ptr<const grammar::prefix_tree> text_tokens(const tokenizer::tokenizer& of);

}  // namespace bitnet::generate
