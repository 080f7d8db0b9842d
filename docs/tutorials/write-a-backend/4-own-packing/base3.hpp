// SPDX-License-Identifier: Apache-2.0
// Ternary matrices with five weights in a byte, in place of the four of TERNARY2: a fifth fewer
// bytes to read for each token.
#pragma once

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace sketch {

// How both kernels want their matrix. The rows as they came are dropped.
bitnet::sdk::packing base3();

// LINEAR_TERNARY and EMBED_GATHER of bitnet/abi/ops.h for such a matrix.
void linear_ternary_base3(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void embed_gather_base3(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;

}  // namespace sketch
