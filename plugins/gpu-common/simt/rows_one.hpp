#pragma once
// Numbers that rows_one.cu shares with the host code that launches its kernels.

#include "plain_launch.hpp"

namespace bitnet::kernels {

// A thread for each of the four sums of squares that a thread of the kernels in rows.cu has.
inline constexpr uint32_t one_row_threads = 4 * group_threads;
// Elements of a row: so many at most, the second where a kernel's name ends in _long.
inline constexpr uint32_t one_row_most = 16 * one_row_threads, one_row_long = 34 * one_row_threads;
// Of dynamic shared memory: a sum and its error of each thread of rows.cu, a maximum of each warp.
inline constexpr uint32_t one_row_shared_bytes =
    group_threads * 8 + one_row_threads / warp_lanes * 4;

}  // namespace bitnet::kernels
