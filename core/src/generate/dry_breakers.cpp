#include "generate/dry_breakers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace bitnet::generate {
namespace {

constexpr std::size_t most_bytes = 40, most_tail = 20;

result<void> check(const std::vector<std::string>& texts) {
  if (texts.size() > most_breakers)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("dry_breakers has {} texts; at most {} are possible", texts.size(),
                            most_breakers));
  for (const std::string& text : texts)
    if (text.empty() || text.size() > most_bytes)
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("a text of dry_breakers has {} bytes; expected 1 to {}", text.size(),
                              most_bytes));
  return {};
}

// The tokens of a text; nullopt if it has none, or begins within a character.
std::optional<std::vector<int32_t>> tail_of(const tokenizer::tokenizer& tokens,
                                            std::string_view text) {
  constexpr unsigned continuation = 0x80, mask = 0xC0;
  if ((static_cast<unsigned char>(text.front()) & mask) == continuation) return std::nullopt;
  auto ids = tokens.encode(text, {});
  if (!ids || ids->empty()) return std::nullopt;
  ids->resize(std::min(ids->size(), most_tail));
  return *std::move(ids);
}

// A text, and for each number of its bytes the tokens of the rest, made when first needed.
struct breaker {
  std::string_view text;
  std::vector<std::optional<std::vector<int32_t>>> tails;
};

void add_token(int32_t id, std::string_view piece, const std::vector<breaker>& all,
               sampling::breakers& out) {
  for (const breaker& b : all) {
    if (piece.find(b.text) != std::string_view::npos) {
      out.add(id, {});
      continue;
    }
    const std::size_t longest = std::min(piece.size(), b.text.size() - 1);
    for (std::size_t n = 1; n <= longest; ++n)
      if (b.tails[n] && piece.ends_with(b.text.substr(0, n))) out.add(id, *b.tails[n]);
  }
}

}  // namespace

result<std::shared_ptr<const sampling::breakers>> find_breakers(
    const tokenizer::tokenizer& tokens, const std::vector<std::string>& texts) {
  if (auto ok = check(texts); !ok) return std::unexpected(std::move(ok.error()));
  std::vector<breaker> all;
  for (const std::string& text : texts) {
    breaker& b = all.emplace_back(text, std::vector<std::optional<std::vector<int32_t>>>(1));
    for (std::size_t n = 1; n < text.size(); ++n)
      b.tails.push_back(tail_of(tokens, b.text.substr(n)));
  }
  auto out = std::make_shared<sampling::breakers>();
  for (uint32_t i = 0; i < tokens.size() && !all.empty(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (const auto piece = tokens.piece(id, true, false)) add_token(id, *piece, all, *out);
  }
  return out;
}

result<std::shared_ptr<const sampling::breakers>> known_breakers::find(
    const tokenizer::tokenizer& tokens, const std::vector<std::string>& texts) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(all_, texts, [](const auto& one) { return one.first; });
    if (at != all_.end()) {
      std::rotate(at, at + 1, all_.end());
      return all_.back().second;
    }
  }
  auto made = find_breakers(tokens, texts);  // without the lock, so that others do not wait
  if (!made) return made;
  const std::lock_guard lock(mutex_);
  if (all_.size() == most) all_.erase(all_.begin());
  all_.emplace_back(texts, *made);
  return made;
}

}  // namespace bitnet::generate
