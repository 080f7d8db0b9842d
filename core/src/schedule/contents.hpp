#pragma once
// The members of a scheduler. Their definitions are in seven files:
//   scheduler.cpp      requests that come in, and their time limits
//   admitting.cpp      which requests run
//   stepping.cpp       the steps
//   sampling_rows.cpp  tokens, embeddings and scores from the rows of a step
//   transferring.cpp   sequences that move to host memory or back
//   following.cpp      calls of the observers of requests
//   listing.cpp        sequences in a report
//
// Owner    the scheduler. Pointers to jobs and sequences point into `jobs_`, which keeps them at
//          their address until forget_ended().
// Threads  the scheduler's thread alone, with no lock. Other threads use `in_`, which has a lock of
//          its own, and read `options_` and `tokens_`, which do not change.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "generate/row_listener.hpp"
#include "schedule/admission.hpp"
#include "schedule/cost_model.hpp"
#include "schedule/delivery.hpp"
#include "schedule/fairness.hpp"
#include "schedule/inbox.hpp"
#include "schedule/kv_memory.hpp"
#include "schedule/running_step.hpp"
#include "schedule/scheduler.hpp"
#include "schedule/sequence.hpp"
#include "schedule/step_plan.hpp"
#include "schedule/transfer.hpp"

namespace bitnet::schedule {

// One step, in the order in which step() and its functions fill it. The memory is kept from step to
// step.
struct step_parts {
  // collect(): the sequences that may take part, in the order of their admission, and what each has
  // to compute; draft() adds tokens to it.
  std::vector<sequence*> able;
  std::vector<work> to_do;
  // plan(): how many of them decode; the others, which share the rest of the step, as indices of
  // `able`; and how many tokens each gets. prepare_rows() removes sequences that end.
  uint32_t n_decodes = 0;
  std::vector<uint32_t> prompts;
  std::vector<share> shares;
  // run(): what the runner computes, how many of the largest logits each row has (0: all of them),
  // and the rows.
  std::vector<slice> slices;
  uint32_t top_logits = 0;
  std::vector<generate::logits_row> rows;
  // begin_step(): requests for which the step may not be ended early.
  std::vector<step_member> requests;
  // follow_step(): jobs that have an observer.
  std::vector<job*> followed_jobs;
  // learn(): how long the step took, and its tokens of decodes beyond one each.
  double ns = 0;
  uint32_t n_extra = 0;
};

struct scheduler::contents {
  contents(std::unique_ptr<step_runner> r, const tokenizer::tokenizer& t, options o,
           const kv::hash_secret& s);

  [[nodiscard]] time_point now() const;
  bool tick();

  // --- scheduler.cpp: what comes in, and how long it may take ---
  bool apply();
  void accept(std::unique_ptr<job> j);
  bool expire();
  void note_bound(const job& j);
  // Ends all choices of the job, by the failure `why` or, without one, as cancelled. Returns how
  // many of them got that end; the others had ended before.
  uint32_t end_job(job& j, const failure* why);
  void end_all(const failure& why);
  void forget_ended();
  void count();
  void list_sequences();  // listing.cpp

  // --- admitting.cpp: what runs ---
  bool admit();
  bool start(const waiter& w);
  void note_shortage(const waiter& w, blocked_by what);
  bool make_room(const waiter& w, blocked_by lacks);
  bool could_make_room(const waiter& w, blocked_by lacks) const;
  bool could_run(sequence& s);
  void enqueue(sequence& s);
  // Moves `s` from running back to the queue. When it runs again, it computes again what the prefix
  // cache does not have.
  void requeue(sequence& s);
  // Takes the ended `s` out of the queue and of steps. Its end is still to be delivered.
  void withdraw(sequence& s, bitnet_status status);
  void take_runner(std::unique_ptr<step_runner> next);
  // Continues with the runner that on_loss returns, or fails all requests if it returns none.
  void lose_runner(const failure& why);

