#pragma once
// One conversation: its tokens, and the runner that evaluates them on an engine. It can move to
// another engine between two tokens.
//
// Threads one at a time, unless said otherwise.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/device_use.hpp"
#include "engine/engine.hpp"
#include "engine/kv_store.hpp"
#include "engine/tenant.hpp"
#include "generate/row_listener.hpp"
#include "runner/session_runner.hpp"

namespace bitnet::sequence {

struct move_record {
  std::string from, to, why;  // devices: "mine:0"
  const char* method;         // "migrate" or "recompute"
  double pause_ms = 0;        // until it could go on; recompute: until it had the next token
  double copy_ms = 0;         // of that, for its keys and values
};

class session final : public engine::tenant {
 public:
  // `cancel_token`: the plugin calls host->cancelled with it.
  static result<std::unique_ptr<session>> open(std::shared_ptr<engine::engine> e,
                                               const engine::session_options& options,
                                               uint64_t cancel_token);

  // Evaluates the tokens that wait and then `ids`. `rows` gets the last row (row_floats) or, with
  // all_rows, one for each of `ids`. On failure the session is as it was.
  result<void> eval(std::span<const int32_t> ids, bool all_rows, std::span<float> rows);
  // As eval() for the last row, of which only the `top` largest logits are needed (0: all): smaller
  // ones may be -infinity. If the device lists them, they are in `largest` and `rows` is undefined;
  // else `largest` is empty.
  result<void> eval_top(std::span<const int32_t> ids, uint32_t top, std::span<float> rows,
                        runner::listed_logits& largest);

  // Evaluates the tokens that wait, at least one, and behind them a draft, which does not join the
  // session. `rows` gets one row behind the last waiting token and one behind each drafted token,
  // with at least the `top` largest logits (0: all), valid until the next call. Drafted tokens that
  // are appended next, in their order, are evaluated already. A draft has at most room_ahead()
  // tokens.
  result<void> eval_ahead(std::span<const int32_t> draft, uint32_t top,
                          std::vector<generate::logits_row>& rows);
  // The most draft tokens that a step takes now.
  [[nodiscard]] uint64_t room_ahead() const;

  // Notes a token that the next eval will evaluate; BITNET_CONTEXT_FULL if there is no room.
  result<void> append(int32_t id);
  result<void> truncate(uint64_t n);

  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  [[nodiscard]] uint32_t capacity() const { return limits().n_context; }
  [[nodiscard]] uint32_t batch() const { return limits().n_batch; }  // tokens of a step
  // Floats of a row: the vocabulary's size, or that of a hidden state.
  [[nodiscard]] uint64_t row_floats() const { return limits().row_floats; }
  [[nodiscard]] bool gives_embeddings() const { return options_.embeddings; }
  [[nodiscard]] engine::engine& owner() const { return *runner_->on(); }
  [[nodiscard]] const engine::session_options& options() const { return options_; }
  [[nodiscard]] const runner::session_runner::limits& limits() const { return runner_->most(); }

  // From the next evaluation on `l` is offered rows of logits: the last one of eval() and
  // eval_top(), and of eval_ahead() the one behind the last token that waited. nullptr: nothing is
  // offered.
  void set_listener(std::shared_ptr<generate::row_listener> l);
  [[nodiscard]] std::optional<engine::session_options> sequences() const override;
  bool lend_rows(const std::shared_ptr<generate::row_listener>& l) override;
  void take_back_rows(const std::shared_ptr<generate::row_listener>& l) override;

  // The trace of its steps, until the next evaluation; nullptr: they are not traced.
  [[nodiscard]] const trace::recorder* recorder() const { return runner_->recorder(); }

  // Moves to another engine of the same model, now. On failure the session stays where it is.
  result<void> move(std::shared_ptr<engine::engine> to, engine::moving how, const std::string& why);
  result<void> offer(std::shared_ptr<engine::engine> to, engine::moving how,
                     const std::string& why) override;
  [[nodiscard]] std::shared_ptr<engine::engine> headed_for() const override;

