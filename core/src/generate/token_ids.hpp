#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace bitnet::generate {

// BITNET_INVALID_ARGUMENT, naming the first that is in no vocabulary of that size.
result<void> check_ids(std::span<const int32_t> ids, uint64_t n_vocab);

}  // namespace bitnet::generate
