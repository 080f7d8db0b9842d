#include "generate/generate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "bitnet/bitnet.h"
#include "generate/text_stream.hpp"

namespace bitnet::generate {
namespace {

using clock = std::chrono::steady_clock;

uint64_t ns_since(clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
}

// Of all logits, one in so many are the largest at most; for more a backend would gain nothing.
constexpr uint64_t few_logits = 8;

bool asked_to_stop(const options& o) {
  return o.cancelled != nullptr && o.cancelled->load(std::memory_order_relaxed);
}

// All stop strings together, for which a run keeps some 30 times as much; one has a word or a line.
constexpr std::size_t most_stop_bytes = std::size_t{1} << 20;

result<void> check(const options& o) {
  std::size_t bytes = 0;
  for (const std::string& one : o.stop_strings) bytes += one.size();
  if (bytes <= most_stop_bytes) return {};
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("the stop strings have {} bytes together; at most {} are possible: give "
                          "fewer or shorter ones",
                          bytes, most_stop_bytes));
}

// Ids that must not be sampled when the end of generation is ignored.
void forbid_end(sampling::parameters& p, const tokenizer::tokenizer& tokens) {
  constexpr float never = -1e30F;
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (tokens.ends_generation(static_cast<int32_t>(id)))
      p.logit_bias.emplace_back(static_cast<int32_t>(id), never);
}

// What ends a text: it may come where a grammar lets the text end.
std::vector<int32_t> ends_of(const tokenizer::tokenizer& tokens, const options& o) {
  std::vector<int32_t> out;
  for (const int32_t id : o.stop_tokens)
    if (id >= 0 && static_cast<uint32_t>(id) < tokens.size()) out.push_back(id);
  for (uint32_t id = 0; id < tokens.size() && !o.ignore_end; ++id)
    if (tokens.ends_generation(static_cast<int32_t>(id))) out.push_back(static_cast<int32_t>(id));
  return out;
}

// What tells the parts of an answer apart is text also where a vocabulary has it as control tokens,
// which have none: thinking that nobody saw end would swallow the answer.
// docs/reference/models.md#answers
std::vector<int32_t> find_tags(const tokenizer::tokenizer& tokens) {
  std::vector<int32_t> out;
  for (const char* tag : {"<think>", "</think>", "<tool_call>", "</tool_call>"})
    if (const auto id = tokens.find(tag)) out.push_back(*id);
  return out;
}

// One run, token by token. The first part that finds an end says so in stop_reason.
class generation {
 public:
  generation(session::session& s, const options& o, sampling::sampler sampler)
      : session_(s),
        options_(o),
        tokens_(s.owner().model().tokens()),
        tags_(find_tags(tokens_)),
        sampler_(std::move(sampler)),
        stream_(o.stop_strings),
        logits_(s.owner().model().shape().n_vocab) {
    out_.tokens.reserve(std::min<uint64_t>(static_cast<uint32_t>(o.max_tokens), s.capacity()));
    for (const int32_t id : s.tokens()) sampler_.accept(id);
    if (o.grammar != nullptr) o.grammar->begin(ends_of(tokens_, o));
  }

  result<outcome> run(std::span<const int32_t> prompt) {
    if (auto ok = read(prompt); !ok) return std::unexpected(std::move(ok.error()));
    if (out_.stop_reason != 0) return std::move(out_);
    const auto start = clock::now();
    while (out_.stop_reason == 0)
      if (auto ok = next(); !ok) return std::unexpected(std::move(ok.error()));
    out_.generate_ns = ns_since(start);
    static_cast<void>(show(stream_.finish()));
    return std::move(out_);
  }

 private:
  result<void> read(std::span<const int32_t> prompt) {
    for (const int32_t id : prompt) sampler_.accept(id);
    const auto start = clock::now();
    const uint64_t before = session_.tokens().size();
    auto ok = evaluate(prompt);
    if (!ok || out_.stop_reason == BITNET_STOP_CANCELLED) return ok;
    out_.n_prompt = session_.tokens().size() - before;
    out_.prompt_ns = ns_since(start);
    return {};
  }

  // Samples a token and shows it; evaluates it unless something ends the run before.
  result<void> next() {
    if (is_full()) return {};
    auto id = largest_.ids.empty()
                  ? sampler_.sample(logits_, allowed_)
                  : sampler_.sample_listed(largest_.ids, largest_.logits, allowed_);
    if (!id) return std::unexpected(std::move(id.error()));
    sampler_.accept(*id);
    if (auto ok = session_.append(*id); !ok) return ok;
    out_.tokens.push_back(*id);
    if (is_end(*id)) return {};
    const bool is_tag = std::ranges::find(tags_, *id) != tags_.end();
    auto piece = tokens_.piece(*id, is_tag, session_.tokens().size() == 1);
    if (!piece) return std::unexpected(std::move(piece.error()));
    if (options_.grammar != nullptr)
      if (auto ok = options_.grammar->accept(*piece); !ok) return ok;
    const bool go_on = show(stream_.push(*piece));
    if (const auto stop = stream_.stopped_by()) return end(BITNET_STOP_STRING, *stop);
    if (!go_on) return end(BITNET_STOP_CANCELLED);
    if (is_long_enough()) return {};  // the last token may wait to be evaluated
    return evaluate({});
  }

