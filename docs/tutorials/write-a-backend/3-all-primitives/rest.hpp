// SPDX-License-Identifier: Apache-2.0
// The primitives that the second step left out. Their units are in
// bitnet/sdk/interpreter/kernel.hpp.
#pragma once

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace sketch {

// rows.cpp
void rms_norm(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void add(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void mul(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void relu2(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void silu(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void linear_dense(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;

// attention.cpp
void rope(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void kv_write(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;
void attn_paged(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept;

}  // namespace sketch
