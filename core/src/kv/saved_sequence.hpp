#pragma once
// A computed sequence as the bytes of a file: its tokens, its whole blocks of keys and values, and
// the recurrent state behind them where the model has one.
//
// File     header, facts ("name: value" lines), tokens (i32), zeros up to 64 bytes, blocks, state,
//          XXH3 of all before it (u64). Little-endian; blocks and state as a device exports them.
// Facts    what decides the bytes of blocks: model, types, what computed them. A sequence can
//          be used only if all of them are equal.
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
  std::string called{};     // its name in messages; "": `name`; not in the file
};

// The layout of the blocks and states of a sequence, and the facts that decide their bytes.
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

// The properties of a file that are known before all of it is read.
struct saved_outline {
  saved_form form;
  uint64_t n_blocks = 0;
};
inline constexpr std::size_t saved_outline_bytes = 56 + 4096;
// Reads a file's outline from its first saved_outline_bytes (all of a shorter file). `file_bytes`
// is the size of the whole file, which must be what its blocks and state make. BITNET_BAD_DATA: no
// writer writes such a file. BITNET_INCOMPATIBLE: it has another version.
result<saved_outline> read_saved_outline(std::span<const std::byte> begin, uint64_t file_bytes);

// Reads a whole file; `blocks` and `state` of the sequence point into `file`. Fails as
// read_saved_outline(). What it allocates is bounded by the file's size.
result<saved_sequence> read_saved(std::span<const std::byte> file);

// Fails with BITNET_UNSUPPORTED unless a sequence of the form `found` can be used where `here` is.
result<void> check_form(const saved_form& found, const saved_form& here);

}  // namespace bitnet::kv
