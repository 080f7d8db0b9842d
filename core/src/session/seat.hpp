#pragma once
// A session's place on an engine: the program, its step buffers and queue, and the KV blocks.
// Everything of a session that another engine would make anew.
//
// Owner   keeps the engine alive.
// Threads open() any; the rest the session's.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "compute/steps.hpp"
#include "session/engine.hpp"
#include "session/kv_store.hpp"

namespace bitnet::session {

// Finds another engine for a session whose device is gone, for the reason given.
using find_refuge =
    std::function<result<std::shared_ptr<engine>>(const std::shared_ptr<engine>&, const failure&)>;

struct session_options {
  uint32_t n_context = 0;  // tokens; 0: the model's own, at most default_context
  uint32_t n_batch = 512;  // tokens of one step
  uint32_t dtype_k = BITNET_DTYPE_F16;
  uint32_t dtype_v = BITNET_DTYPE_F16;
  // A token sees the last `window` tokens, itself included, and the first `window_keep` of the
  // sequence; 0: all of them. KV is then bounded by the window, and the context reaches as far as
  // the model was trained for unless n_context says otherwise.
  uint32_t window = 0, window_keep = 0;
  const std::atomic<bool>* cancelled = nullptr;  // ends waiting for blocks; may be set any time
  bool deterministic = false;
  bool profile = false;
  bool low_memory = false;  // every logit from the output head itself: no second form of it
  bool embeddings = false;  // rows are hidden states behind the last norm, not logits
  bool own_kv = false;      // not from the budget that the sessions of the model share
  find_refuge on_loss{};    // empty: a lost device fails the evaluation
};

inline constexpr uint32_t default_context = 4096;

class seat {
 public:
  static result<std::unique_ptr<seat>> open(std::shared_ptr<engine> e,
                                            const session_options& options, uint64_t cancel_token);
  ~seat();
  seat(const seat&) = delete;
  seat& operator=(const seat&) = delete;

  struct limits {
    uint32_t n_context = 0, n_batch = 0, max_outputs = 0;
    uint64_t row_floats = 0;  // of an output
    uint32_t window = 0, window_keep = 0;
    uint32_t n_blocks = 0;  // at most, at once
    uint64_t block_bytes = 0;
    uint64_t states_bytes = 0;  // of the states of a session; 0: the model has none
  };
  [[nodiscard]] const limits& most() const { return limits_; }
  [[nodiscard]] const std::shared_ptr<session::engine>& on() const { return engine_; }
  [[nodiscard]] kv_store& store() { return *store_; }
  [[nodiscard]] kv_store::holding& kv() { return kv_; }
  [[nodiscard]] const kv_store::holding& kv() const { return kv_; }
  [[nodiscard]] kv_store::usage kv_usage() const { return store_->of(kv_); }
  [[nodiscard]] uint64_t kv_bytes() const;  // of the pool

  // Runs `ids` at positions from `first` on, whose blocks kv() has; `rows` gets those from
  // first_output on.
  result<void> step(uint64_t first, std::span<const int32_t> ids, uint32_t first_output,
                    uint32_t top_logits, std::span<float> rows);
  // Of a model with states: keeps a copy of the sequence's, and goes back to it. Each takes its
  // turn before the next step. The states are held by the caller.
  result<void> keep_state();
  result<void> restore_state();
  // From the plugin's own counters.
  [[nodiscard]] result<std::vector<bitnet_kernel_stat>> ran() const;

  // Takes the blocks and the state of `from`, through the layout that every backend can write and
  // read. Both are held by the caller; this one's table is empty and its spare blocks are enough.
  result<void> copy_blocks(seat& from);

 private:
  seat(std::shared_ptr<session::engine> e, uint64_t cancel_token);
  result<void> measure(const session_options& options);
  result<void> build(const session_options& options);
  result<void> take_store(const session_options& options);
  result<void> build_program(const session_options& options);
  void leave_behind();
  // `doing()` says what, in words.
  template <class Doing>
  result<void> await(const Doing& doing);
  [[nodiscard]] std::vector<uint32_t> held_blocks() const;
  result<void> copy_state(uint32_t from, uint32_t to, const char* doing);
  result<void> pass(seat& from, std::span<const uint32_t> theirs, std::span<const uint32_t> mine,
                    std::span<std::byte> bytes);

  const std::shared_ptr<session::engine> engine_;
  const uint64_t cancel_token_;
  limits limits_;
  std::shared_ptr<kv_store> store_;
  kv_store::holding kv_;
  const uint64_t step_timeout_ns_;
  bool embeddings_ = false;
  bool hung_ = false;  // a step did not end in that time

  struct step_memory {
    int32_t *tokens, *positions, *sequences, *slots, *block_tables, *output_rows, *states;
    float* rows;
  } memory_{};
  // In this order: each goes before what it was made of.
  compute::program program_;
  compute::binding binding_;
  compute::queue queue_;
};

}  // namespace bitnet::session
