#pragma once
// The tokens of a vocabulary that can be a part of a text.

#include <memory>

#include "grammar/prefix_tree.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

// The texts of the tokens, for a grammar's guide. Control tokens and tokens that end the generation
// have none.
std::shared_ptr<const grammar::prefix_tree> text_tokens(const tokenizer::tokenizer& of);

}  // namespace bitnet::generate
