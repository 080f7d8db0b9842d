#pragma once
// A session's place on an engine: of each part a program, its step buffers and queue; and the KV
// blocks. Everything of a session that another engine would make anew. A step goes through the
// parts in turn: what the last layer of one gives is what the next one begins with.
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
#include "session/limits.hpp"

namespace bitnet::session {

// The largest logits of a row, in any order.
struct listed_logits {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // of each of `ids`
};

class seat {
 public:
  static result<std::unique_ptr<seat>> open(std::shared_ptr<engine> e,
                                            const session_options& options, uint64_t cancel_token);
  ~seat();
  seat(const seat&) = delete;
  seat& operator=(const seat&) = delete;

  using limits = session::limits;
  [[nodiscard]] const limits& most() const { return limits_; }
  [[nodiscard]] const std::shared_ptr<session::engine>& on() const { return engine_; }
  [[nodiscard]] kv_store& store() { return *store_; }
  [[nodiscard]] kv_store::holding& kv() { return kv_; }
  [[nodiscard]] const kv_store::holding& kv() const { return kv_; }
  [[nodiscard]] kv_store::usage kv_usage() const { return store_->of(kv_); }
  [[nodiscard]] uint64_t kv_bytes() const;  // of the pool

  // What a step gives: all logits of its output rows, in `rows`. Or of a single row the
  // `top_logits` largest: in `largest` where the device lists them, else in `rows`.
  struct wanted {
    std::span<float> rows;
    uint32_t top_logits = 0;  // 0: all
    listed_logits* largest = nullptr;
  };
  // Runs `ids` at positions from `first` on, whose blocks kv() has; its output rows are those from
  // first_output on.
  result<void> step(uint64_t first, std::span<const int32_t> ids, uint32_t first_output,
                    const wanted& out);
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
  result<void> take_store(const session_options& options);
  void leave_behind();

  // Of one part of the engine.
  struct place {
    const part* on;
    struct step_memory {  // nullptr: no op of the part reads it
      int32_t *tokens, *positions, *sequences, *slots, *block_tables, *output_rows, *states;
      float *in, *out;  // hidden states that come in; those that go out, or logits
      bitnet_largest* largest;
    } memory{};
    // In this order: each goes before what it was made of.
    compute::program program{};
    compute::binding binding{};
    compute::queue queue{};
  };
  result<void> build(const session_options& options, std::size_t index);
  // What a step is of: tokens [first, first + ids.size()) of the sequence.
  struct stride {
    uint64_t first;
    std::span<const int32_t> ids;
    uint32_t first_output;
    [[nodiscard]] uint32_t n() const { return static_cast<uint32_t>(ids.size()); }
    [[nodiscard]] uint32_t n_outputs() const { return n() - first_output; }
  };
  void note_facts(const place& at, const stride& s) const;
  result<void> run(std::size_t index, const stride& s, const wanted& out);
  result<bool> take_listed(const place& at, const wanted& out) const;
  // `doing()` says what, in words.
  template <class Doing>
  result<void> await(place& at, const Doing& doing);
  [[nodiscard]] std::vector<uint32_t> held_blocks() const;
  result<void> copy_state(uint32_t from, uint32_t to, const char* doing);
  // Blocks, or states, of all parts in the layout of a whole model, one behind the other.
  enum class cargo : uint8_t { keys, states };
  result<void> write_out(std::span<const uint32_t> which, cargo what, std::span<std::byte> bytes);
  result<void> read_in(std::span<const uint32_t> which, cargo what,
                       std::span<const std::byte> bytes);
  template <class Pass>
  result<void> for_pools(std::span<const uint32_t> which, cargo what, const Pass& pass);

  const std::shared_ptr<session::engine> engine_;
  const uint64_t cancel_token_;
  limits limits_;
  std::shared_ptr<kv_store> store_;
  kv_store::holding kv_;
  const uint64_t step_timeout_ns_;
  bool embeddings_ = false;
  bool hung_ = false;  // a step did not end in that time

  std::vector<place> places_;
};

}  // namespace bitnet::session
