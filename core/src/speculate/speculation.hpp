#pragma once
// The drafts of a sequence: their drafter, how long they are, and whether they pay.
//
// Credit   A sequence has a credit, in steps without a draft. A step with a draft adds the tokens
//          that it gave and takes what it took, both in units of a step without. When the credit is
//          spent, drafts pause; each step without one gives 1/64 back, until there is as much as
//          the last draft lost. So drafts that fail cost 1/64 of the time and what the first ones
//          lost, and are tried again.
// Length   of the next draft: twice the last one's when all of it was accepted, else one more than
//          was accepted.
// Threads  one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "speculate/drafter.hpp"

namespace bitnet::speculate {

struct options {
  uint32_t n_max = 16;      // tokens of a draft
  uint32_t n_min = 1;       // a shorter draft is not computed
  uint32_t ngram_size = 3;  // tokens that must have come before, of a look-up
};
inline constexpr uint32_t most_drafted = 256;
inline constexpr uint32_t most_ngram_size = 64;

// BITNET_INVALID_ARGUMENT for options out of range.
result<void> check(const options& o);

// Of one sequence, or of many together.
struct counts {
  uint64_t drafted = 0, accepted = 0;  // tokens
  uint64_t steps = 0;                  // with a draft
  uint64_t pauses = 0;                 // times that the credit was spent
  double step_ratio = 0;  // sum over these steps: what one took, in steps without a draft

  void add(const counts& more);
};

// What a step of a single sequence takes without a draft: a moving average.
class plain_time {
 public:
  void learn(double ns);
  void note_drafted() { ++drafted_since_; }
  [[nodiscard]] double ns() const { return ns_; }  // 0: unknown
  // Whether the next step is to be measured, without a draft.
  [[nodiscard]] bool is_due() const { return ns_ <= 0 || drafted_since_ >= most_unmeasured; }
  static constexpr uint32_t most_unmeasured = 64;

 private:
  double ns_ = 0;
  uint32_t n_ = 0, drafted_since_ = 0;
};

class speculation {
 public:
  // `o` was checked.
  speculation(std::unique_ptr<drafter> by, const options& o);

  // Drafts at most `room` tokens behind `tokens`; draft() has them, none where it does not pay.
  void propose(std::span<const int32_t> tokens, uint32_t room);
  // Of the step that is planned or was run.
  [[nodiscard]] std::span<const int32_t> draft() const { return draft_; }
  // The step is not run, or its draft is done with.
  void forget() { draft_.clear(); }

  // What became of a step with draft(), one after the other: it was run; a drafted token came, and
  // its row is used; it took `ns`, and would have taken `plain_ns` (> 0) without the draft. The
  // last one gives the counts of this step.
  void begin_verification();
  void note_accepted();
  counts end_verification(double ns, double plain_ns);
  // A step without a draft.
  void note_plain();

  [[nodiscard]] const counts& counted() const { return counts_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  // Why the drafter failed, which ended the drafts; "": it did not.
  [[nodiscard]] const std::string& failed() const { return failed_; }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  const options options_;
  std::unique_ptr<drafter> drafter_;  // nullptr: it failed
  const char* const name_;
  std::vector<int32_t> draft_;
  double drafting_ns_ = 0;  // of draft_
  bool is_first_ = true;    // no draft was made before draft_
  double credit_;
  bool paused_ = false;
  double last_loss_ = 0;    // of the draft that spent the credit
  uint32_t length_;         // of the next draft
  counts counts_, before_;  // in all, and before the step
  std::string failed_;
};

}  // namespace bitnet::speculate
