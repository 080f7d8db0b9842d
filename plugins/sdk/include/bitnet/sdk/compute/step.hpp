// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Checks the host's requests for a program and its steps before use: afterwards every token,
// position, slot and block is in range.

#include <algorithm>
#include <iterator>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/graph.hpp"
#include "bitnet/sdk/compute/step_view.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

// The memory behind a port, as the host sees it.
struct bound_memory {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

// Copies the bounds of a program; the list of buckets stays the host's.
inline bitnet_status check_limits(const bitnet_program_options* options,
                                  bitnet_program_options& out, const reporter& report) {
  if (bitnet_status s = receive(options, offsetof(bitnet_program_options, precisions), out,
                                "program options", report);
      failed(s))
    return s;
  if (!understood(out.flags, BITNET_PROGRAM_DETERMINISTIC) || out.reserved_0 != 0)
    return report.fail(
        BITNET_UNSUPPORTED,
        "this backend does not know some of the program flags %#x; update the backend", out.flags);
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
  if (out.n_buckets != 0 && !out.buckets)
    return report.fail(BITNET_INVALID_ARGUMENT, "expected a list of %u buckets; found NULL",
                       out.n_buckets);
  return BITNET_OK;
}

// Checks that the program runs steps of that size.
inline bitnet_status check_size(const bitnet_prepare_request& size,
                                const bitnet_program_options& limits, const reporter& report) {
  if (size.n_tokens != 0 && size.n_tokens <= limits.max_tokens &&
      size.n_outputs <= limits.max_outputs && size.n_sequences <= limits.max_sequences)
    return BITNET_OK;
  return report.fail(BITNET_INVALID_ARGUMENT,
                     "%u tokens, %u outputs and %u sequences; the program runs 1 to %u tokens, and "
                     "at most %u outputs and %u sequences",
                     size.n_tokens, size.n_outputs, size.n_sequences, limits.max_tokens,
                     limits.max_outputs, limits.max_sequences);
}

// Most bytes of a port within the program's limits; UINT64_MAX if the size overflows.
inline uint64_t bytes_of_port(const bitnet_port& port, const graph& g,
                              const bitnet_program_options& limits) noexcept {
  switch (port.role) {
    case BITNET_PORT_BLOCK_TABLES:
      return 4 * uint64_t{limits.max_sequences} * limits.max_blocks;
    case BITNET_PORT_OUTPUT_ROWS:
      return 4 * uint64_t{limits.max_outputs};
    case BITNET_PORT_STATES:
      return 4 * uint64_t{limits.max_sequences};
    case BITNET_PORT_LARGEST:
      return sizeof(bitnet_largest) * limits.max_outputs;
    case BITNET_PORT_VALUE_IN:
    case BITNET_PORT_VALUE_OUT:
    case BITNET_PORT_LOGITS: {
      const bitnet_value& v = g.values[port.value];
      const uint64_t rows = v.dims[0] == BITNET_DIM_TOKENS    ? limits.max_tokens
                            : v.dims[0] == BITNET_DIM_OUTPUTS ? limits.max_outputs
                                                              : static_cast<uint64_t>(v.dims[0]);
      // Rows and width are at most 2^31, so this cannot wrap.
      const uint64_t elements = rows * static_cast<uint64_t>(v.dims[1]);
      return elements > uint64_t{1} << 60 ? UINT64_MAX : elements * element_bytes(v.dtype);
    }
    default:
      return 4 * uint64_t{limits.max_tokens};
  }
}

// Copies the list of a binding and checks it: for each port one part of a buffer, large enough and
// visible to the device. `see` returns a buffer's memory, nothing for NULL.
template <class See>
bitnet_status check_bound(const bitnet_bind_request* request, const graph& g,
                          const bitnet_program_options& limits, uint64_t alignment,
                          bitnet_bind_request& known, std::vector<bitnet_bound>& out,
                          std::vector<bound_memory>& seen, const See& see, const reporter& report) {
  if (bitnet_status s = receive(request, sizeof known, known, "bind request", report); failed(s))
    return s;
  if (known.reserved_0 != 0)
    return report.fail(BITNET_UNSUPPORTED,
                       "reserved_0 of the bind request is not 0; update the backend");
  if (known.n_bound != g.ports.size())
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "%u buffers are bound; expected one for each of the %zu ports of the graph",
                       known.n_bound, g.ports.size());
  if (bitnet_status s =
          receive_array(known.bound, known.bound_size, known.n_bound, out, "bound", report);
      failed(s))
    return s;
  for (uint64_t i = 0; i < out.size(); ++i) {
    const bitnet_bound& b = out[i];
    const uint64_t needed = bytes_of_port(g.ports[i], g, limits);
    const bound_memory whole = see(b.buffer);
    const auto fail = [&](const char* why) {
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "port %llu (role %u) needs %llu bytes and has %llu at offset %llu of a "
                         "buffer of %llu: %s",
                         static_cast<unsigned long long>(i), g.ports[i].role,
                         static_cast<unsigned long long>(needed),
                         static_cast<unsigned long long>(b.bytes),
                         static_cast<unsigned long long>(b.offset),
                         static_cast<unsigned long long>(whole.bytes), why);
    };
    if (!whole.data) return fail("its buffer is NULL");
    if (b.offset > whole.bytes || b.bytes > whole.bytes - b.offset)
      return fail("they end behind the buffer");
    if (b.offset % alignment != 0) return fail("the offset is not aligned");
    if (b.bytes < needed) return fail("they are too few");
    seen.push_back({whole.data + b.offset, b.bytes});
  }
  return BITNET_OK;
}

