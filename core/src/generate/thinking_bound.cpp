#include "generate/thinking_bound.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace bitnet::generate {
namespace {

constexpr std::string_view blanks_before = " \t\r\n";  // before a tag

// For each number of matching bytes: how many still match if the next byte does not. That is the
// longest beginning of the tag that these bytes end with.
std::vector<std::size_t> fallback_of(std::string_view tag) {
  std::vector<std::size_t> out(tag.size() + 1, 0);
  for (std::size_t i = 1, k = 0; i < tag.size(); ++i) {
    while (k > 0 && tag[i] != tag[k]) k = out[k];
    if (tag[i] == tag[k]) ++k;
    out[i + 1] = k;
  }
  return out;
}

bool may_come(int32_t id, std::span<const uint64_t> allowed) {
  const auto at = static_cast<std::size_t>(id);
  return allowed.empty() || ((allowed[at / 64] >> (at % 64)) & 1) != 0;
}

}  // namespace

result<thinking_bound> thinking_bound::make(const tokenizer::tokenizer& tokens, thinking_options o,
                                            bool by_text) {
  for (const std::string& tag : {o.begins, o.ends})
    if (tag.size() > most_thinking_tag)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("a tag of the thinking has {} bytes; at most {} are possible",
                              tag.size(), most_thinking_tag));
  thinking_bound out(tokens, std::move(o), by_text);
  auto whole = out.tokens_of(out.options_.ends);
  if (!whole)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("the vocabulary cannot write '{}', which ends the thinking; leave its "
                            "number of tokens without a bound",
                            out.options_.ends));
  out.whole_ = *std::move(whole);
  return out;
}

thinking_bound::thinking_bound(const tokenizer::tokenizer& tokens, thinking_options o, bool by_text)
    : tokens_(&tokens),
      options_(std::move(o)),
      by_text_(by_text),
      fallback_(fallback_of(options_.ends)),
      now_(options_.is_open          ? state::thinking
           : options_.begins.empty() ? state::over
                                     : state::start) {}

// The tokens of a text, behind at most one blank, which vocabularies put before words.
std::optional<std::vector<int32_t>> thinking_bound::tokens_of(std::string_view text) const {
  auto ids = tokens_->encode(text, {.parse_special = !by_text_});
  if (!ids || ids->empty()) return std::nullopt;
  std::string written;
  for (const int32_t id : *ids) written += tokens_->piece(id, true, false).value_or("");
  const bool is_whole = text == options_.ends;
  if (written == text || (is_whole && written.substr(0, 1) == " " && written.substr(1) == text))
    return *std::move(ids);
  return std::nullopt;
}

std::optional<int32_t> thinking_bound::forced(std::span<const uint64_t> allowed) {
  is_forcing_ = false;
  if (now_ != state::thinking || n_ < options_.most_tokens) return std::nullopt;
  if (coming_.empty()) plan();
  const int32_t id = coming_.back();
  if (!may_come(id, allowed)) {
    coming_.clear();
    return std::nullopt;
  }
  coming_.pop_back();
  is_forcing_ = true;
  return id;
}

void thinking_bound::plan() {
  const auto rest =
      matched_ == 0 ? std::nullopt : tokens_of(std::string_view(options_.ends).substr(matched_));
  coming_ = rest.value_or(whole_);
  std::ranges::reverse(coming_);
}

void thinking_bound::take(std::string_view piece) {
  if (now_ == state::thinking && !is_forcing_) ++n_;
  for (const char c : piece) {
    if (now_ == state::start)
      take_start(c);
    else if (now_ == state::thinking)
      take_thinking(c);
  }
  // Otherwise a tag that came as tokens without a text would be forced for ever.
  if (is_forcing_ && coming_.empty()) now_ = state::over;
}

void thinking_bound::take_start(char c) {
  if (word_.empty() && blanks_before.find(c) != std::string_view::npos) return;
  word_ += c;
  if (word_ == options_.begins)
    now_ = state::thinking;
  else if (!options_.begins.starts_with(word_))
    now_ = state::over;
}

void thinking_bound::take_thinking(char c) {
  const std::string& tag = options_.ends;
  while (matched_ > 0 && tag[matched_] != c) matched_ = fallback_[matched_];
  if (tag[matched_] == c) ++matched_;
  if (matched_ == tag.size()) now_ = state::over;
}

}  // namespace bitnet::generate
