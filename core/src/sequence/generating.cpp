#include "sequence/generating.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "speculate/verification.hpp"

namespace bitnet::sequence {
namespace {

using clock = std::chrono::steady_clock;

uint64_t ns_since(clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
}

// Generates one text, token by token.
class text_run {
 public:
  // The settings of a run beside its generation.
  struct setting {
    std::function<bool(std::string_view)> text;
    const std::atomic<bool>* cancelled;
    speculate::speculation* ahead;
    int64_t max_tokens;
    bool has_grammar;
  };
  text_run(session& s, generate::generation g, setting how)
      : session_(s),
        generation_(std::move(g)),
        how_(std::move(how)),
        logits_(s.owner().model().shape().n_vocab) {}

  result<generated> from(std::span<const int32_t> prompt) {
    auto may_go_on = read(prompt);
    if (!may_go_on) return std::unexpected(std::move(may_go_on.error()));
    if (*may_go_on) {
      const auto start = clock::now();
      while (!is_over())
        if (auto ok = next(); !ok) return std::unexpected(std::move(ok.error()));
      note_step();
      out_.generate_ns = ns_since(start);
      static_cast<void>(show(generation_.finish()));
    }
    out_.outcome = generation_.so_far();
    if (step_cancelled_) out_.outcome.stop_reason = BITNET_STOP_CANCELLED;
    return std::move(out_);
  }

 private:
  // Evaluates the prompt, even if it is already known that no text follows. Returns false if no
  // token may follow, because of a cancel or the grammar.
  result<bool> read(std::span<const int32_t> prompt) {
    const auto start = clock::now();
    const uint64_t before = session_.tokens().size();
    const auto wish = generation_.wants();
    if (!wish) return std::unexpected(wish.error());
    const bool by_grammar = generation_.so_far().stop_reason == BITNET_STOP_GRAMMAR;
    if (!by_grammar || !prompt.empty())
      if (auto ok = evaluate(prompt, wish->top_logits); !ok)
        return std::unexpected(std::move(ok.error()));
    if (step_cancelled_) return false;
    out_.n_prompt = session_.tokens().size() - before;
    out_.prompt_ns = ns_since(start);
    return !by_grammar;
  }

  // Samples a token and shows it. Evaluates it, unless the run ends before or a step with a draft
  // has done so: the last token may wait for evaluation.
  result<void> next() {
    const uint64_t n = generation_.so_far().tokens.size();
    const auto id = sample();
    const auto& last = generation_.last();
    // The session gets a sampled token even if the grammar fails after it.
    if (generation_.so_far().tokens.size() > n)
      if (auto ok = session_.append(last.token); !ok) return ok;
    if (!id) return std::unexpected(id.error());
    if (!show(last.text)) generation_.cancel();
    const auto wish = generation_.wants();
    if (!wish) return std::unexpected(wish.error());
    if (!wish->more || verified_.goes_on(*id, *wish)) return {};
    note_step();
    return go_on(wish->top_logits);
  }

  result<int32_t> sample() {
    const trace::sampling_span sampling(session_.recorder());
    return generation_.take(rows_[verified_.accepted()]);
  }

  // Evaluates the token that waits, with a draft behind it if there is one.
  result<void> go_on(uint32_t top) {
    if (how_.ahead == nullptr) return evaluate({}, top);
    if (!plain_.is_due()) how_.ahead->propose(session_.tokens(), room_ahead());
    const auto draft = how_.ahead->draft();
    const auto start = clock::now();
    auto ok = draft.empty() ? evaluate({}, top) : evaluate_ahead(draft, top);
    step_ns_ = static_cast<double>(ns_since(start));
    has_stepped_ = ok.has_value() && !step_cancelled_;
    return ok;
  }

  // Reports the last step to the speculation.
  void note_step() {
    if (how_.ahead == nullptr || !std::exchange(has_stepped_, false)) return;
    if (how_.ahead->draft().empty()) {
      plain_.learn(step_ns_);
      how_.ahead->note_plain();
    } else {
      plain_.note_drafted();
      how_.ahead->begin_verification();
      for (uint32_t i = 0; i < verified_.accepted(); ++i) how_.ahead->note_accepted();
      static_cast<void>(how_.ahead->end_verification(step_ns_, plain_.ns()));
    }
    verified_ = {};
  }

  // The last token needs no row behind it.
  [[nodiscard]] uint32_t room_ahead() const {
    uint64_t room = session_.room_ahead();
    if (how_.max_tokens >= 0) {
      const auto left = static_cast<uint64_t>(how_.max_tokens) - generation_.so_far().tokens.size();
      room = std::min(room, left - 1);
    }
    return static_cast<uint32_t>(room);
  }

  result<void> evaluate(std::span<const int32_t> ids, uint32_t top) {
    auto ok = session_.eval_top(ids, top, logits_, largest_);
    rows_.assign(1, {logits_, largest_.ids, largest_.logits});
    return unless_cancelled(std::move(ok));
  }

  result<void> evaluate_ahead(std::span<const int32_t> draft, uint32_t top) {
    top = speculate::top_logits_of(top, draft.size(), how_.has_grammar);
    auto ok = session_.eval_ahead(draft, top, rows_);
    verified_ = {draft, top};
    return unless_cancelled(std::move(ok));
  }

  // A cancel is an end, not a failure.
  result<void> unless_cancelled(result<void> ok) {
    if (ok || ok.error().status != BITNET_CANCELLED) return ok;
    step_cancelled_ = true;
    generation_.cancel();
    return {};
  }

  // Returns whether no token may follow, whatever it is.
  bool is_over() {
    const std::atomic<bool>* cancelled = how_.cancelled;
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) generation_.cancel();
    if (session_.tokens().size() >= session_.capacity()) generation_.end(BITNET_STOP_CONTEXT);
    return generation_.ended();
  }

  [[nodiscard]] bool show(const std::string& text) const {
    return text.empty() || !how_.text || how_.text(text);
  }

  session& session_;
  generate::generation generation_;
  const setting how_;
  std::vector<float> logits_;
  runner::listed_logits largest_;           // used in place of logits_, unless it is empty
  std::vector<generate::logits_row> rows_;  // of the last step
  speculate::verification verified_;
  bool step_cancelled_ = false;  // within a step, which then has no effect
  // The last step behind a token, until it is noted.
  bool has_stepped_ = false;
  double step_ns_ = 0;
  speculate::plain_time plain_;
  generated out_;
};

}  // namespace

result<generated> generate_text(session& s, std::span<const int32_t> prompt, generate::options o,
                                const std::atomic<bool>* cancelled, speculate::speculation* ahead) {
  // The run calls it after the session has the token: the callback may ask for the session's
  // length.
  auto text = std::exchange(o.text, nullptr);
  std::vector<int32_t> history(s.tokens().begin(), s.tokens().end());
  history.insert(history.end(), prompt.begin(), prompt.end());
  const auto& model = s.owner().model();
  text_run::setting how{.text = std::move(text),
                        .cancelled = cancelled,
                        .ahead = ahead,
                        .max_tokens = o.max_tokens,
                        .has_grammar = o.grammar != nullptr};
  auto g = generate::generation::make(model.tokens(), model.shape().n_vocab, std::move(o), history);
  if (!g) return std::unexpected(std::move(g.error()));
  return text_run(s, *std::move(g), std::move(how)).from(prompt);
}

}  // namespace bitnet::sequence
