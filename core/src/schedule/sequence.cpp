#include "schedule/sequence.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::schedule {

void sequence::note_time(time_point now) {
  const nanoseconds went_by = now - std::exchange(since, now);
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(went_by.count(), 0));
  if (at == phase::waiting) {
    waited += went_by;
    used.queue_ns += ns;
  } else if (at == phase::running) {
    (has_begun() ? used.generate_ns : used.prompt_ns) += ns;
  }
}

sequence* job::find_pending() {
  const auto at = std::ranges::find(choices, phase::pending, &sequence::at);
  return at != choices.end() ? &*at : nullptr;
}

result<std::unique_ptr<job>> make_job(request&& r, const tokenizer::tokenizer& tokens,
                                      uint32_t n_vocab, uint32_t n_context, time_point now) {
  auto made = std::make_unique<job>();
  made->client = r.client;
  made->priority = r.priority;
  made->deadline = r.deadline;
  made->events = std::move(r.events);
  made->observer = std::move(r.observer);
  const uint64_t n_asked = r.prompt.size();
  if (r.embeds == generate::pooling::cls) r.prompt.resize(1);  // it depends on no other token
  made->n_prompt = r.prompt.size();
  made->max_tokens = r.generation.max_tokens;
  made->grammars = std::move(r.grammars);
  made->live = r.n;
  if (r.n_best != 0 && r.n_best < r.n) {
    made->best.emplace(r.n_best, r.n, r.generation.logprobs);
    r.generation.logprobs = true;
  }
  made->choices.reserve(r.n);
  for (uint32_t i = 0; i < r.n; ++i) {
    generate::options o = r.generation;
    o.sampling.seed = r.seeds.empty() ? o.sampling.seed + i : r.seeds[i];
    o.grammar = made->grammars.empty() ? nullptr : made->grammars[i].get();
    o.text = nullptr;
    auto g = generate::generation::make(tokens, n_vocab, std::move(o), r.prompt,
                                        n_context - r.prompt.size());
    if (!g) return std::unexpected(std::move(g.error()));
    sequence& s = made->choices.emplace_back(*made, i, *std::move(g));
    if (r.embeds) s.rows.emplace(*r.embeds);
    if (r.make_drafter)
      s.ahead = std::make_unique<speculate::speculation>(r.make_drafter(), r.drafts);
    s.used.prompt_tokens = n_asked;
    s.since = now;
  }
  if (r.prompt_logprobs) made->choices.front().scores.emplace(*r.prompt_logprobs);
  made->choices.front().tokens = std::move(r.prompt);
  made->choices.front().at = phase::waiting;
  return made;
}

}  // namespace bitnet::schedule
