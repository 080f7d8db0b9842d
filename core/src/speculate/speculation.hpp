#pragma once
// The drafts of a sequence: their drafter, their length, and whether they save time.
//
// Credit   A sequence has a credit, in steps without a draft. A step with a draft adds the tokens
//          that it gave and subtracts its time, in units of a step without. When the credit is
//          spent, drafts pause; each step without a draft gives 1/64 back, until the credit
//          covers the last draft's loss. So useless drafts cost 1/64 of the time and the loss of
//          the first ones, and are tried again.
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
  uint32_t ngram_size = 3;  // length of the n-grams that are looked up
};
// Largest n_max and ngram_size, in tokens: bounds of the memory and of the comparisons that an
// option can request for each sequence.
inline constexpr uint32_t most_drafted = 256;
inline constexpr uint32_t most_ngram_size = 64;

// BITNET_INVALID_ARGUMENT for options out of range.
result<void> check(const options& o);

// Counts of one sequence, or of many together.
struct counts {
  uint64_t drafted = 0, accepted = 0;  // tokens
  uint64_t steps = 0;                  // with a draft
  uint64_t pauses = 0;                 // how often the credit was spent
  double step_ratio = 0;  // sum over these steps: time of each, in steps without a draft

  void add(const counts& more);
};

// The time of a single sequence's step without a draft: a moving average.
class plain_time {
 public:
  void learn(double ns);
  void note_drafted() { ++drafted_since_; }
  [[nodiscard]] double ns() const { return ns_; }  // 0: unknown
  // Whether the next step is to be measured, and so has no draft.
  [[nodiscard]] bool is_due() const { return ns_ <= 0 || drafted_since_ >= most_unmeasured; }
  // Steps with drafts between two measurements. A measurement costs what a draft would have saved;
  // with fewer of them the time is out of date for longer.
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
  // The draft of the step that is planned or was run.
  [[nodiscard]] std::span<const int32_t> draft() const { return draft_; }
  // Drops the draft: its step is not run, or is over.
  void forget() { draft_.clear(); }

  // Report a step with draft(), in this order: it was run; a drafted token came, and its row is
  // used; it took `ns`, and would have taken `plain_ns` (> 0) without the draft. end_verification()
  // returns the counts of this step.
  void begin_verification();
  void note_accepted();
  counts end_verification(double ns, double plain_ns);
  // Reports a step without a draft.
  void note_plain();

  [[nodiscard]] const counts& counted() const { return counts_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  // Why the drafter failed, which ended the drafts; "": it did not fail.
  [[nodiscard]] const std::string& failed() const { return failed_; }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  const options options_;
  std::unique_ptr<drafter> drafter_;  // nullptr: it failed
  const char* const name_;
  std::vector<int32_t> draft_;
  double drafting_ns_ = 0;  // time to make draft_
  bool is_first_ = true;    // no draft was made before draft_
  double credit_;
  bool paused_ = false;
  double last_loss_ = 0;    // loss of the draft that spent the credit
  uint32_t length_;         // of the next draft
  counts counts_, before_;  // of all steps; of those before the current one
  std::string failed_;
};

}  // namespace bitnet::speculate
