#include "generate/generation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "answer/dialect.hpp"
#include "sampling/candidate.hpp"

namespace bitnet::generate {
namespace {

// If more than one of this many logits is needed, all are asked for: else a backend gains nothing.
constexpr uint64_t few_logits = 8;

// Bytes of all stop strings together; a run takes about 30 times as much memory for them.
constexpr std::size_t most_stop_bytes = std::size_t{1} << 20;

// Tokens for which room is reserved at the begin.
constexpr uint64_t first_tokens = 4096;

result<void> check(const options& o) {
  if (o.n_logprobs > most_logprobs)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} log probabilities are asked for beside each token; at most {} are "
                            "possible",
                            o.n_logprobs, most_logprobs));
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
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (tokens.ends_generation(static_cast<int32_t>(id)))
      p.logit_bias.emplace_back(static_cast<int32_t>(id), sampling::never);
}

// The tokens that end a text: they may come where a grammar lets the text end.
std::vector<int32_t> ends_of(const tokenizer::tokenizer& tokens, const options& o) {
  std::vector<int32_t> out;
  for (const int32_t id : o.stop_tokens)
    if (id >= 0 && static_cast<uint32_t>(id) < tokens.size()) out.push_back(id);
  for (uint32_t id = 0; id < tokens.size() && !o.ignore_end; ++id)
    if (tokens.ends_generation(static_cast<int32_t>(id))) out.push_back(static_cast<int32_t>(id));
  return out;
}

// Tags between the parts of an answer are text, even if a vocabulary has them as control tokens,
// which have no text: if the end of the thinking were missed, the answer would be lost in it.
// docs/reference/models.md#answers
std::vector<int32_t> find_tags(const tokenizer::tokenizer& tokens,
                               const thinking_options& thinking) {
  std::vector<int32_t> out;
  std::vector<std::string_view> tags = answer::answer_tags();
  if (thinking.is_bound()) tags.insert(tags.end(), {thinking.begins, thinking.ends});
  for (const std::string_view tag : tags)
    if (const auto id = tokens.find(tag)) out.push_back(*id);
  return out;
}

}  // namespace

result<generation> generation::make(const tokenizer::tokenizer& tokens, uint32_t n_vocab, options o,
                                    std::span<const int32_t> history, uint64_t room) {
  if (auto ok = check(o); !ok) return std::unexpected(std::move(ok.error()));
  if (o.ignore_end) forbid_end(o.sampling, tokens);
  auto sampler = sampling::sampler::make(o.sampling, n_vocab);
  if (!sampler) return std::unexpected(std::move(sampler.error()));
  generation out(tokens, n_vocab, std::move(o), *std::move(sampler), history, room);
  if (auto ok = out.bound_thinking(); !ok) return std::unexpected(std::move(ok.error()));
  return out;
}

generation::generation(const tokenizer::tokenizer& tokens, uint32_t n_vocab, options o,
                       sampling::sampler sampler, std::span<const int32_t> history, uint64_t room)
    : options_(std::move(o)),
      tokens_(&tokens),
      tags_(find_tags(tokens, options_.thinking)),
      sampler_(std::move(sampler)),
      stream_(options_.stop_strings),
      n_vocab_(n_vocab),
      begins_(history.empty()),
      room_(room) {
  const auto most = static_cast<uint64_t>(options_.max_tokens);  // -1: no bound
  out_.tokens.reserve(std::min({most, room, first_tokens}));
  for (const int32_t id : history) sampler_.accept(id);
  if (options_.grammar != nullptr) options_.grammar->begin(ends_of(tokens, options_));
}

result<void> generation::bound_thinking() {
  if (!options_.thinking.is_bound()) return {};
  auto bound = thinking_bound::make(*tokens_, options_.thinking, options_.grammar != nullptr);
  if (!bound) return std::unexpected(std::move(bound.error()));
  thinking_ = *std::move(bound);
  return {};
}

result<generation::wish> generation::wants() {
  if (!ended() && !wished_) {
    if (!out_.tokens.empty() && is_long_enough()) end(BITNET_STOP_LENGTH);
    if (!ended() && options_.grammar != nullptr)
      if (auto ok = ask_grammar(); !ok) return std::unexpected(std::move(ok.error()));
    if (!ended() && is_long_enough()) end(BITNET_STOP_LENGTH);
    if (!ended() && out_.tokens.size() >= room_) end(BITNET_STOP_CONTEXT);
    wished_ = !ended();
  }
  return wish{!ended(), needed_logits()};
}

