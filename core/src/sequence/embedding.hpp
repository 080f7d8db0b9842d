#pragma once
// A text as a vector: the hidden states of its tokens, pooled.
//
// Threads the session's.

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "sequence/session.hpp"

namespace bitnet::sequence {

// As files number them under <architecture>.pooling_type.
enum class pooling : uint8_t {
  mean = 1,
  cls = 2,  // the first token's, which sees no other
  last = 3
};

// What a file's number means: last for 0, which names none. BITNET_UNSUPPORTED for others.
result<pooling> pooling_of(uint32_t number);
const char* name_of(pooling by);

// Of length 1, into `out` of row_floats. The session, of those that give embeddings, holds nothing
// before and after. What comes out depends on `ids` alone, not on the size of steps.
result<void> embed(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out);

}  // namespace bitnet::sequence
