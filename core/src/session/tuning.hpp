#pragma once
// Settings of a device that only measuring finds (bitnet/abi/tuning.h): measured at the first
// start, kept beside the packed weights, handed over at the next.

#include <string>

#include "bitnet/abi/backend.h"
#include "select/selection.hpp"
#include "session/pack_cache.hpp"

namespace bitnet::session {

// What the device uses now, "" if its backend offers nothing to tune. Without a cache nothing is
// measured. Errors are notes of the cache: the backend goes on with what it had.
[[nodiscard]] std::string tune(const select::choice& choice, bitnet_device* device,
                               const pack_cache* cache);

}  // namespace bitnet::session
