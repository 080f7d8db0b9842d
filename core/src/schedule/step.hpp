#pragma once
// The scheduler's interface to the object that runs steps on a device.
//
// Threads  one: that of the scheduler.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "generate/logits_row.hpp"
#include "kv/blocks.hpp"
#include "kv/saved_sequence.hpp"
#include "trace/recorder.hpp"

namespace bitnet::schedule {

// What a step computes of one sequence: `tokens` at positions from `first` on. Borrowed for the
// call.
struct slice {
  std::span<const int32_t> tokens;
  uint64_t first = 0;
  std::span<const uint32_t> blocks;  // in order of position; kv::no_block where nothing is seen
  uint32_t state = kv::no_block;     // of a model with recurrent states
  uint32_t n_outputs = 0;            // its last n_outputs tokens have an output row each
};

// What the runner can do, and what its pool has. All but n_states and the windows are > 0.
struct step_limits {
  uint32_t max_tokens = 0, max_sequences = 0, max_outputs = 0;  // of a step
  uint32_t n_context = 0;                                       // tokens of a sequence
  uint32_t n_vocab = 0;
  uint32_t n_blocks = 0;  // of the pool
  uint32_t n_states = 0;  // of the pool; 0: the model has none
  uint32_t window = 0, window_keep = 0;
};

// What moves between the pool and the host's memory.
enum class pool_content : uint8_t { keys, states };

class step_runner {
 public:
  step_runner() = default;
  step_runner(const step_runner&) = delete;
  step_runner& operator=(const step_runner&) = delete;
  virtual ~step_runner() = default;

  [[nodiscard]] virtual const step_limits& limits() const = 0;
  // The trace of its steps; nullptr: they are not traced.
  [[nodiscard]] virtual const trace::recorder* recorder() const { return nullptr; }

  // Copies whole blocks, from[i] to to[i], before the next step and after all copies of earlier
  // calls. Within a call there is no order: no block that is written is also read, or written
  // twice. State i is block n_blocks + i.
  virtual result<void> copy(std::span<const uint32_t> from, std::span<const uint32_t> to) = 0;

  // `rows` gets one for each output, in the order of the slices, valid until the next call.
  // `top_logits`: how many of the largest logits each row must have; 0: all. After a failure the
  // blocks of all slices have undefined contents from `first` on, and their states are undefined.
  // BITNET_CANCELLED: options::step_flag was set, and the step ended early.
  virtual result<void> run(std::span<const slice> slices, uint32_t top_logits,
                           std::vector<generate::logits_row>& rows) = 0;

  // The form of its blocks and states, as write_out() writes them.
  [[nodiscard]] virtual const kv::saved_form& form() const = 0;
  // Write or read the blocks or states `which`, one behind the other, after all copies of earlier
  // calls. `bytes` has exactly their size. None is named twice.
  virtual result<void> write_out(std::span<const uint32_t> which, pool_content what,
                                 std::span<std::byte> bytes) = 0;
  virtual result<void> read_in(std::span<const uint32_t> which, pool_content what,
                               std::span<const std::byte> bytes) = 0;
};

}  // namespace bitnet::schedule