  // --- stepping.cpp: one step ---
  bool step();
  void collect();
  void order_prompts();
  void plan();
  void draft();
  void keep_states();
  void prepare_rows();
  sequence* prepare_row(sequence& s);
  sequence& hand_over(sequence& from, sequence& to);
  void grow();
  bool copy();
  void fail_copies(const failure& why);
  void run();
  void begin_step();
  void fail_step(const failure& why);
  void drop_step();
  void finish_step(nanoseconds took);
  void learn(nanoseconds took);
  void note_computed(sequence& s, uint64_t n_tokens);
  [[nodiscard]] uint64_t most_scored() const;
  [[nodiscard]] bool is_listened_to(const sequence& s) const;

  // --- following.cpp: calls of the observers of requests ---
  void follow_step();
  void leave_steps(job& j);
  void leave_steps();

  // --- sampling_rows.cpp: tokens, embeddings and scores from the rows of a step ---
  void embed(sequence& s, std::span<const generate::logits_row> rows);
  // Scores one token of the prompt for each row, and the first one without. False: `s` failed.
  bool score(sequence& s, std::span<const generate::logits_row> rows);
  void sample(sequence& s, const generate::logits_row& row);
  void verify(sequence& s, uint32_t n_tokens, std::span<const generate::logits_row> rows);
  void fork_choices(sequence& leader, const generate::logits_row& row);
  bool take(sequence& s, const generate::logits_row& row);
  void end(sequence& s);
  void fail(sequence& s, const failure& why);
  void deliver_last(sequence& s, const failure* why);

  // --- transferring.cpp: a piece of a sequence after each step ---
  bool move_piece();
  result<bool> begin(transfer& t);
  result<bool> begin_out(transfer& t);
  result<bool> begin_in(transfer& t);
  result<bool> move(transfer& t);
  result<bool> move_in(transfer& t, uint64_t n);
  result<bool> finish_in(transfer& t);
  void end_transfer(transfer& t, result<uint64_t> how);
  // Restarts the transfer that is under way: what it has moved so far is invalid.
  void begin_transfer_again();
  void end_transfers(const failure& why);

  // --- what make() got ---
  options options_;
  const tokenizer::tokenizer& tokens_;  // the caller's
  const kv::hash_secret secret_;        // of the hashes of blocks in every memory_

  // --- what other threads asked for ---
  inbox in_;
  inbox::contents came_;  // what apply() takes from in_; kept for the memory of its vectors
  bool closed_ = false;   // no request comes any more
  bool stopped_ = false;  // and those that were accepted have ended

  // --- the runner, and what is known of it ---
  std::unique_ptr<step_runner> runner_;  // nullptr: lost
  failure lost_;                         // why, while runner_ is nullptr
  std::unique_ptr<kv_memory> memory_;    // of runner_; nullptr with it
  uint32_t max_running_ = 0;             // the most sequences that run at a time
  slots slots_;                          // the places of running sequences: max_running_
  uint32_t losses_ = 0;                  // runners lost since the last step that succeeded
  cost_model cost_;                      // of steps of runner_
  fairness served_;                      // tokens of each client, by any runner

  // --- requests ---
  std::unordered_map<ticket, std::unique_ptr<job>> jobs_;  // all that were accepted
  std::vector<ticket> ended_;                              // forget_ended() removes them from jobs_
  waiting_queue queue_;                                    // reads served_
  std::vector<sequence*> running_;                         // in the order of their admission
  bool room_changed_ = true;              // since the first of the queue found no room
  time_point look_again_{};               // when ageing may have put another request first
  time_point bound_ = time_point::max();  // when something may expire
  uint64_t left_ = 0, tokens_left_ = 0;   // new requests that left the queue in this tick
  std::vector<job*> followed_;            // jobs whose observers have entered
  std::shared_ptr<generate::row_listener> listener_;  // shared with its caller; nullptr: none

  // --- the step and what moves after it ---
  step_parts step_;
  uint32_t drafted_since_ = 0;  // steps with drafts since the last one without
  // The first one is under way. Each is shared with the thread that waits for its `done`.
  std::vector<std::shared_ptr<transfer>> transfers_;

  // --- reports ---
  statistics counts_;              // count() gives in_ a copy, which other threads read
  uint64_t evictions_before_ = 0;  // of former pools
  delivery delivery_{counts_, [this] { count(); }};
};

}  // namespace bitnet::schedule
