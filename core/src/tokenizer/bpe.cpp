#include "tokenizer/bpe.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "tokenizer/byte_table.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

constexpr uint32_t no_letter = 0;  // symbol of characters in no token and no merge

// The bytes for a text of the vocabulary.
std::optional<std::string> bytes_of(alphabet letters, std::string_view text) {
  if (letters == alphabet::bytes) return text_to_bytes(text);
  if (first_invalid_utf8(text)) return std::nullopt;
  return std::string(text);
}

// Whether text may become this token. Control tokens never come from text, user-defined ones are
// found before, and an unused one would decode to nothing. With characters a byte token is no text:
// "<0x41>" is six letters.
bool mergeable(alphabet letters, token_type type) {
  return type == token_type::normal || (type == token_type::byte && letters == alphabet::bytes);
}

std::optional<char32_t> single_character(std::string_view text) {
  const utf8_char c = first_utf8_char(text);
  if (c.state != utf8_state::complete || c.length != text.size()) return std::nullopt;
  return c.code_point;
}

bool is_whole(whole_words which, std::string_view text) {
  return which == whole_words::all || (which == whole_words::line_ends &&
                                       text.find_first_not_of('\n') == std::string_view::npos);
}

}  // namespace

// Numbers of symbols while the tables are made.
struct bpe::symbol_names {
  const vocabulary& v;
  std::vector<int64_t> of_token;                      // by id; -1: none yet
  std::unordered_map<std::string, uint32_t> of_text;  // texts that are no token
  std::unordered_map<char32_t, uint32_t> of_character;
  std::vector<token> ids = {-1};  // -1: text may not become it; the first is no_letter
  std::vector<bool> stand_for_text = {false};

  explicit symbol_names(const vocabulary& from) : v(from), of_token(from.texts.size(), -1) {}

  uint32_t number(std::string_view text) {
    const auto next = static_cast<uint32_t>(ids.size());
    const auto id = v.find(text);
    if (id) {
      int64_t& known = of_token[static_cast<size_t>(*id)];
      if (known >= 0) return static_cast<uint32_t>(known);
      known = next;
    } else {
      const auto [entry, fresh] = of_text.emplace(std::string(text), next);
      if (!fresh) return entry->second;
    }
    const bool stands = bytes_of(v.letters, text).has_value();
    ids.push_back(stands && id && mergeable(v.letters, v.type(*id)) ? *id : -1);
    stand_for_text.push_back(stands);
    if (v.letters != alphabet::bytes) {
      if (const auto c = single_character(text)) of_character.emplace(*c, next);
    }
    return next;
  }
};

result<void> bpe::add_merges(symbol_names& names, std::span<const std::string> merges) {
  merges_.reserve(merges.size());
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view text = merges[rank];
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("merge {} is {}; expected two parts with a space between them", rank,
                              in_quotes(text)));
    }
    const symbol left = names.number(text.substr(0, space));
    const symbol right = names.number(text.substr(space + 1));
    // A part that no text can produce never occurs.
    if (!names.stand_for_text[left] || !names.stand_for_text[right]) continue;
    joined.assign(text.substr(0, space)).append(text.substr(space + 1));
    // Of a duplicate pair the first rank counts.
    merges_.try_emplace(pair(left, right),
                        merge{static_cast<uint32_t>(rank), names.number(joined)});
  }
  return {};
}

void bpe::add_words(const vocabulary& v, whole_words whole) {
  for (size_t i = 0; i < v.texts.size(); ++i) {
    auto bytes = bytes_of(v.letters, v.texts[i]);
    if (!bytes || !is_whole(whole, *bytes) || !mergeable(v.letters, v.types[i])) continue;
    longest_word_ = std::max(longest_word_, bytes->size());
    words_.emplace(std::move(*bytes), static_cast<token>(i));
  }
}