  // The last moves, oldest first, and how many there were.
  [[nodiscard]] const std::deque<move_record>& moves() const { return moves_; }
  [[nodiscard]] uint64_t n_moves() const { return n_moves_; }

  // What ran, from the plugin's own counters, and the KV in use.
  struct usage {
    std::vector<engine::device_use> ran;  // on each device, in the order of the moves
    uint64_t steps = 0, tokens = 0;
    uint32_t kv_blocks = 0, dtype_k = 0, dtype_v = 0, window = 0, window_keep = 0;
    uint64_t kv_bytes = 0, kv_budget = 0, evictions = 0;
    // Tokens whose keys and values the free memory had room for when the session was opened; 0:
    // unknown, or they are bounded by a window.
    uint64_t max_context = 0;
  };
  [[nodiscard]] result<usage> report() const;

 private:
  session(const engine::session_options& options, uint64_t cancel_token);
  [[nodiscard]] uint64_t first_seen() const;  // by the next token, but for window_keep
  class hold;                                 // keeps the blocks of this sequence from eviction
  void forget_unseen();
  void settle(uint64_t evaluated);
  [[nodiscard]] bool has_state() const { return limits().states_bytes != 0; }
  [[nodiscard]] uint64_t settle_state(uint64_t evaluated);
  result<void> keep_state();
  // The tokens of an evaluation, and how many of the last ones have a row.
  struct evaluation {
    std::span<const int32_t> ids;
    uint64_t n_rows = 0;
    uint32_t step_tokens = 0;  // at most
  };
  result<void> eval(const evaluation& what, const runner::session_runner::wanted& out);
  result<void> evaluate(const evaluation& what, const runner::session_runner::wanted& out);
  [[nodiscard]] uint64_t step_of(const evaluation& what, bool uncopied) const;
  // The listener, if it wants the next row; else nullptr.
  [[nodiscard]] std::shared_ptr<generate::row_listener> listener() const {
    return listener_ && listener_->wants_next() ? listener_ : nullptr;
  }
  void begin_ahead(std::span<const int32_t> draft);
  void note_ahead(int32_t id);
  [[nodiscard]] result<std::unique_ptr<runner::session_runner>> runner_on(
      std::shared_ptr<engine::engine> e) const;
  void take_offer();
  void switch_to(std::unique_ptr<runner::session_runner> to, engine::moving how,
                 const std::string& why);
  bool copy_to(runner::session_runner& to);
  result<void> recover(failure why);

  const engine::session_options options_;
  const uint64_t cancel_token_;
  const std::atomic<bool>* cancelled_;
  std::shared_ptr<generate::row_listener> listener_;  // nullptr: none

  std::vector<int32_t> tokens_;  // all tokens: evaluated ones, then those that wait
  uint64_t evaluated_ = 0;       // how many of tokens_
  // For a model with states, which cannot be cut like keys: the position of the kept state, 0 if
  // there is none; and whether the sequence's own state is no longer that of evaluated_ tokens.
  uint64_t kept_at_ = 0;
  bool state_spoilt_ = false;
  // A draft whose keys lie behind those of tokens_, and how many of its tokens were appended since.
  std::vector<int32_t> ahead_;
  std::size_t n_ahead_ = 0;
  uint64_t steps_ = 0, steps_tokens_ = 0;
  uint64_t max_context_ = 0;                    // of the engine where it was opened
  std::vector<engine::device_use> ran_before_;  // on former engines
  std::deque<move_record> moves_;
  uint64_t n_moves_ = 0;
  bool catching_up_ = false;  // the last move ends with the next evaluation

  struct offered {
    std::unique_ptr<runner::session_runner> place;
    engine::moving how;
    std::string why;
  };
  std::atomic<bool> has_offer_{false};  // also set if listener_next_ changed
  mutable std::mutex mutex_;  // guards the members below; runner_ only against other threads
  std::shared_ptr<generate::row_listener> listener_next_;
  std::optional<offered> offer_;
  std::unique_ptr<runner::session_runner> runner_;  // never nullptr
};

}  // namespace bitnet::sequence
