#pragma once
// Events on their way into the sinks of their requests, in order. If a sink is full, its events
// wait in the job, which is paused until the sink takes them. If only the best choices of a request
// are delivered, its events wait in the selection until all choices have ended.
//
// Threads  the scheduler's, with no lock held.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "schedule/sequence.hpp"
#include "schedule/statistics.hpp"

namespace bitnet::schedule {

class delivery {
 public:
  // Counts what was delivered. `publish` makes the counts known to other threads: it is called
  // before a sink gets the end of a choice, so that a reader of the end finds it counted.
  delivery(statistics& counts, std::function<void()> publish)
      : counts_(counts), publish_(std::move(publish)) {}

  // Delivers the token of the last take(), if `has_token`, and `text`; else `text` alone, with
  // token -1.
  static void deliver_piece(sequence& s, bool has_token, std::string text, time_point now);
  // Delivers a scored token of the prompt.
  static void deliver_prompt(sequence& s, generate::scored&& one, time_point now);
  // Delivers the last event of the choice, with the stop reason of its generation.
  void deliver_end(sequence& s, time_point now);
  void deliver_failure(sequence& s, const failure& why, time_point now);
  // The sink may have room again: offers what waits, and ends the pause when it takes all.
  void offer_again(job& j, time_point now);
  // Delivers an end for each choice that has none yet, or whose events the sink did not all take:
  // the failure `why` or, without one, that it was cancelled. A selection that is not over is given
  // up. Returns how many choices got this end.
  uint32_t close(job& j, const failure* why, time_point now);

 private:
  void end(sequence& s, event&& e, time_point now);
  void hand_over(job& j, event&& e, time_point now);
  void count(const event& e);

  statistics& counts_;
  const std::function<void()> publish_;
};

}  // namespace bitnet::schedule
