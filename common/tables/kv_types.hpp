#pragma once
// Table of all types that keys and values can be kept in, for messages, reports and options.
//
// X(name, NAME, elements, bytes): "name" for users, BITNET_KV_NAME of bitnet.h, BITNET_DTYPE_NAME
//   of the backend ABI, and the size of the smallest unit.
// clang-format off: columns.
#define BITNET_KV_TYPES(X)                                          \
  X(f32,  F32,   1,                 4)                              \
  X(f16,  F16,   1,                 2)                              \
  X(q8_0, Q8_0, BITNET_Q8_0_BLOCK, BITNET_Q8_0_BLOCK_BYTES)         \
  X(q4_0, Q4_0, BITNET_Q4_0_BLOCK, BITNET_Q4_0_BLOCK_BYTES)
// clang-format on
