#pragma once
// One conversation: its tokens, and what evaluates them on an engine. It can change its engine
// between two tokens.
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
  double pause_ms = 0;  // until the session could go on; recompute: until it had the next token
  double copy_ms = 0;   // of that, for its keys and values
};

class session final : public engine::tenant {
 public:
  // `cancel_token` is what the plugin will ask host->cancelled with.
  static result<std::unique_ptr<session>> open(std::shared_ptr<engine::engine> e,
                                               const engine::session_options& options,
                                               uint64_t cancel_token);

  // Evaluates what waits and then `ids`. `rows` gets the last one (row_floats) or, with all_rows,
  // one for each of `ids`. On failure the session is as it was.
  result<void> eval(std::span<const int32_t> ids, bool all_rows, std::span<float> rows);
  // The same for the last row, of which only the `top` largest are needed (0: all): what is surely
  // smaller may be -infinity. Where the device lists them, they are in `largest` and `rows` may be
  // anything; else that is empty.
  result<void> eval_top(std::span<const int32_t> ids, uint32_t top, std::span<float> rows,
                        runner::listed_logits& largest);

  // Evaluates what waits, at least one token, and behind it a draft, which does not join the
  // session: `rows` gets one behind the last token that waits and one behind each of the draft,
  // with at least the `top` largest logits (0: all), valid until the next call. Drafted tokens that
  // are appended next, one after the other, are evaluated already. At most room_ahead() tokens.
  result<void> eval_ahead(std::span<const int32_t> draft, uint32_t top,
                          std::vector<generate::row>& rows);
  // Tokens of a draft, at most, that a step takes now.
  [[nodiscard]] uint64_t room_ahead() const;

  // Notes a token that the next eval will evaluate; BITNET_CONTEXT_FULL if there is no room.
  result<void> append(int32_t id);
  result<void> truncate(uint64_t n);

  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  [[nodiscard]] uint32_t capacity() const { return limits().n_context; }
  [[nodiscard]] uint32_t batch() const { return limits().n_batch; }  // tokens of a step
  // Of a row: of the vocabulary, or of a hidden state.
  [[nodiscard]] uint64_t row_floats() const { return limits().row_floats; }
  [[nodiscard]] bool gives_embeddings() const { return options_.embeddings; }
  [[nodiscard]] engine::engine& owner() const { return *runner_->on(); }
  [[nodiscard]] const engine::session_options& options() const { return options_; }
  [[nodiscard]] const runner::session_runner::limits& limits() const { return runner_->most(); }

  // From the next evaluation on `l` is offered rows of logits: of eval() and eval_top() the last
  // one, of eval_ahead() the one behind the last token that waits. nullptr: nothing is.
  void set_listener(std::shared_ptr<generate::row_listener> l);
  [[nodiscard]] std::optional<engine::session_options> sequences() const override;
  bool lend_rows(const std::shared_ptr<generate::row_listener>& l) override;
  void take_back_rows(const std::shared_ptr<generate::row_listener>& l) override;

  // Of its steps, until the next evaluation; nullptr: they are not traced.
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
  [[nodiscard]] uint64_t first_seen() const;  // by the next token, beside those kept
  class hold;                                 // of the blocks of this sequence
  void forget_unseen();
  void settle(uint64_t evaluated);
  [[nodiscard]] bool has_state() const { return limits().states_bytes != 0; }
  [[nodiscard]] uint64_t settle_state(uint64_t evaluated);
  result<void> keep_state();
  // What is evaluated, and how many of its last tokens have a row.
  struct evaluation {
    std::span<const int32_t> ids;
    uint64_t n_rows = 0;
    uint32_t step_tokens = 0;  // at most
  };
  result<void> eval(const evaluation& what, const runner::session_runner::wanted& out);
  result<void> evaluate(const evaluation& what, const runner::session_runner::wanted& out);
  [[nodiscard]] uint64_t step_of(const evaluation& what, bool uncopied) const;
  // Who is to be offered the next row; nullptr: nobody.
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

  std::vector<int32_t> tokens_;  // all, evaluated and waiting
  uint64_t evaluated_ = 0;       // of tokens_
  // Of a model with states, which cannot be cut like keys: where the kept one was, 0: nowhere; and
  // whether the sequence's own is that of evaluated_ tokens no longer.
  uint64_t kept_at_ = 0;
  bool state_spoilt_ = false;
  // A draft whose keys are behind those of tokens_, and how many of it were appended since.
  std::vector<int32_t> ahead_;
  std::size_t n_ahead_ = 0;
  uint64_t steps_ = 0, steps_tokens_ = 0;
  uint64_t max_context_ = 0;                    // on the engine where it was opened
  std::vector<engine::device_use> ran_before_;  // on former engines
  std::deque<move_record> moves_;
  uint64_t n_moves_ = 0;
  bool catching_up_ = false;  // the last move is not over before the next evaluation

  struct offered {
    std::unique_ptr<runner::session_runner> place;
    engine::moving how;
    std::string why;
  };
  std::atomic<bool> has_offer_{false};  // or listener_next_ changed
  mutable std::mutex turn_;             // guards what follows, runner_ for other threads
  std::shared_ptr<generate::row_listener> listener_next_;
  std::optional<offered> offer_;
  std::unique_ptr<runner::session_runner> runner_;  // never nullptr
};

}  // namespace bitnet::sequence
