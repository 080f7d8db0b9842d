#pragma once
// Gets copies of some output rows while texts are generated, beside what samples from them.
//
// Threads  that of the sequence or scheduler which has it, one call at a time. A call does not
//          block: the text waits for it.

#include <cstdint>
#include <span>

namespace bitnet::generate {

// Whose row it is: a request of a scheduler and its choice; a session has neither.
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

  // A sequence is about to compute an output row. Whether offer() is to be called with it: it must
  // have all logits then. If the step fails, offer() is not called.
  virtual bool wants_next() = 0;
  // The row behind `tokens`, which are all of the sequence. Both are borrowed for the call.
  virtual void offer(const row_origin& of, std::span<const int32_t> tokens,
                     std::span<const float> logits) = 0;
};

}  // namespace bitnet::generate
