// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The layout of KV blocks, and checks of requests for them.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/formats.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

// The types of keys and values that the SDK stores. The reference's list of types, the bytes of a
// head, and the reading of a head are made of this list.
//
// X(NAME): BITNET_DTYPE_NAME, kept as BITNET_FORMAT_NAME, whose row of `formats` has the size of a
//   block and the name for messages.
#define BITNET_SDK_KV_TYPES(X) X(F32) X(F16) X(Q8_0) X(Q4_0)

// BITNET_FORMAT_* of a KV type; BITNET_FORMAT_NONE if it is not in the list.
constexpr uint32_t kv_format_of(uint32_t dtype) noexcept {
  switch (dtype) {
#define BITNET_KV_FORMAT_OF(NAME) \
  case BITNET_DTYPE_##NAME:       \
    return BITNET_FORMAT_##NAME;
    BITNET_SDK_KV_TYPES(BITNET_KV_FORMAT_OF)
#undef BITNET_KV_FORMAT_OF
    default:
      return BITNET_FORMAT_NONE;
  }
}

// KV storage. A block holds the canonical layout of kv_export: one head of one layer has its tokens
// of the block contiguous, token after token.
struct kv_storage {
  uint8_t* data;
  uint32_t dtype_k, dtype_v;  // BITNET_DTYPE_*, of BITNET_SDK_KV_TYPES
  uint32_t n_layers, n_blocks, block_tokens;
  uint64_t n_kv_heads, head_dim;
  uint64_t block_bytes, layer_bytes;
  uint64_t k_bytes, v_bytes;  // of one head of one token
  uint32_t n_states;
  uint64_t state_elements;  // f32, of one state
  uint64_t states_offset;   // bytes; the states lie behind the blocks

  // Offset and bytes of block i; numbers from n_blocks on are the states.
  uint64_t offset_of(uint64_t i) const noexcept {
    return i < n_blocks ? i * block_bytes : states_offset + (i - n_blocks) * bytes_of(i);
  }
  uint64_t bytes_of(uint64_t i) const noexcept {
    return i < n_blocks ? block_bytes : 4 * state_elements;
  }
  float* state(uint64_t i) const noexcept {
    return reinterpret_cast<float*>(data + offset_of(n_blocks + i));
  }

  uint8_t* k(uint64_t layer, uint64_t slot, uint64_t head) const noexcept {
    return layer_of(layer, slot) + (head * block_tokens + slot % block_tokens) * k_bytes;
  }
  uint8_t* v(uint64_t layer, uint64_t slot, uint64_t head) const noexcept {
    return layer_of(layer, slot) + n_kv_heads * block_tokens * k_bytes +
           (head * block_tokens + slot % block_tokens) * v_bytes;
  }

 private:
  uint8_t* layer_of(uint64_t layer, uint64_t slot) const noexcept {
    return data + slot / block_tokens * block_bytes + layer * layer_bytes;
  }
};

// Bytes of one head of a token's keys or values. 0 if the type is unknown or head_dim is no whole
// number of blocks.
inline uint64_t kv_head_bytes(uint32_t dtype, uint64_t head_dim) noexcept {
  const format* kept = find_format(kv_format_of(dtype));
  return kept ? row_bytes(*kept, head_dim) : 0;
}

inline uint32_t kv_dtypes_or_default(uint32_t kv_dtypes) noexcept {
  return kv_dtypes != 0 ? kv_dtypes : 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16;
}

// Places the states after `bytes` of blocks, and adds their size to `bytes`.
inline bitnet_status describe_states(const bitnet_kv_config& config, kv_storage& out,
                                     uint64_t& bytes, const reporter& report) {
  if (config.n_states == 0 && config.state_elements == 0) return BITNET_OK;
  constexpr uint64_t cache_line = 64;
  const uint64_t offset = (bytes + cache_line - 1) / cache_line * cache_line;
  uint64_t all = 0;
  if (config.n_states == 0 || config.state_elements == 0 ||
      __builtin_mul_overflow(uint64_t{config.n_states} * 4, uint64_t{config.state_elements},
                             &all) ||
      all > INT64_MAX / 2 || config.n_states > uint32_t{INT32_MAX} ||
      config.n_states > UINT32_MAX - config.n_blocks)
    return report.fail(
        BITNET_INVALID_ARGUMENT,
        "%u states of %u elements beside %u blocks; expected at least 1 of each, less than 2^62 "
        "bytes, less than 2^31 states, and less than 2^32 states and blocks together",
        config.n_states, config.state_elements, config.n_blocks);
  out.n_states = config.n_states;
  out.state_elements = config.state_elements;
  out.states_offset = offset;
  bytes = offset + all;
  return BITNET_OK;
}

