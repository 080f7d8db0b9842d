#pragma once
// The list of all supported architectures. A row is the name of an `architecture` that a file
// beside this one defines. Messages use this order.
//
// Source  docs/how-to/extend/architecture.md

#define BITNET_ARCHITECTURES(X) \
  X(bitnet)                     \
  X(bitnet_25)                  \
  X(bitnet_b158)                \
  X(llama)                      \
  X(minicpm)                    \
  X(qwen3)                      \
  X(gemma3)                     \
  X(qwen35)
