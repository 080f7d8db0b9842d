#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace bitnet::generate {

// BITNET_INVALID_ARGUMENT for an id outside the vocabulary; the message names the first.
result<void> check_ids(std::span<const int32_t> ids, uint64_t n_vocab);

}  // namespace bitnet::generate