// Checks a configuration. On success `out` has the layout of blocks (without data) and `bytes` the
// size of all of them. `kv_dtypes` as in bitnet_device_info.
inline bitnet_status describe(const bitnet_kv_config* given, uint32_t kv_dtypes, kv_storage& out,
                              uint64_t& bytes, const reporter& report) {
  bitnet_kv_config known{};
  if (bitnet_status s =
          receive(given, offsetof(bitnet_kv_config, reserved_0), known, "KV configuration", report);
      failed(s))
    return s;
  const bitnet_kv_config* config = &known;
  if (known.reserved_0 != 0)
    return report.fail(BITNET_UNSUPPORTED,
                       "reserved_0 of the KV configuration is not 0; update the backend");
  if (known.head_dim_k != known.head_dim_v)
    return report.fail(BITNET_UNSUPPORTED,
                       "keys of %u elements and values of %u; this backend needs equal sizes",
                       known.head_dim_k, known.head_dim_v);
  for (const uint32_t dtype : {config->dtype_k, config->dtype_v}) {
    const format* kept = find_format(kv_format_of(dtype));
    if (!kept || (kv_dtypes_or_default(kv_dtypes) >> dtype & 1) == 0)
      return report.fail(
          BITNET_UNSUPPORTED,
          "this backend stores no KV of type %u; the bits of %#x are the types that it stores",
          dtype, kv_dtypes_or_default(kv_dtypes));
    if (config->head_dim_k % kept->block != 0)
      return report.fail(BITNET_UNSUPPORTED,
                         "%s needs heads of a multiple of %u elements, not of %u; use f16",
                         kept->name, kept->block, config->head_dim_k);
  }
  const uint64_t k_bytes = kv_head_bytes(config->dtype_k, config->head_dim_k);
  const uint64_t v_bytes = kv_head_bytes(config->dtype_v, config->head_dim_k);
  const uint64_t counts[] = {config->n_layers, config->n_kv_heads, k_bytes + v_bytes,
                             config->block_tokens, config->n_blocks};
  bytes = 1;
  for (const uint64_t count : counts)
    if (count == 0 || __builtin_mul_overflow(bytes, count, &bytes) || bytes > INT64_MAX / 2)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "a KV pool of %u layers, %u heads of %u, %u blocks of %u tokens is empty "
                         "or too large",
                         config->n_layers, config->n_kv_heads, config->head_dim_k, config->n_blocks,
                         config->block_tokens);
  if (counts[3] * counts[4] > INT32_MAX)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "%u blocks of %u tokens have more than 2^31 - 1 slots; use fewer blocks",
                       config->n_blocks, config->block_tokens);
  out = {};
  out.dtype_k = config->dtype_k;
  out.dtype_v = config->dtype_v;
  out.n_layers = config->n_layers;
  out.n_blocks = config->n_blocks;
  out.block_tokens = config->block_tokens;
  out.n_kv_heads = counts[1];
  out.head_dim = config->head_dim_k;
  out.k_bytes = k_bytes;
  out.v_bytes = v_bytes;
  out.layer_bytes = counts[3] * counts[1] * (k_bytes + v_bytes);
  out.block_bytes = counts[0] * out.layer_bytes;
  return describe_states(known, out, bytes, report);
}

// Checks that the pool has all of these blocks or states; with `once`, that none is listed twice.
inline bitnet_status check_blocks(const kv_storage& storage, const uint32_t* blocks, uint32_t n,
                                  bool once, const reporter& report) {
  if (n != 0 && !blocks)
    return report.fail(BITNET_INVALID_ARGUMENT, "expected a list of %u blocks; found NULL", n);
  for (uint32_t i = 0; i < n; ++i)
    if (blocks[i] >= uint64_t{storage.n_blocks} + storage.n_states)
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "block %u does not exist; the pool has %u blocks and %u states", blocks[i],
                         storage.n_blocks, storage.n_states);
  if (!once || n < 2) return BITNET_OK;
  std::vector<uint32_t> sorted(blocks, blocks + n);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return BITNET_OK;
  return report.fail(BITNET_INVALID_ARGUMENT, "block %u is written twice", *twice);
}

// Checks that the blocks can be exported to, or imported from, `bytes` of memory.
inline bitnet_status check_moved(const kv_storage& storage, const uint32_t* blocks, uint32_t n,
                                 const void* data, uint64_t bytes, bool written,
                                 const reporter& report) {
  if (bitnet_status s = check_blocks(storage, blocks, n, written, report); failed(s)) return s;
  // A pool takes at most 2^63 bytes, but one block can be exported several times.
  uint64_t needed = 0;
  bool countable = true;
  for (uint32_t i = 0; i < n && countable; ++i)
    countable = !__builtin_add_overflow(needed, storage.bytes_of(blocks[i]), &needed);
  if ((!data && n != 0) || !countable || bytes != needed)
    return report.fail(
        BITNET_INVALID_ARGUMENT, "%u blocks need memory of %llu bytes; found %llu bytes, or NULL",
        n, static_cast<unsigned long long>(needed), static_cast<unsigned long long>(bytes));
  return BITNET_OK;
}

// Checks that blocks from[i] can be copied to to[i], in any order.
inline bitnet_status check_copies(const kv_storage& storage, const uint32_t* from,
                                  const uint32_t* to, uint32_t n, const reporter& report) {
  if (bitnet_status s = check_blocks(storage, from, n, false, report); failed(s)) return s;
  if (bitnet_status s = check_blocks(storage, to, n, true, report); failed(s)) return s;
  std::vector<uint32_t> written(to, to + n);
  std::sort(written.begin(), written.end());
  for (uint32_t i = 0; i < n; ++i) {
    if (std::binary_search(written.begin(), written.end(), from[i]))
      return report.fail(BITNET_INVALID_ARGUMENT, "block %u is read and written by one copy",
                         from[i]);
    if ((from[i] < storage.n_blocks) != (to[i] < storage.n_blocks))
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "block %u cannot be copied to %u: only one of them is a state", from[i],
                         to[i]);
  }
  return BITNET_OK;
}

}  // namespace bitnet::sdk
