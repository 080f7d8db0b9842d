#pragma once
// Table of all dense weight formats that a backend gets as they are in the model file.
//
// X(name, NAME, scale, scale): gguf::type::name, "name" in messages, BITNET_FORMAT_NAME, and
//   offsets (bytes) of the f16 scales in a block; -1: none. Sizes of blocks: gguf/types.cpp.
// clang-format off: columns.
#define BITNET_DENSE_FORMATS(X) \
  X(f32,  F32,   -1, -1)        \
  X(f16,  F16,   -1, -1)        \
  X(bf16, BF16,  -1, -1)        \
  X(q8_0, Q8_0,   0, -1)        \
  X(q4_0, Q4_0,   0, -1)        \
  X(q4_k, Q4_K,   0,  2)        \
  X(q6_k, Q6_K, 208, -1)
// clang-format on
