// Rows of sequences for reports: copied in each tick, so that a report waits for no step.

#include <algorithm>

#include "schedule/contents.hpp"

namespace bitnet::schedule {
namespace {

sequence_row row_of(const sequence& s, uint64_t n_context) {
  const job& j = *s.of;
  sequence_row out;
  out.slot = s.slot;
  out.choice = s.choice;
  out.request = j.id;
  out.speculates = s.ahead != nullptr;
  out.prompt_tokens = j.n_prompt;
  out.known_tokens = std::min<uint64_t>(s.used.cached_tokens, j.n_prompt);
  const uint64_t there = std::min<uint64_t>(s.computed, j.n_prompt);
  out.computed_tokens = there - std::min(there, out.known_tokens);
  out.generated_tokens = s.generation.so_far().tokens.size();
  out.remaining_tokens = n_context - std::min<uint64_t>(n_context, s.tokens.size());
  if (j.max_tokens >= 0) {
    const auto most = static_cast<uint64_t>(j.max_tokens);
    out.remaining_tokens =
        std::min(out.remaining_tokens, most - std::min(most, out.generated_tokens));
  }
  out.does = j.is_paused()             ? activity::paused
             : s.at != phase::running  ? activity::waiting
             : s.computed < j.n_prompt ? activity::prompt
                                       : activity::decoding;
  return out;
}

}  // namespace

void scheduler::contents::list_sequences() {
  std::vector<sequence_row>& rows = counts_.sequences;
  rows.clear();
  if (!memory_) return;
  const uint64_t n_context = memory_->most().n_context;
  for (const sequence* s : running_) rows.push_back(row_of(*s, n_context));
  const std::size_t n_waiting = std::min(queue_.all().size(), most_waiting_rows);
  for (std::size_t i = 0; i < n_waiting; ++i)
    rows.push_back(row_of(*queue_.all()[i].who, n_context));
}

}  // namespace bitnet::schedule
