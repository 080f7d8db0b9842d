#include "sequence/generating.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::sequence {
namespace {

using clock = std::chrono::steady_clock;

uint64_t ns_since(clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
}

// One run, token by token.
class text_run {
 public:
  text_run(session& s, generate::generation g, std::function<bool(std::string_view)> text,
           const std::atomic<bool>* cancelled)
      : session_(s),
        generation_(std::move(g)),
        text_(std::move(text)),
        cancelled_(cancelled),
        logits_(s.owner().model().shape().n_vocab) {}

  result<generated> from(std::span<const int32_t> prompt) {
    auto may_go_on = read(prompt);
    if (!may_go_on) return std::unexpected(std::move(may_go_on.error()));
    if (*may_go_on) {
      const auto start = clock::now();
      while (!is_over())
        if (auto ok = next(); !ok) return std::unexpected(std::move(ok.error()));
      out_.generate_ns = ns_since(start);
      static_cast<void>(show(generation_.finish()));
    }
    out_.outcome = generation_.so_far();
    if (step_cancelled_) out_.outcome.stop_reason = BITNET_STOP_CANCELLED;
    return std::move(out_);
  }

 private:
  // False where no token may follow because it was cancelled, or by the grammar. A prompt is
  // evaluated whatever is known before to end the text behind it.
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

  // Samples a token and shows it; evaluates it unless something ends the run before: the last token
  // may wait to be evaluated.
  result<void> next() {
    const uint64_t n = generation_.so_far().tokens.size();
    const auto id = generation_.take({logits_, largest_.ids, largest_.logits});
    const auto& last = generation_.last();
    // The session has a token that came also where the grammar fails behind it.
    if (generation_.so_far().tokens.size() > n)
      if (auto ok = session_.append(last.token); !ok) return ok;
    if (!id) return std::unexpected(id.error());
    if (!show(last.text)) generation_.cancel();
    const auto wish = generation_.wants();
    if (!wish) return std::unexpected(wish.error());
    return wish->more ? evaluate({}, wish->top_logits) : result<void>{};
  }

  // Being cancelled is an end, not a failure.
  result<void> evaluate(std::span<const int32_t> ids, uint32_t top) {
    auto ok = session_.eval_top(ids, top, logits_, largest_);
    if (ok || ok.error().status != BITNET_CANCELLED) return ok;
    step_cancelled_ = true;
    generation_.cancel();
    return {};
  }

  // Whether no token may follow, whatever it would be.
  bool is_over() {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) generation_.cancel();
    if (session_.tokens().size() >= session_.capacity()) generation_.end(BITNET_STOP_CONTEXT);
    return generation_.ended();
  }

  [[nodiscard]] bool show(const std::string& text) const {
    return text.empty() || !text_ || text_(text);
  }

  session& session_;
  generate::generation generation_;
  const std::function<bool(std::string_view)> text_;
  const std::atomic<bool>* cancelled_;
  std::vector<float> logits_;
  runner::listed_logits largest_;  // in their place, unless it is empty
  bool step_cancelled_ = false;    // within a step, which then is as if it had not begun
  generated out_;
};

}  // namespace

result<generated> generate_text(session& s, std::span<const int32_t> prompt, generate::options o,
                                const std::atomic<bool>* cancelled) {
  // The run calls it once the session has the token: the callback may ask for the session's length.
  auto text = std::exchange(o.text, nullptr);
  std::vector<int32_t> history(s.tokens().begin(), s.tokens().end());
  history.insert(history.end(), prompt.begin(), prompt.end());
  const auto& model = s.owner().model();
  auto g = generate::generation::make(model.tokens(), model.shape().n_vocab, std::move(o), history);
  if (!g) return std::unexpected(std::move(g.error()));
  return text_run(s, *std::move(g), std::move(text), cancelled).from(prompt);
}

}  // namespace bitnet::sequence
