#pragma once
// Continuous batching: many sequences in one step, one read of the weights for all of them.
//
//   tick()   applies what came in; expires deadlines; admits; plans one step: all decodes, then
//            chunks of prompts; runs it; samples; delivers; retires.
//
// Every request that was taken gets exactly one end, or one failure, for each of its choices, and
// the tokens of a choice do not depend on the other requests.
//
// Threads  submit, cancel, ready, replace, set_listener, close, stop, counted, take_out, put_in:
//          any. tick and run: one. The lock that they share is never held while a step runs, a
//          generation samples or a sink is called.

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>

#include "base/cancel_flags.hpp"
#include "base/result.hpp"
#include "generate/row_listener.hpp"
#include "schedule/request.hpp"
#include "schedule/statistics.hpp"
#include "schedule/step.hpp"
#include "schedule/transfer.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::schedule {

struct options {
  uint32_t max_waiting = 1024;                           // requests that never ran
  uint64_t max_waiting_tokens = uint64_t{1} << 22U;      // of their prompts together
  uint32_t max_running = 0;                              // sequences; 0: as many as a step takes
  uint32_t max_choices = 128;                            // of a request
  nanoseconds ageing = std::chrono::seconds(2);          // a wait that counts as one more priority
  nanoseconds sink_patience = std::chrono::seconds(60);  // wait for a request whose sink is full
  nanoseconds served_half_life = std::chrono::seconds(60);  // of what a client was served lately
  // A step with decodes takes at most this many times as long as without prompts, as far as the
  // least chunk of a prompt lets it.
  double max_stretch = 3.0;
  // Bytes of a transferred sequence that are moved after each step, but at least one block. 8 MiB
  // take milliseconds of a memory's bandwidth.
  uint64_t piece_bytes = uint64_t{8} << 20U;
  // Returns another runner of the same model, after the current one failed with BITNET_DEVICE_LOST,
  // BITNET_CONTEXT_POISONED or BITNET_TIMEOUT. Called by the scheduler's thread, no lock held. If
  // it is empty or fails, all requests fail, and submit rejects each until replace().
  std::function<result<std::unique_ptr<step_runner>>(const failure&)> on_loss;
  // Is set, or past its deadline, while every request of the running step is cancelled or past its
  // own deadline, or after stop(): the runner may then end the step with BITNET_CANCELLED. It comes
  // from cancel_flags::make() and outlives the scheduler; nullptr: steps are computed to their end.
  // Its deadline is of the steady clock.
  cancel_flags::flag* step_flag = nullptr;
  std::function<time_point()> now;  // any thread; empty: the steady clock, as run() needs it
};

class scheduler {
 public:
  // `tokens` is the model's, borrowed. BITNET_INVALID_ARGUMENT for options out of range, or a
  // runner with a limit of 0.
  static result<std::unique_ptr<scheduler>> make(std::unique_ptr<step_runner> runner,
                                                 const tokenizer::tokenizer& tokens, options o);
  ~scheduler();  // as stop(), when run() has come back; ends are delivered in it
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // Checks the request and puts it into the queue.
  std::expected<ticket, rejection> submit(request r);
  // Ends all choices of the request with BITNET_STOP_CANCELLED, within one step. The running step
  // ends early if all of its requests are cancelled. A ticket that has ended or never existed is
  // ignored.
  void cancel(ticket t);
  // The sink of the request has room again.
  void ready(ticket t);
  // Continues with another runner of the same model, which computes the running sequences again.
  // The scheduler's thread destroys the former runner.
  void replace(std::unique_ptr<step_runner> runner);
  // From the next step on, `l` is offered each row behind the last token of a sequence from which a
  // token is sampled. nullptr: nothing is offered.
  void set_listener(std::shared_ptr<generate::row_listener> l);
  // Rejects new requests; accepted ones go on. run() returns when nothing is left.
  void close();
  // As close(), and accepted requests fail with BITNET_CANCELLED. run() returns.
  void stop();
  [[nodiscard]] statistics counted() const;

  // Copies the known prefix of `tokens` from the device: whole blocks, and the state behind the
  // last of them if the model has states. Waits for the scheduler's thread, which copies one piece
  // after each step, so that a step is delayed by one piece and submit() not at all.
  // BITNET_NOT_FOUND: no whole block is known. BITNET_BUSY: requests have reserved all room.
  result<taken_sequence> take_out(std::span<const int32_t> tokens);
  // Makes a sequence known, as if it had been computed here: as many of its first blocks as there
  // is room for; with a state all or none. Waits as take_out() does. Returns how many tokens are
  // known. BITNET_UNSUPPORTED: its form is not that of the runner. BITNET_BUSY: as for take_out().
  result<uint64_t> put_in(const kv::saved_sequence& s);

  // Returns whether there was anything to do. If not, there is nothing until another call comes in
  // or a time limit passes.
  bool tick();
  // Ticks until close() or stop().
  void run();
  // The current runner; nullptr: it was lost. For the thread that ticks; within on_loss it is the
  // runner that failed.
  [[nodiscard]] const step_runner* runner() const;

 private:
  struct contents;
  explicit scheduler(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::schedule