result<bpe> bpe::make(const vocabulary& v, std::span<const std::string> merges, whole_words whole) {
  if (merges.empty()) {
    return fail(BITNET_BAD_DATA,
                "a vocabulary of BPE needs tokenizer.ggml.merges; the file has none");
  }
  if (merges.size() > std::numeric_limits<uint32_t>::max() / 4) {
    return fail(BITNET_BAD_DATA,
                fmt::format("tokenizer.ggml.merges has {} entries; that cannot be", merges.size()));
  }
  bpe out;
  out.letters_ = v.letters;
  symbol_names names(v);
  if (v.letters == alphabet::bytes) {
    for (int b = 0; b < 256; ++b) {
      out.byte_symbols_[b] = names.number(byte_to_text(static_cast<unsigned char>(b)));
      out.byte_tokens_[b] = names.ids[out.byte_symbols_[b]];
    }
  } else {
    for (const std::string& text : v.texts) {
      if (single_character(text)) (void)names.number(text);
    }
    out.byte_tokens_ = v.byte_tokens;
  }
  if (auto added = out.add_merges(names, merges); !added) return std::unexpected(added.error());
  out.char_symbols_ = std::move(names.of_character);
  out.symbols_ = std::move(names.ids);
  if (whole != whole_words::none) out.add_words(v, whole);
  out.unknown_ = v.unknown.value_or(-1);
  return out;
}

void bpe::merge_all(std::vector<link>& links) const {
  std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue;
  const auto propose = [&](int32_t left) {
    if (left < 0 || links[left].next < 0) return;
    const symbol l = links[left].what;
    const symbol r = links[links[left].next].what;
    const auto found = merges_.find(pair(l, r));
    if (found != merges_.end()) queue.push({found->second.rank, left, l, r});
  };
  for (size_t i = 0; i + 1 < links.size(); ++i) propose(static_cast<int32_t>(i));

  while (!queue.empty()) {
    const candidate c = queue.top();
    queue.pop();
    link& left = links[c.left];
    if (left.what != c.left_symbol || left.next < 0) continue;
    link& right = links[left.next];
    if (right.what != c.right_symbol) continue;
    left.what = merges_.find(pair(left.what, right.what))->second.product;
    right.what = std::numeric_limits<symbol>::max();  // removed
    left.next = right.next;
    if (left.next >= 0) links[left.next].previous = c.left;
    propose(left.previous);
    propose(c.left);
  }
}

size_t bpe::letter_length(std::string_view rest) const {
  return letters_ == alphabet::bytes ? 1 : first_utf8_char(rest).length;
}

bpe::symbol bpe::letter(std::string_view text) const {
  if (letters_ == alphabet::bytes) return byte_symbols_[static_cast<unsigned char>(text[0])];
  const auto found = char_symbols_.find(first_utf8_char(text).code_point);
  return found == char_symbols_.end() ? no_letter : found->second;
}

result<void> bpe::emit_bytes(std::string_view bytes, std::vector<token>& out) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  for (size_t i = 0; i < bytes.size();) {
    const std::string_view text = bytes.substr(i, letter_length(bytes.substr(i)));
    i += text.size();
    if (std::ranges::all_of(text, [&](char c) { return token_of(c) >= 0; })) {
      for (const char c : text) out.push_back(token_of(c));
    } else if (unknown_ >= 0) {
      out.push_back(unknown_);
    } else {
      const std::string what =
          letters_ == alphabet::bytes
              ? fmt::format("a token for the byte {}",
                            hex_byte(static_cast<unsigned char>(text[0])))
              : fmt::format("tokens for the character {} or its bytes", in_quotes(text));
      return fail(BITNET_BAD_DATA, fmt::format("the vocabulary has neither {} nor an unknown "
                                               "token; convert the model again with its whole "
                                               "tokenizer",
                                               what));
    }
  }
  return {};
}

result<void> bpe::encode(std::string_view word, std::vector<token>& out) const {
  if (!words_.empty() && word.size() <= longest_word_) {
    if (const auto whole = words_.find(std::string(word)); whole != words_.end()) {
      out.push_back(whole->second);
      return {};
    }
  }
  std::vector<link> links;
  links.reserve(letters_ == alphabet::bytes ? word.size() : 0);
  for (size_t i = 0; i < word.size();) {
    const auto at = static_cast<int32_t>(links.size());
    const std::string_view text = word.substr(i, letter_length(word.substr(i)));
    links.push_back({letter(text), at - 1, at + 1, static_cast<uint32_t>(i)});
    i += text.size();
  }
  if (links.empty()) return {};
  links.back().next = -1;
  merge_all(links);
  for (int32_t i = 0; i >= 0; i = links[i].next) {
    if (const token id = symbols_[links[i].what]; id >= 0) {
      out.push_back(id);
      continue;
    }
    const size_t begin = links[i].begin;
    const size_t end = links[i].next < 0 ? word.size() : links[links[i].next].begin;
    if (auto done = emit_bytes(word.substr(begin, end - begin), out); !done) return done;
  }
  return {};
}

}  // namespace bitnet::tokenizer
