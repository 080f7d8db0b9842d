#pragma once
// A second engine that computes some of the rows again from which texts are sampled, and the
// differences that it found. It changes no text: a failure here ends the shadow only.
//
// Owner   keeps its engine alive until end(); the model outlives it. Sessions and schedulers that
//         offer it rows share it.
// Threads any, unless said otherwise. Its own thread, and the pool that this thread computes with,
//         have the lowest priority (nice 19), so that they use what CPU time the others leave.
// Memory  `waiting` rows with their tokens, and the keys and values of one sequence.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/cancel_flags.hpp"
#include "base/result.hpp"
#include "engine/device_use.hpp"
#include "engine/model_engines.hpp"
#include "generate/row_listener.hpp"
#include "sequence/session.hpp"
#include "shadow/comparing.hpp"
#include "shadow/finding_op.hpp"
#include "shadow/waiting_rows.hpp"
#include "threads/pool.hpp"

namespace bitnet::shadow {

struct options {
  double share = 0.1;                 // of the rows of decoding that are offered, in (0, 1]
  uint32_t waiting = 16;              // rows that wait at most
  engine::session_options sequences;  // as those of the texts
  std::shared_ptr<cancel_flags::flag> cancelled;  // its own flag: ends its step in end()
  uint32_t threads = 1;                           // that it computes with; as many as backends use
  threads::cpu_list cpus;                         // its CPUs; empty: any
  double op_tolerance = 0;  // allowed between elements, for find_op(); 0: no byte may differ
  std::function<void(const failure&)> on_failure;  // by its thread, once, when it ends by itself
};

class shadow_run final : public std::enable_shared_from_this<shadow_run> {
 public:
  // BITNET_INVALID_ARGUMENT for options out of range; or the failure to open a session on `on`.
  static result<std::shared_ptr<shadow_run>> open(engine::engine_ptr on, options o);
  ~shadow_run();
  shadow_run(const shadow_run&) = delete;
  shadow_run& operator=(const shadow_run&) = delete;

  // Returns a listener for the rows of one session or scheduler. It shares this object.
  std::shared_ptr<generate::row_listener> attach();
  // Ends the comparison, waits for the thread, and releases the engine. Call it once.
  void end();

  // Looks for the first op whose output differs, on the tokens of the row that differs most, at
  // most the first most_tokens_to_bisect. Computes on both engines in the calling thread, with a
  // pool of its own. BITNET_NOT_FOUND: no row differs so far. Not concurrently with end().
  result<void> find_op(const engine::engine_ptr& live);

  [[nodiscard]] uint32_t n_context() const { return n_context_; }

  // The last result of find_op().
  struct search {
    std::size_t tokens = 0;
    std::optional<op_difference> first;  // nullopt: no op differs over these tokens
  };
  struct facts {
    engine::device_use on;  // without counters
    double share = 0;
    uint64_t seen = 0;     // rows of decoding
    uint64_t offered = 0;  // of these: compared, dropped or waiting
    uint64_t dropped = 0;  // of those offered: no place was free
    uint32_t waiting = 0;
    totals compared;
    uint64_t offer_ns = 0, longest_offer_ns = 0;  // time of the generating threads
    std::optional<failure> why;                   // if it ended by itself
    std::optional<search> searched;
  };
  [[nodiscard]] facts describe() const;

 private:
  class source;
  explicit shadow_run(engine::engine_ptr on, options o, std::unique_ptr<sequence::session> s);
  void work();
  result<void> compare_all();
  result<void> compare_one(const waiting_rows::row& live);
  void offer(const row_place& at, std::span<const int32_t> tokens, std::span<const float> logits);

  const options options_;
  const uint32_t n_context_;
  const engine::device_use on_;
  waiting_rows waiting_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> sources_{0}, seen_{0}, offered_{0}, dropped_{0};
  std::atomic<uint64_t> offer_ns_{0}, longest_offer_ns_{0};

  mutable std::mutex mutex_;  // guards the members below; no thread that generates takes it
  totals compared_;
  std::optional<failure> why_;
  std::optional<search> searched_;

  engine::engine_ptr engine_;  // until end()
  // Used by its thread, and by end() after that thread has ended.
  std::unique_ptr<sequence::session> session_;
  std::vector<float> row_;
  std::jthread thread_;
};

}  // namespace bitnet::shadow
