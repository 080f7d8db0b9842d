#pragma once
// A transfer of a computed sequence from the pool to host memory, or back.
//
// Owner    the calling thread, which waits for `done`, and the scheduler share it. The scheduler
//          alone uses `table`.
// Threads  made by any; then the scheduler's, until `done` has its value.

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kv/block_pool.hpp"
#include "kv/saved_sequence.hpp"

namespace bitnet::schedule {

// A sequence that was copied from a pool. `it` points into `bytes`.
struct taken_sequence {
  kv::saved_sequence it;
  std::unique_ptr<std::byte[]> bytes;
};

struct transfer {
  bool out = true;              // true: from the pool to host memory; false: back
  std::vector<int32_t> tokens;  // out: the requested ones; in: those of the whole blocks
  // `made`: the sequence read from the pool (out). `given`: the caller's sequence to write (in);
  // the caller keeps it unchanged until `done`.
  taken_sequence made;
  const kv::saved_sequence* given = nullptr;

  bool has_begun = false;
  kv::table table;
  uint64_t n_blocks = 0, n_moved = 0;  // of the table: in all, and moved so far
  uint32_t begun_again = 0;
  std::promise<result<uint64_t>> done;  // how many tokens were moved
};

}  // namespace bitnet::schedule
