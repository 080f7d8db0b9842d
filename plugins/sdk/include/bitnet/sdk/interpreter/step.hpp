// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// What the host says about a program and its steps, checked before it is used: afterwards every
// token, position, slot and block is in range.

#include <algorithm>
#include <iterator>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/interpreter/graph.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"

namespace bitnet::sdk {

// One step buffer's memory as the program sees it.
struct bound_buffer {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

struct bound_buffers {
  bound_buffer tokens, positions, sequences, slots, block_tables, output_rows, logits;
};

// Copies the bounds of a program; the list of buckets stays the host's.
inline bitnet_status check_limits(const bitnet_program_options* options,
                                  bitnet_program_options& out, const reporter& report) {
  if (!options || !BITNET_HAS_FIELD(options, bitnet_program_options, block_tokens))
    return report.fail(BITNET_INVALID_ARGUMENT, "the program options are missing or too short");
  out = {};
  std::memcpy(&out, options, std::min<size_t>(options->struct_size, sizeof out));
  const uint64_t counts[] = {out.max_tokens, out.max_sequences, out.max_outputs, out.max_blocks,
                             out.block_tokens};
  if (std::any_of(std::begin(counts), std::end(counts),
                  [](uint64_t n) { return n == 0 || n > uint64_t{1} << 24; }) ||
      counts[3] * counts[4] > INT32_MAX || counts[1] * counts[3] > INT32_MAX)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "%u tokens, %u sequences, %u outputs, %u blocks of %u tokens: a bound is "
                       "zero or too large",
                       out.max_tokens, out.max_sequences, out.max_outputs, out.max_blocks,
                       out.block_tokens);
  return BITNET_OK;
}

// Whether the step buffers have room for what the bounds allow.
inline bitnet_status check_buffers(const bound_buffers& b, const bitnet_program_options& limits,
                                   const graph& g, const reporter& report) {
  const uint64_t tokens = 4 * uint64_t{limits.max_tokens};
  const uint64_t tables = 4 * uint64_t{limits.max_sequences} * limits.max_blocks;
  const uint64_t outputs = 4 * uint64_t{limits.max_outputs};
  const uint64_t logits = outputs * static_cast<uint64_t>(g.values[g.logits].dims[1]);
  const struct {
    const bound_buffer& buffer;
    uint64_t bytes;
    const char* name;
  } needs[] = {{b.tokens, tokens, "tokens"},
               {b.positions, tokens, "positions"},
               {b.sequences, tokens, "sequences"},
               {b.slots, tokens, "slots"},
               {b.block_tables, tables, "block_tables"},
               {b.output_rows, outputs, "output_rows"},
               {b.logits, logits, "logits"}};
  for (const auto& need : needs)
    if (!need.buffer.data || need.buffer.bytes < need.bytes)
      return report.fail(BITNET_INVALID_ARGUMENT, "buffer %s has %llu bytes, %llu are needed",
                         need.name, static_cast<unsigned long long>(need.buffer.bytes),
                         static_cast<unsigned long long>(need.bytes));
  return BITNET_OK;
}

inline uint32_t window_of(const bitnet_step& step) noexcept {
  return BITNET_HAS_FIELD(&step, bitnet_step, window_keep) ? step.window : 0;
}

class step_checker {
 public:
  // `seen` has the contents of the step buffers; `pool` is nullptr if the step names none.
  bitnet_status check(const bitnet_step& step, const bitnet_program_options& limits, const graph& g,
                      step_view seen, const kv_storage* pool, const reporter& report) {
    if (step.n_tokens == 0 || step.n_tokens > limits.max_tokens || step.n_sequences == 0 ||
        step.n_sequences > limits.max_sequences || step.n_outputs > limits.max_outputs)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "%u tokens, %u sequences, %u outputs: the program runs at most %u, %u, %u",
                         step.n_tokens, step.n_sequences, step.n_outputs, limits.max_tokens,
                         limits.max_sequences, limits.max_outputs);
    seen.window = window_of(step);
    seen.window_keep = seen.window != 0 ? step.window_keep : 0;
    if (g.kv_width != 0) {
      if (!pool) return report.fail(BITNET_INVALID_ARGUMENT, "the program needs a KV pool");
      if (pool->n_layers < g.kv_layers || pool->n_kv_heads * pool->head_dim != g.kv_width ||
          (g.n_kv_heads != 0 && pool->n_kv_heads != g.n_kv_heads) ||
          pool->block_tokens != limits.block_tokens)
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "the pool (%u layers, %llu heads of %llu, blocks of %u) is not one for "
                           "this program",
                           pool->n_layers, static_cast<unsigned long long>(pool->n_kv_heads),
                           static_cast<unsigned long long>(pool->head_dim), pool->block_tokens);
    }
    const auto wrong = [&](const char* what, uint64_t i, int64_t value) {
      return report.fail(BITNET_INVALID_ARGUMENT, "%s %llu is %lld, which is out of range", what,
                         static_cast<unsigned long long>(i), static_cast<long long>(value));
    };
    const auto outside = [](int32_t value, uint64_t end) {
      return value < 0 || static_cast<uint64_t>(value) >= end;
    };
    const uint64_t blocks = pool ? pool->n_blocks : 0;
    for (uint64_t t = 0; t < step.n_tokens; ++t) {
      if (outside(seen.tokens[t], g.vocabulary)) return wrong("token", t, seen.tokens[t]);
      if (outside(seen.positions[t], uint64_t{limits.max_blocks} * limits.block_tokens))
        return wrong("position", t, seen.positions[t]);
      if (outside(seen.sequences[t], step.n_sequences))
        return wrong("sequence", t, seen.sequences[t]);
      if (g.writes_kv && outside(seen.slots[t], blocks * limits.block_tokens))
        return wrong("slot", t, seen.slots[t]);
      if (!g.attends) continue;
      const step_view::sight sight = seen.sees(t);
      const int32_t* table = seen.blocks_of(t);
      const uint64_t kept = (sight.kept + limits.block_tokens - 1) / limits.block_tokens;
      for (uint64_t b = 0; b * limits.block_tokens < sight.end; ++b) {
        if (b == kept) b = std::max(kept, sight.first / limits.block_tokens);
        if (outside(table[b], blocks)) return wrong("block", b, table[b]);
      }
    }
    for (uint64_t o = 0; o < step.n_outputs; ++o)
      if (outside(seen.output_rows[o], step.n_tokens))
        return wrong("output row", o, seen.output_rows[o]);
    return g.writes_kv ? check_slots_differ(seen.slots, step.n_tokens, report) : BITNET_OK;
  }

 private:
  // Two tokens in one slot would be written by two workers at once.
  bitnet_status check_slots_differ(const int32_t* slots, uint32_t n, const reporter& report) {
    sorted_slots_.assign(slots, slots + n);
    std::sort(sorted_slots_.begin(), sorted_slots_.end());
    const auto twice = std::adjacent_find(sorted_slots_.begin(), sorted_slots_.end());
    if (twice == sorted_slots_.end()) return BITNET_OK;
    return report.fail(BITNET_INVALID_ARGUMENT, "slot %d is given to two tokens", *twice);
  }

  std::vector<int32_t> sorted_slots_;
};

}  // namespace bitnet::sdk
