// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace sketch {

// LINEAR_TERNARY of bitnet/abi/ops.h. A unit is an output column.
void linear_ternary(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;

}  // namespace sketch
