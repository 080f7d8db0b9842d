#pragma once
// A text as a vector: the hidden states of its tokens, pooled.
//
// Threads the session's.

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "generate/embedding.hpp"
#include "sequence/session.hpp"

namespace bitnet::sequence {

using generate::name_of;
using generate::pooling;
using generate::pooling_of;

// Of length 1, into `out` of row_floats. The session, of those that give embeddings, holds nothing
// before and after. What comes out depends on `ids` alone, not on the size of steps.
result<void> embed(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out);

}  // namespace bitnet::sequence
