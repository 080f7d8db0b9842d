// SPDX-License-Identifier: Apache-2.0
// What this backend can compute.
#pragma once

#include <vector>

#include "bitnet/sdk/interpreter.hpp"

namespace sketch {

std::vector<bitnet::sdk::primitive> kernels();

}  // namespace sketch
