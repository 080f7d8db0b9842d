#pragma once
// What callers say of a generation: its limits, its sampling, its grammar.

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "generate/generation.hpp"
#include "grammar/guide.hpp"

namespace bitnet::api {

// Options of any size, as this library knows them; lists that they name are there.
struct taken_generation {
  bitnet_generation how;
  bitnet_sampling sampling;
};
result<taken_generation> take_generation(const bitnet_generation* given);

// All but the grammar and the callback, for the vocabulary of the model.
result<generate::options> generation_options_of(bitnet_model& model, const taken_generation& o);

// Of a grammar's text, for the tokens of the model. BITNET_INVALID_ARGUMENT with line and column.
result<std::unique_ptr<grammar::guide>> guide_of(bitnet_model& model, std::string_view text);

}  // namespace bitnet::api
