// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// A weight as kernels see it.

#include <cstdint>

#include "bitnet/abi/tensor.h"

namespace bitnet::sdk {

struct packed_form;  // of tier 0: interpreter/kernel.hpp
class row_copy;      // of tier 0: interpreter/row_copies.hpp

// A sealed weight. Rank-1 tensors are always f32 here, whatever their format in the file.
struct weight {
  uint32_t format;      // BITNET_FORMAT_*
  uint64_t k, m;        // input width, output rows
  const uint8_t* data;  // nullptr where a packing dropped the rows
  uint64_t row_bytes;
  const float* scales;            // ternary only, (n_scales); nullptr where a packing holds them
  uint64_t scale_group;           // elements, 0 = one scale
  packed_form* packed = nullptr;  // nullptr: this weight has none
  row_copy* copy = nullptr;       // of the rows that kernels read; nullptr: not wanted

  const uint8_t* row(uint64_t r) const noexcept { return data + r * row_bytes; }
  // The packed form for a kernel; the kernel runs only if the form exists.
  const uint8_t* packed_data() const noexcept;
  bool rows_dropped() const noexcept;
  const float* f32() const noexcept { return reinterpret_cast<const float*>(data); }
};

}  // namespace bitnet::sdk
