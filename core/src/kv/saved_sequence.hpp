#pragma once
// A computed sequence as the bytes of a file: its tokens, its whole blocks of keys and values, and
// the recurrent state behind them where the model has one.
//
// File     header, facts ("name: value" lines), tokens (i32), zeros up to 64 bytes, blocks, state,
//          XXH3 of all before it (u64). Little-endian; blocks and state as a device exports them.
// Facts    what decides the bytes of blocks: model, types, what computed them. A sequence is of use
//          only where all of them are the same.
// Trust    the checksum detects damage, not forgery: a file has no signature, and its author
//          controls the keys and values that requests read from it.
// Threads  any; no device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kv/blocks.hpp"

namespace bitnet::kv {

struct fact {
  std::string name, value;  // printable ASCII; no ':' in the name
  std::string advice{};     // what to do where a file has another value; not in the file
  std::string called{};     // in messages; "": as its name; not in the file
};

// What the bytes of a sequence are of.
struct saved_form {
  uint32_t tokens_per_block = block_tokens;
  uint64_t block_bytes = 0;  // of all layers
  uint64_t state_bytes = 0;  // 0: the model has none
  std::vector<fact> facts{};
};

struct saved_sequence {
  saved_form form;
  std::vector<int32_t> tokens;  // of whole blocks, at least one
  std::span<const std::byte> blocks;
  std::span<const std::byte> state;
};

// The bytes of a file around those of blocks and state: begin, blocks, state, end.
struct saved_frame {
  std::vector<std::byte> begin;
  std::array<std::byte, sizeof(uint64_t)> end;
};
saved_frame frame_of(const saved_sequence& s);

// What a file says of itself, before all of it is read.
struct saved_outline {
  saved_form form;
  uint64_t n_blocks = 0;
};
inline constexpr std::size_t saved_outline_bytes = 56 + 4096;
// By its first saved_outline_bytes, or all of a shorter one, and its size, which is what blocks and
// state of those sizes make. BITNET_BAD_DATA for what no writer writes, BITNET_INCOMPATIBLE for
// another version.
result<saved_outline> read_saved_outline(std::span<const std::byte> begin, uint64_t file_bytes);

// The sequence in a file's bytes, which `blocks` and `state` point into; fails likewise. What it
// allocates is bounded by the file's size.
result<saved_sequence> read_saved(std::span<const std::byte> file);

// Whether what was saved in the form `found` can be used where `here` is. BITNET_UNSUPPORTED.
result<void> check_form(const saved_form& found, const saved_form& here);

}  // namespace bitnet::kv
