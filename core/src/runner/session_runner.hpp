#pragma once
// A session's place on an engine: the runner of its steps, and its KV blocks. It has everything of
// a session that another engine would make anew.
//
// Owner   keeps the engine alive.
// Threads open() any; the rest the session's.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/kv_store.hpp"
#include "engine/limits.hpp"
#include "runner/model_runner.hpp"

namespace bitnet::runner {

// The largest logits of a row, in any order.
struct listed_logits {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // of each of `ids`
};

class session_runner {
 public:
  static result<std::unique_ptr<session_runner>> open(std::shared_ptr<engine::engine> e,
                                                      const engine::session_options& options,
                                                      uint64_t cancel_token);
  ~session_runner();
  session_runner(const session_runner&) = delete;
  session_runner& operator=(const session_runner&) = delete;

  using limits = engine::limits;
  [[nodiscard]] const limits& most() const { return limits_; }
  [[nodiscard]] const std::shared_ptr<engine::engine>& on() const { return engine_; }
  [[nodiscard]] engine::kv_store& store() { return *store_; }
  [[nodiscard]] engine::kv_store::holding& kv() { return kv_; }
  [[nodiscard]] const engine::kv_store::holding& kv() const { return kv_; }
  [[nodiscard]] engine::kv_store::usage kv_usage() const { return store_->of(kv_); }
  [[nodiscard]] uint64_t kv_bytes() const;  // of the pool

  // What a step returns: all logits of its output rows, in `rows`; or the `top_logits` largest of a
  // single row: in `largest` if the device lists them, else in `rows`; or each output row as the
  // device has it, in `uncopied`, until the next step.
  struct wanted {
    std::span<float> rows;
    uint32_t top_logits = 0;  // 0: all
    listed_logits* largest = nullptr;
    std::vector<generate::logits_row>* uncopied = nullptr;
  };
  // Runs `ids` at positions from `first` on, for which kv() has the blocks. The tokens from
  // first_output on have output rows.
  result<void> step(uint64_t first, std::span<const int32_t> ids, uint32_t first_output,
                    const wanted& out);
  // For a model with states: keep_state() keeps a copy of the sequence's state, restore_state()
  // goes back to it. Each runs before the next step. The caller holds the states.
  result<void> keep_state();
  result<void> restore_state();
  [[nodiscard]] const trace::recorder* recorder() const { return runner_->recorder(); }
  // What ran, from the plugin's own counters.
  [[nodiscard]] result<std::vector<engine::device_use>> ran() const { return runner_->ran(); }

  // Takes the blocks and the state of `from`, through the layout that every backend can write and
  // read. The caller holds both; this one's table is empty, and its spare blocks are enough.
  result<void> copy_blocks(session_runner& from);

 private:
  explicit session_runner(std::shared_ptr<engine::engine> e) : engine_(std::move(e)) {}
  result<void> measure(const engine::session_options& options);
  result<void> take_store(const engine::session_options& options);
  [[nodiscard]] std::vector<uint32_t> held_blocks() const;
  result<void> copy_state(uint32_t from, uint32_t to);

  const std::shared_ptr<engine::engine> engine_;
  limits limits_;
  std::shared_ptr<engine::kv_store> store_;
  engine::kv_store::holding kv_;
  std::unique_ptr<model_runner> runner_;
  std::vector<generate::logits_row> rows_;  // of the last step
};

}  // namespace bitnet::runner
