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

// Writes a vector of length 1 to `out`, of row_floats. The session must be one that gives
// embeddings; it is empty before and after. The result depends on `ids` alone, not on the size of
// steps.
result<void> embed(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out);

}  // namespace bitnet::sequence