result<int32_t> generation::take(const logits_row& r) {
  if (!wished_) return fail(BITNET_INTERNAL, "a row of logits came that no generation wished for");
  const auto id = sample(r);
  if (!id) return id;
  wished_ = false;
  sampler_.accept(*id);
  out_.tokens.push_back(*id);
  last_.token = *id;
  last_.text.clear();
  last_.is_end = find_end(*id);
  if (last_.is_end) return id;
  if (auto ok = push_text(*id); !ok) return std::unexpected(std::move(ok.error()));
  return id;
}

void generation::end(uint32_t reason) {
  if (ended()) return;
  out_.stop_reason = reason;
  wished_ = false;
}

std::string generation::finish() {
  if (!ended()) return {};
  std::string rest = stream_.finish();
  static_cast<void>(show(rest));
  return rest;
}

result<int32_t> generation::sample(const logits_row& r) {
  if (options_.logprobs && !r.ids.empty())
    return fail(BITNET_INTERNAL,
                "log probabilities need all logits, but a row has only the largest");
  const auto forced = thinking_ ? thinking_->forced(allowed_) : std::nullopt;
  const auto id = forced          ? result<int32_t>(*forced)
                  : r.ids.empty() ? sampler_.sample(r.logits, allowed_)
                                  : sampler_.sample_listed(r.ids, r.listed, allowed_);
  if (id && options_.logprobs) find_logprobs(r.logits, *id, options_.n_logprobs, last_.logprobs);
  return id;
}

// Asks which tokens may come next. If none may follow a complete text, the generation ends.
result<void> generation::ask_grammar() {
  auto allowed = options_.grammar->allowed();
  if (!allowed) return std::unexpected(std::move(allowed.error()));
  allowed_ = *allowed;
  n_allowed_ = 0;
  for (const uint64_t word : allowed_) n_allowed_ += static_cast<uint32_t>(std::popcount(word));
  if (n_allowed_ > 0) return {};
  if (!options_.grammar->is_complete())
    return fail(BITNET_UNSUPPORTED,
                "no token of the vocabulary goes on as the grammar asks, whose text is not whole; "
                "the vocabulary may lack its characters, or rules lie too deep in each other");
  end(BITNET_STOP_GRAMMAR);
  return {};
}

// A grammar forbids at most n_vocab_ - n_allowed_ of the largest logits: so many more are needed.
uint32_t generation::needed_logits() const {
  if (options_.logprobs) return 0;
  const uint32_t needed = sampler_.needed();
  if (options_.grammar == nullptr || needed == 0) return needed;
  const uint64_t n = needed + (uint64_t{n_vocab_} - n_allowed_);
  return n <= n_vocab_ / few_logits ? static_cast<uint32_t>(n) : 0;
}

bool generation::is_long_enough() const {
  return options_.max_tokens >= 0 &&
         out_.tokens.size() >= static_cast<uint64_t>(options_.max_tokens);
}

// Whether the token itself ends the text.
bool generation::find_end(int32_t id) {
  const auto& stops = options_.stop_tokens;
  if (const auto at = std::ranges::find(stops, id); at != stops.end()) {
    end(BITNET_STOP_TOKEN);
    out_.stop_index = static_cast<uint32_t>(at - stops.begin());
  } else if (!options_.ignore_end && tokens_->ends_generation(id)) {
    end(BITNET_STOP_EOS);
  }
  return ended();
}

result<void> generation::push_text(int32_t id) {
  const bool is_tag = std::ranges::find(tags_, id) != tags_.end();
  const bool is_first = begins_ && out_.tokens.size() == 1;
  auto piece = tokens_->piece(id, is_tag, is_first);
  if (!piece) return std::unexpected(std::move(piece.error()));
  if (options_.grammar != nullptr)
    if (auto ok = options_.grammar->accept(*piece); !ok) return ok;
  if (thinking_) thinking_->take(*piece);
  last_.text = stream_.push(*piece);
  const bool go_on = show(last_.text);
  if (const auto stop = stream_.stopped_by()) {
    end(BITNET_STOP_STRING);
    out_.stop_index = static_cast<uint32_t>(*stop);
  } else if (!go_on) {
    cancel();
  }
  return {};
}

bool generation::show(std::string_view text) const {
  return text.empty() || !options_.text || options_.text(text);
}

}  // namespace bitnet::generate
