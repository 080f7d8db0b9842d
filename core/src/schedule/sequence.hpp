#pragma once
// The state of a choice of a request: its tokens, its blocks, its generation and its progress.
//
// A request begins with one choice, which waits. Its other choices are pending until the first one
// has computed the prompt; then they run, or wait for a slot. A preempted choice waits again.
//
// Owner    its job, which keeps it at the same address.
// Threads  any thread makes it; afterwards only the scheduler's thread uses it.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "generate/embedding.hpp"
#include "generate/generation.hpp"
#include "generate/prompt_scores.hpp"
#include "kv/block_pool.hpp"
#include "schedule/request.hpp"
#include "schedule/selection.hpp"
#include "schedule/sequence_row.hpp"
#include "speculate/speculation.hpp"

namespace bitnet::schedule {

struct job;

enum class phase : uint8_t { pending, waiting, running, ended };

struct sequence {
  sequence(job& of_job, uint32_t index, generate::generation g)
      : of(&of_job), choice(index), delivered_index(index), generation(std::move(g)) {}

  job* of;
  uint32_t choice;
  uint32_t delivered_index;  // see event::delivered_index
  generate::generation generation;
  std::vector<int32_t> tokens;   // the prompt, and what was sampled; empty while it is pending
  kv::table table;               // of the pool, while it runs
  uint64_t computed = 0;         // tokens whose keys are in the blocks
  uint64_t ever_computed = 0;    // the most that `computed` was; tokens before it are recomputed
  std::optional<uint32_t> wish;  // top_logits of the next row, once it is known
  std::unique_ptr<speculate::speculation> ahead;  // nullptr: it drafts nothing
  std::vector<int32_t> step_tokens;               // the tokens of a step with a draft
  // A draft was not wholly accepted, and the state is that from before its step: the accepted
  // tokens are computed again with the next one. Such a step is a decode.
  bool replays = false;
  std::optional<generate::embedding> rows;        // of an embedding: pools the rows
  std::vector<float> embedding;                   // its result
  std::optional<generate::prompt_scores> scores;  // if its prompt is to be scored
  bool is_heard = false;                          // its row is to be offered to the listener
  phase at = phase::pending;
  uint32_t slot = no_slot;  // while it runs
  int64_t rank = 0;  // while it runs: its priority at its admission, raised by its waiting time
  // After a step with this sequence failed, it runs alone until this many tokens are computed.
  uint64_t alone_until = 0;
  uint32_t failed_copies = 0;
  double sum_logprobs = 0;     // of its tokens, where they have log probabilities
  bool end_is_queued = false;  // its end or failure was delivered, or waits to be
  usage used;
  nanoseconds waited{};
  time_point since;  // when it began to wait or to run

  // Whether it may skip the computation of a known prefix.
  [[nodiscard]] bool reads_prefix() const { return rows ? !rows->needs_all_rows() : !is_scoring(); }
  // Whether tokens of the prompt are still to be scored.
  [[nodiscard]] bool is_scoring() const;
  // How many of its next tokens need no row while it is scoring.
  [[nodiscard]] uint64_t left_unscored() const {
    const uint64_t first = scores ? scores->first_row() : 0;
    return first - std::min(computed, first);
  }
  // Rows that a step of its next `n` tokens gives.
  [[nodiscard]] uint32_t rows_of(uint32_t n) const {
    if (is_scoring()) return n - static_cast<uint32_t>(std::min<uint64_t>(n, left_unscored()));
    if (!reads_prefix()) return n;
    return n == left() ? 1 : 0;
  }
  [[nodiscard]] uint64_t left() const { return tokens.size() - computed; }
  [[nodiscard]] std::size_t n_drafted() const { return ahead ? ahead->draft().size() : 0; }
  [[nodiscard]] bool is_suspect() const { return computed < alone_until; }
  [[nodiscard]] bool has_begun() const { return !generation.so_far().tokens.empty(); }
  // Adds the time since `since` to what it waited or ran, and sets `since` to `now`.
  void note_time(time_point now);
};

// A request that was taken.
struct job {
  ticket id = 0;
  uint64_t client = 0;
  int32_t priority = 0;
  std::optional<time_point> deadline;
  std::shared_ptr<sink> events;
  std::shared_ptr<step_observer> observer;  // nullptr: none follows it
  uint64_t step_tokens = 0;                 // its tokens in the step that begins; else 0
  std::size_t n_prompt = 0;
  int64_t max_tokens = -1;
  std::vector<std::unique_ptr<grammar::guide>> grammars;  // the generations borrow them
  std::vector<sequence> choices;                          // as many as it ever has
  uint32_t live = 0;                                      // choices that have not ended
  bool is_new = true;                                     // it never ran
  std::optional<selection> best;                          // where not all choices are delivered
  // While the sink is full: since when, and the events that it rejected, in order.
  std::optional<time_point> paused_since;
  std::vector<event> rejected;

  [[nodiscard]] bool is_paused() const { return paused_since.has_value(); }
  [[nodiscard]] sequence* find_pending();  // nullptr: none
};

inline bool sequence::is_scoring() const {
  return scores && scores->next() < of->n_prompt;
}

// The job of a request that was checked; its first choice has the prompt. `r` is not usable then.
result<std::unique_ptr<job>> make_job(request&& r, const tokenizer::tokenizer& tokens,
                                      uint32_t n_vocab, uint32_t n_context, time_point now);

}  // namespace bitnet::schedule
