// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// A step as kernels see it.

#include <cstdint>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/kv_storage.hpp"

namespace bitnet::sdk {

// Contents of the step buffers of the running step.
struct step_view {
  uint32_t n_tokens = 0, n_outputs = 0;
  uint32_t max_blocks = 0, block_tokens = 0;
  uint32_t top_logits = 0;  // as in bitnet_step, like the window
  uint32_t window = 0, window_keep = 0;
  const int32_t* tokens = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* sequences = nullptr;
  const int32_t* slots = nullptr;
  const int32_t* block_tables = nullptr;  // (n_sequences, max_blocks)
  const int32_t* output_rows = nullptr;
  const int32_t* states = nullptr;    // (n_sequences)
  bitnet_largest* largest = nullptr;  // (n_outputs), where the graph has that port
  kv_storage kv{};

  // Positions that token t sees: [kept_from, kept) and [first, end), kept_from <= kept <= first.
  struct sight {
    uint64_t kept_from, kept, first, end;
    uint64_t count() const noexcept { return kept - kept_from + end - first; }
    // The n-th position seen, ascending.
    uint64_t position(uint64_t n) const noexcept {
      const uint64_t early = kept - kept_from;
      return n < early ? kept_from + n : first + (n - early);
    }
  };
  // With the step's window alone.
  sight sees(uint64_t t) const noexcept { return sees(t, 0); }
  // With the window of an ATTN_PAGED as well: its ints[4].
  sight sees(uint64_t t, int32_t own_window) const noexcept {
    const uint64_t end = static_cast<uint64_t>(positions[t]) + 1;
    const auto own = static_cast<uint64_t>(own_window);
    const uint64_t least = own == 0 || end <= own ? 0 : end - own;
    uint64_t first = window == 0 || end <= window ? 0 : end - window;
    const uint64_t kept = window_keep < first ? window_keep : first;
    first = first < least ? least : first;
    return {least < kept ? least : kept, kept, first, end};
  }

  // A run of adjacent tokens of one sequence: tokens [first, end), their state, and whether the
  // state counts as zeros.
  struct stretch {
    uint64_t first, end;
    float* state;
    bool fresh;
  };
  // The run that begins with token t, for an op whose part of the state begins at `element`.
  stretch stretch_from(uint64_t t, int32_t element) const noexcept {
    uint64_t end = t + 1;
    while (end < n_tokens && sequences[end] == sequences[t]) ++end;
    const auto id = static_cast<uint64_t>(states[sequences[t]]);
    return {t, end, kv.state(id) + element, positions[t] == 0};
  }

  // The blocks of token t's sequence, in order of position; entries of unseen blocks are undefined.
  const int32_t* blocks_of(uint64_t t) const noexcept {
    return block_tables + static_cast<uint64_t>(sequences[t]) * max_blocks;
  }
};

}  // namespace bitnet::sdk