// The step buffers that a binding has.
inline step_view view_of(const graph& g, const bitnet_program_options& limits,
                         const std::vector<bound_memory>& bound) {
  step_view out;
  for (uint64_t i = 0; i < bound.size(); ++i) {
    const auto* ints = reinterpret_cast<const int32_t*>(bound[i].data);
    switch (g.ports[i].role) {
      case BITNET_PORT_TOKENS:
        out.tokens = ints;
        break;
      case BITNET_PORT_POSITIONS:
        out.positions = ints;
        break;
      case BITNET_PORT_SEQUENCES:
        out.sequences = ints;
        break;
      case BITNET_PORT_SLOTS:
        out.slots = ints;
        break;
      case BITNET_PORT_BLOCK_TABLES:
        out.block_tables = ints;
        break;
      case BITNET_PORT_OUTPUT_ROWS:
        out.output_rows = ints;
        break;
      case BITNET_PORT_STATES:
        out.states = ints;
        break;
      case BITNET_PORT_LARGEST:
        out.largest = reinterpret_cast<bitnet_largest*>(bound[i].data);
        break;
      default:
        break;
    }
  }
  out.max_blocks = limits.max_blocks;
  out.block_tokens = limits.block_tokens;
  return out;
}

// Checks that the binding's pool (nullptr: none) fits the program.
inline bitnet_status check_pool(const graph& g, const bitnet_program_options& limits,
                                const kv_storage* pool, const reporter& report) {
  if (g.kv_width == 0 && g.state_elements == 0) return BITNET_OK;
  if (!pool)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "the program needs a KV pool; the binding has none");
  if (pool->state_elements < g.state_elements)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "the pool has states of %llu elements; this program needs %llu",
                       static_cast<unsigned long long>(pool->state_elements),
                       static_cast<unsigned long long>(g.state_elements));
  if (g.kv_width == 0) return BITNET_OK;
  if (pool->n_layers >= g.kv_layers && pool->n_kv_heads * pool->head_dim == g.kv_width &&
      (g.n_kv_heads == 0 || pool->n_kv_heads == g.n_kv_heads) &&
      pool->block_tokens == limits.block_tokens)
    return BITNET_OK;
  return report.fail(
      BITNET_INVALID_ARGUMENT,
      "the pool (%u layers, %llu heads of %llu, blocks of %u tokens) does not fit the program (%u "
      "layers, %u heads, rows of %llu elements, blocks of %u tokens)",
      pool->n_layers, static_cast<unsigned long long>(pool->n_kv_heads),
      static_cast<unsigned long long>(pool->head_dim), pool->block_tokens, g.kv_layers,
      g.n_kv_heads, static_cast<unsigned long long>(g.kv_width), limits.block_tokens);
}

