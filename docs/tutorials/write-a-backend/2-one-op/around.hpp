// SPDX-License-Identifier: Apache-2.0
// What brings numbers to an op and takes them away again. A unit is a row.
#pragma once

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace sketch {

void embed_gather(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void act_quant_i8(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void gather_rows(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;

}  // namespace sketch
