#pragma once
// The limits of a session, as they follow from its options: tokens of context and step, blocks and
// states.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/program.h"
#include "model/shape/shape.hpp"
#include "select/selection.hpp"
#include "trace/recorder.hpp"

namespace bitnet::engine {

class engine;

// Finds another engine for a session whose device was lost for the given reason.
using replacement_finder =
    std::function<result<std::shared_ptr<engine>>(const std::shared_ptr<engine>&, const failure&)>;

struct session_options {
  uint32_t n_context = 0;  // tokens; 0: the model's own, at most default_context
  uint32_t n_batch = 512;  // tokens of one step, of all sequences; 0: 512
  uint32_t dtype_k = BITNET_DTYPE_F16;
  uint32_t dtype_v = BITNET_DTYPE_F16;
  // A token sees the last `window` tokens, itself included, and the first `window_keep` of the
  // sequence; 0: all of them. KV is then bounded by the window, and the context reaches as far as
  // the model was trained for unless n_context says otherwise.
  uint32_t window = 0, window_keep = 0;
  const std::atomic<bool>* cancelled = nullptr;  // ends waiting for blocks; may be set any time
  bool deterministic = false;
  uint32_t precisions = 0;  // 1 << BITNET_PRECISION_* for each that products may be rounded to
  bool profile = false;
  trace::listener trace{};       // gets the events of its steps, where it has a callback
  bool low_memory = false;       // no second form of the output head is kept
  bool embeddings = false;       // rows are hidden states behind the last norm, not logits
  bool own_kv = false;           // its KV is not taken from the shared budget
  replacement_finder on_loss{};  // empty: a lost device fails the evaluation
};

inline constexpr uint32_t default_context = 4096;

struct limits {
  uint32_t n_context = 0;                 // tokens of a sequence
  uint32_t n_batch = 0, max_outputs = 0;  // tokens and rows of a step
  uint64_t row_floats = 0;                // floats of one output row
  uint32_t window = 0, window_keep = 0;
  uint32_t n_blocks = 0;      // of a sequence, at most, at once
  uint64_t block_bytes = 0;   // of all layers
  uint64_t states_bytes = 0;  // of the states of a session; 0: the model has none
};

// Fails unless the device can keep keys and values of this model in the session's types.
result<void> check_kv_types(const select::choice& choice, const model::hyperparameters& shape,
                            const session_options& options);

// The limits of a session with these options, or of a step with `max_sequences` sequences. A step
// has at most a context of each sequence, or what its window leaves room for. `attention_flags`:
// those that all its devices have. `budget`: bytes that the sessions share; 0: each has its own.
result<limits> limits_of(const model::hyperparameters& shape, const session_options& options,
                         uint32_t attention_flags, uint64_t budget, uint32_t max_sequences = 1);

// The pool for all layers: of one session, or of as many as share the budget.
bitnet_kv_config pool_of(const model::hyperparameters& shape, const session_options& options,
                         const limits& most, uint64_t budget);
// The pool for the layers of a section. If none of them attends, it has one block that is never
// written: the contract has no pool without layers.
bitnet_kv_config pool_of(bitnet_kv_config all, const model::hyperparameters& shape,
                         const model::section& of);
uint64_t state_bytes(const bitnet_kv_config& kv);

// The bounds of a session's programs, with the arrays that they point to.
class program_bounds {
 public:
  program_bounds(const session_options& options, const limits& most, uint32_t max_sequences = 1);
  program_bounds(const program_bounds&) = delete;
  program_bounds& operator=(const program_bounds&) = delete;

  [[nodiscard]] const bitnet_program_options& get() const { return bounds_; }

 private:
  std::vector<uint32_t> buckets_;
  bitnet_program_options bounds_{};
};

}  // namespace bitnet::engine
