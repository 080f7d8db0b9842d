#pragma once
// A scheduler with its engine, a model_runner for many sequences, and the thread that runs steps.
// It moves to another engine when its device is lost or its backend is replaced.
//
// Owner   keeps its engine alive; the model outlives it.
// Threads any; the destructor waits for the step that runs.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/cancel_flags.hpp"
#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/limits.hpp"
#include "engine/tenant.hpp"
#include "generate/row_listener.hpp"
#include "runner/model_runner.hpp"
#include "schedule/scheduler.hpp"

namespace bitnet::serving {

struct engine_options {
  engine::session_options sequences;  // options of each; n_batch: tokens of a step
  uint32_t max_sequences = 32;        // in a step
  uint64_t kv_bytes = 0;              // of all sequences; 0: see room_for()
  schedule::options scheduling;       // on_loss and step_flag are set by open()
  // Ends steps early that no request needs any more; its token is that of the steps. It comes from
  // cancel_flags::make(); nullptr: steps are computed to their end.
  std::shared_ptr<cancel_flags::flag> step_flag;
};

class async_engine final : public engine::tenant {
 public:
  static result<std::unique_ptr<async_engine>> open(std::shared_ptr<engine::engine> on,
                                                    engine_options o);
  ~async_engine() override;

  [[nodiscard]] schedule::scheduler& scheduler() { return *scheduler_; }
  // Whether its device was lost and no other one took over.
  [[nodiscard]] bool is_lost() const;

  [[nodiscard]] std::shared_ptr<engine::engine> headed_for() const override;
  // Its sequences are computed again there, whatever `how` is, since they share blocks.
  result<void> offer(std::shared_ptr<engine::engine> to, engine::moving how,
                     const std::string& why) override;

  // From the next step on, rows of logits are offered to `l`; nullptr: to none.
  void set_listener(std::shared_ptr<generate::row_listener> l);
  [[nodiscard]] std::optional<engine::session_options> sequences() const override;
  bool lend_rows(const std::shared_ptr<generate::row_listener>& l) override;
  void take_back_rows(const std::shared_ptr<generate::row_listener>& l) override;

  struct facts {
    std::string backend, device;
    schedule::step_limits limits;
    uint64_t block_bytes = 0;
    kv::saved_form form;
    uint32_t dtype_k = 0, dtype_v = 0;
    uint64_t moves = 0;  // to other engines
  };
  [[nodiscard]] facts describe() const;

  // A change of the engine; devices: "mine:0".
  struct move {
    std::string from, to, why;
  };
  // The last moves, oldest first.
  [[nodiscard]] std::vector<move> last_moves() const;

 private:
  explicit async_engine(engine_options o);
  [[nodiscard]] result<std::unique_ptr<runner::model_runner>> runner_on(
      std::shared_ptr<engine::engine> e) const;
  result<std::unique_ptr<schedule::step_runner>> recover(const failure& why);
  void move_to(const runner::model_runner& r, const std::string& why,
               const engine::engine* left = nullptr);

  engine_options options_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<engine::engine> on_;
  facts facts_;
  std::vector<move> last_moves_;
  std::shared_ptr<generate::row_listener> listener_;  // that the scheduler was given

  std::mutex offering_;  // one offer at a time: the last one wins

  std::unique_ptr<schedule::scheduler> scheduler_;
  std::jthread thread_;
};

// Bytes for the keys and values of `max_sequences` if none are given: as many whole contexts, but
// no more than half of the memory that is free now, and no less than one context.
[[nodiscard]] uint64_t room_for(const engine::limits& most, uint32_t max_sequences,
                                uint64_t free_bytes);

}  // namespace bitnet::serving
