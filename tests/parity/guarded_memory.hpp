#pragma once
// The conformance kit's guarded memory, under this folder's name.

#include "model/guarded_memory.hpp"

namespace bitnet::parity {

using conformance::guarded_memory;

}  // namespace bitnet::parity
