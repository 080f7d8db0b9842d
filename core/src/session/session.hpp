#pragma once
// One conversation: its tokens, their KV blocks, and the program that extends both.
//
// Threads one at a time.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "session/engine.hpp"
#include "session/kv_store.hpp"

namespace bitnet::session {

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
};

inline constexpr uint32_t default_context = 4096;

class session {
 public:
  // `cancel_token` is what the plugin will ask host->cancelled with.
  static result<std::unique_ptr<session>> open(engine& e, const session_options& options,
                                               uint64_t cancel_token);

  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Evaluates what waits and then `ids`. `logits` gets the last row (n_vocab) or, with all_rows, a
  // row for each of `ids`. On failure the session is as it was.
  result<void> eval(std::span<const int32_t> ids, bool all_rows, std::span<float> logits);
  // The same for the last row, of which only the `top` largest are needed (0: all): what is surely
  // smaller may be -infinity.
  result<void> eval_top(std::span<const int32_t> ids, uint32_t top, std::span<float> logits);

  // Notes a token that the next eval will evaluate; BITNET_CONTEXT_FULL if there is no room.
  result<void> append(int32_t id);
  result<void> truncate(uint64_t n);

  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  [[nodiscard]] uint32_t capacity() const { return n_context_; }
  [[nodiscard]] engine& owner() const { return engine_; }

  // What ran, from the plugin's own counters, and the KV in use.
  struct usage {
    std::vector<bitnet_kernel_stat> kernels;
    uint64_t steps = 0, tokens = 0;
    uint32_t kv_blocks = 0, dtype_k = 0, dtype_v = 0, window = 0, window_keep = 0;
    uint64_t kv_bytes = 0, kv_budget = 0, evictions = 0;
  };
  [[nodiscard]] result<usage> report() const;

 private:
  session(engine& e, const session_options& options, uint64_t cancel_token);
  result<void> build(const session_options& options);
  result<void> make_buffer(handle<bitnet_buffer>& to, uint64_t bytes, void** mapped);
  [[nodiscard]] uint64_t first_seen() const;  // by the next token, beside those kept
  class hold;                                 // of the blocks of this sequence
  void forget_unseen();
  void settle(uint64_t evaluated);
  result<void> step(std::span<const int32_t> ids, uint32_t first_output, std::span<float> logits);

  engine& engine_;
  const uint64_t cancel_token_;
  const uint32_t n_vocab_;
  bool low_memory_ = false;
  uint32_t n_context_ = 0, n_batch_ = 0, max_outputs_ = 0, dtype_k_ = 0, dtype_v_ = 0;
  uint32_t window_ = 0, window_keep_ = 0, n_blocks_ = 0;  // at most, at once
  uint64_t kv_bytes_ = 0;                                 // of the pool

  std::shared_ptr<kv_store> store_;
  kv_store::holding kv_;
  const std::atomic<bool>* cancelled_;
  std::vector<int32_t> tokens_;  // all, evaluated and waiting
  uint64_t evaluated_ = 0;       // of tokens_
  uint32_t top_logits_ = 0;      // of the step to come
  uint64_t timeline_ = 0, steps_ = 0, steps_tokens_ = 0;

  struct step_memory {
    int32_t *tokens, *positions, *sequences, *slots, *block_tables, *output_rows;
    float* logits;
  } memory_{};
  std::vector<handle<bitnet_buffer>> buffers_;
  handle<bitnet_program> program_;
  handle<bitnet_queue> queue_;
};

}  // namespace bitnet::session