class step_checker {
 public:
  // `seen` has the ports' contents; `pool` is the binding's.
  bitnet_status check(const bitnet_step& step, const bitnet_program_options& limits, const graph& g,
                      step_view seen, const kv_storage* pool, const reporter& report) {
    if (step.n_tokens == 0 || step.n_tokens > limits.max_tokens || step.n_sequences == 0 ||
        step.n_sequences > limits.max_sequences || step.n_outputs > limits.max_outputs)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "%u tokens, %u sequences and %u outputs; the program runs 1 to %u tokens, "
                         "1 to %u sequences and at most %u outputs",
                         step.n_tokens, step.n_sequences, step.n_outputs, limits.max_tokens,
                         limits.max_sequences, limits.max_outputs);
    seen.window = step.window;
    seen.window_keep = seen.window != 0 ? step.window_keep : 0;
    const auto reads = [&](uint32_t role) { return (g.reads & role_bit(role)) != 0; };
    const bool tokens = reads(BITNET_PORT_TOKENS), positions = reads(BITNET_PORT_POSITIONS);
    const auto wrong = [&](const char* what, uint64_t i, int64_t value) {
      return report.fail(BITNET_INVALID_ARGUMENT, "%s %llu is %lld, which is out of range", what,
                         static_cast<unsigned long long>(i), static_cast<long long>(value));
    };
    const auto outside = [](int32_t value, uint64_t end) {
      return value < 0 || static_cast<uint64_t>(value) >= end;
    };
    const uint64_t blocks = pool ? pool->n_blocks : 0;
    for (uint64_t t = 0; t < step.n_tokens; ++t) {
      if (tokens && outside(seen.tokens[t], g.vocabulary)) return wrong("token", t, seen.tokens[t]);
      if (positions &&
          outside(seen.positions[t], uint64_t{limits.max_blocks} * limits.block_tokens))
        return wrong("position", t, seen.positions[t]);
      if ((g.attends || g.state_elements != 0) && outside(seen.sequences[t], step.n_sequences))
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
    for (uint64_t o = 0; o < step.n_outputs && reads(BITNET_PORT_OUTPUT_ROWS); ++o)
      if (outside(seen.output_rows[o], step.n_tokens))
        return wrong("output row", o, seen.output_rows[o]);
    if (g.state_elements != 0)
      if (bitnet_status s = check_states(seen.states, step.n_sequences, pool, report); failed(s))
        return s;
    return g.writes_kv ? check_slots_differ(seen.slots, step.n_tokens, report) : BITNET_OK;
  }

 private:
  // Two tokens in one slot would be written by two workers at once.
  bitnet_status check_slots_differ(const int32_t* slots, uint32_t n, const reporter& report) {
    const int32_t* twice = given_twice(slots, n);
    if (!twice) return BITNET_OK;
    return report.fail(BITNET_INVALID_ARGUMENT, "slot %d is given to two tokens", *twice);
  }

  bitnet_status check_states(const int32_t* states, uint32_t n, const kv_storage* pool,
                             const reporter& report) {
    for (uint32_t i = 0; i < n; ++i)
      if (states[i] < 0 || static_cast<uint32_t>(states[i]) >= pool->n_states)
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "state %d of sequence %u does not exist; the pool has %u states",
                           states[i], i, pool->n_states);
    const int32_t* twice = given_twice(states, n);
    if (!twice) return BITNET_OK;
    return report.fail(BITNET_INVALID_ARGUMENT, "state %d is given to two sequences", *twice);
  }

  // Valid until the next call.
  const int32_t* given_twice(const int32_t* given, uint32_t n) {
    sorted_.assign(given, given + n);
    std::sort(sorted_.begin(), sorted_.end());
    const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end());
    return twice == sorted_.end() ? nullptr : &*twice;
  }

  std::vector<int32_t> sorted_;
};

}  // namespace bitnet::sdk
