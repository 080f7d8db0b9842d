#pragma once
// Reads a caller's options of a generation: limits, sampling, grammar or JSON schema.

#include <memory>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "generate/generation.hpp"
#include "grammar/guide.hpp"

namespace bitnet::api {

// A caller's options of any size as this library's structs; their lists are checked for NULL.
struct taken_generation {
  bitnet_generation how;
  bitnet_sampling sampling;
};
result<taken_generation> take_generation(const bitnet_generation* given);

// All options except grammar and callback, checked for the model's vocabulary.
result<generate::options> generation_options_of(bitnet_model& model, const taken_generation& o);

inline bool has_form(const bitnet_generation& how) {
  return how.grammar.size != 0 || how.json_schema.size != 0;
}
// Compiles the caller's grammar or JSON schema for the tokens of the model. Errors:
// BITNET_INVALID_ARGUMENT with the position, BITNET_UNSUPPORTED.
result<std::unique_ptr<grammar::guide>> guide_of(bitnet_model& model, const bitnet_generation& how);

}  // namespace bitnet::api