  // Asks the grammar which tokens may come next; false where that ends the run: none, behind a text
  // that is whole.
  result<bool> ask_grammar() {
    auto allowed = options_.grammar->allowed();
    if (!allowed) return std::unexpected(std::move(allowed.error()));
    allowed_ = *allowed;
    n_allowed_ = 0;
    for (const uint64_t word : allowed_) n_allowed_ += static_cast<uint32_t>(std::popcount(word));
    if (n_allowed_ > 0) return true;
    if (!options_.grammar->is_complete())
      return fail(
          BITNET_UNSUPPORTED,
          "no token of the vocabulary goes on as the grammar asks, whose text is not whole; "
          "the vocabulary may lack its characters, or rules lie too deep in each other");
    out_.stop_reason = BITNET_STOP_GRAMMAR;
    return false;
  }

  // Of the largest logits, no more than the tokens that may not come are lost to a grammar.
  [[nodiscard]] uint32_t needed_logits() const {
    const uint32_t needed = sampler_.needed();
    if (options_.grammar == nullptr || needed == 0) return needed;
    const uint64_t n_vocab = logits_.size();
    const uint64_t n = needed + (n_vocab - n_allowed_);
    return n <= n_vocab / few_logits ? static_cast<uint32_t>(n) : 0;
  }

  // Being cancelled is an end, not a failure.
  result<void> evaluate(std::span<const int32_t> ids) {
    if (options_.grammar != nullptr) {
      auto may_go_on = ask_grammar();
      if (!may_go_on) return std::unexpected(std::move(may_go_on.error()));
      if (!*may_go_on && ids.empty()) return {};  // the last token may wait to be evaluated
    }
    auto ok = session_.eval_top(ids, needed_logits(), logits_, largest_);
    if (ok || ok.error().status != BITNET_CANCELLED) return ok;
    return end(BITNET_STOP_CANCELLED);
  }

  // Whether no token may follow, whatever it would be.
  bool is_full() {
    if (is_long_enough())
      out_.stop_reason = BITNET_STOP_LENGTH;
    else if (asked_to_stop(options_))
      out_.stop_reason = BITNET_STOP_CANCELLED;
    else if (session_.tokens().size() >= session_.capacity())
      out_.stop_reason = BITNET_STOP_CONTEXT;
    return out_.stop_reason != 0;
  }
  [[nodiscard]] bool is_long_enough() const {
    return options_.max_tokens >= 0 &&
           out_.tokens.size() >= static_cast<uint64_t>(options_.max_tokens);
  }

  // Whether the token itself ends the text.
  bool is_end(int32_t id) {
    const auto& stops = options_.stop_tokens;
    if (const auto at = std::ranges::find(stops, id); at != stops.end()) {
      out_.stop_reason = BITNET_STOP_TOKEN;
      out_.stop_index = static_cast<uint32_t>(at - stops.begin());
    } else if (!options_.ignore_end && tokens_.ends_generation(id)) {
      out_.stop_reason = BITNET_STOP_EOS;
    }
    return out_.stop_reason != 0;
  }

  result<void> end(uint32_t reason, std::size_t index = BITNET_NONE) {
    out_.stop_reason = reason;
    out_.stop_index = static_cast<uint32_t>(index);
    return {};
  }

  [[nodiscard]] bool show(const std::string& text) const {
    return text.empty() || !options_.text || options_.text(text);
  }

  session::session& session_;
  const options& options_;
  const tokenizer::tokenizer& tokens_;
  const std::vector<int32_t> tags_;
  sampling::sampler sampler_;
  text_stream stream_;
  std::vector<float> logits_;
  session::listed_logits largest_;     // in their place, unless it is empty
  std::span<const uint64_t> allowed_;  // by the grammar, behind the last token; empty: all
  uint32_t n_allowed_ = 0;
  outcome out_;
};

}  // namespace

std::shared_ptr<const grammar::prefix_tree> text_tokens(const tokenizer::tokenizer& of) {
  return std::make_shared<const grammar::prefix_tree>(of.size(), [&](int32_t id) -> std::string {
    if (of.ends_generation(id)) return {};
    return of.piece(id, false, false).value_or("");
  });
}

result<outcome> run(session::session& s, std::span<const int32_t> prompt, const options& o) {
  if (auto ok = check(o); !ok) return std::unexpected(std::move(ok.error()));
  sampling::parameters parameters = o.sampling;
  if (o.ignore_end) forbid_end(parameters, s.owner().model().tokens());
  auto sampler = sampling::sampler::make(parameters, s.owner().model().shape().n_vocab);
  if (!sampler) return std::unexpected(std::move(sampler.error()));
  return generation(s, o, *std::move(sampler)).run(prompt);
}

}  // namespace bitnet::generate
