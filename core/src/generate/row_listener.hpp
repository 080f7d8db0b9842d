#pragma once
// Gets copies of some of the output rows from which texts are sampled.
//
// Threads  the thread of the sequence or scheduler that has it, one call at a time. A call must not
//          block: the text waits for it.

#include <cstdint>
#include <span>

namespace bitnet::generate {

// Where a row comes from: a request of a scheduler and its choice; a session has neither.
struct row_origin {
  uint64_t request = 0;
  uint32_t choice = 0;
};

class row_listener {
 public:
  row_listener() = default;
  row_listener(const row_listener&) = delete;
  row_listener& operator=(const row_listener&) = delete;
  virtual ~row_listener() = default;

  // A sequence is about to compute an output row. True: offer() is to be called with it, and it
  // must have all logits. If the step fails, offer() is not called.
  virtual bool wants_next() = 0;
  // `logits` is the row behind `tokens`, which are all of the sequence. Both are borrowed for the
  // call.
  virtual void offer(const row_origin& of, std::span<const int32_t> tokens,
                     std::span<const float> logits) = 0;
};

}  // namespace bitnet::generate
