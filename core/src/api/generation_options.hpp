#pragma once
// What callers say of a generation: its limits, its sampling, its grammar or JSON schema.

#include <memory>

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

inline bool has_form(const bitnet_generation& how) {
  return how.grammar.size != 0 || how.json_schema.size != 0;
}
// Of a grammar or a JSON schema, of which there is one, for the tokens of the model.
// BITNET_INVALID_ARGUMENT with the place that is wrong, BITNET_UNSUPPORTED.
result<std::unique_ptr<grammar::guide>> guide_of(bitnet_model& model, const bitnet_generation& how);

}  // namespace bitnet::api
