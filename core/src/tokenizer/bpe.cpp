#include "tokenizer/bpe.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "tokenizer/byte_table.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

// Whether text may become this token. Control tokens are never made from text, user-defined ones
// are cut out of it before, and an unused one would decode to nothing.
bool mergeable(token_type type) {
  return type == token_type::normal || type == token_type::byte;
}

// The numbers of symbols, while the tables are made.
struct symbol_names {
  struct found {
    token id;         // -1 if text may not become it
    uint32_t length;  // bytes; 0 if the text stands for none
  };
  const vocabulary& v;
  std::vector<int64_t> of_token;                      // by id; -1 = not met yet
  std::unordered_map<std::string, uint32_t> of_text;  // of what is no token
  std::vector<found> all;

  explicit symbol_names(const vocabulary& from) : v(from), of_token(from.texts.size(), -1) {}

  uint32_t number(std::string_view text) {
    const auto next = static_cast<uint32_t>(all.size());
    const auto id = v.find(text);
    if (id) {
      int64_t& known = of_token[static_cast<size_t>(*id)];
      if (known >= 0) return static_cast<uint32_t>(known);
      known = next;
    } else {
      const auto [entry, fresh] = of_text.emplace(std::string(text), next);
      if (!fresh) return entry->second;
    }
    const auto bytes = text_to_bytes(text);
    all.push_back({bytes && id && mergeable(v.type(*id)) ? *id : -1,
                   static_cast<uint32_t>(bytes ? bytes->size() : 0)});
    return next;
  }
};

}  // namespace

result<bpe> bpe::make(const vocabulary& v, std::span<const std::string> merges,
                      bool ignore_merges) {
  if (merges.empty()) {
    return fail(BITNET_BAD_DATA,
                "a \"gpt2\" vocabulary needs tokenizer.ggml.merges; the file has none");
  }
  if (merges.size() > std::numeric_limits<uint32_t>::max() / 4) {
    return fail(BITNET_BAD_DATA,
                fmt::format("tokenizer.ggml.merges has {} entries; that cannot be", merges.size()));
  }
  bpe out;
  symbol_names names(v);
  for (int b = 0; b < 256; ++b) {
    out.byte_symbols_[b] = names.number(byte_to_text(static_cast<unsigned char>(b)));
  }
  out.merges_.reserve(merges.size());
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
    // A part that stands for no bytes can never be met.
    if (names.all[left].length == 0 || names.all[right].length == 0) continue;
    joined.assign(text.substr(0, space)).append(text.substr(space + 1));
    // Where a pair is listed twice the first rank counts.
    out.merges_.try_emplace(pair(left, right),
                            merge{static_cast<uint32_t>(rank), names.number(joined)});
  }
  out.symbols_.reserve(names.all.size());
  for (const auto& [id, length] : names.all) out.symbols_.push_back({id, length});

  if (ignore_merges) {
    for (size_t i = 0; i < v.texts.size(); ++i) {
      auto bytes = text_to_bytes(v.texts[i]);
      if (!bytes || !mergeable(v.types[i])) continue;
      out.longest_word_ = std::max(out.longest_word_, bytes->size());
      out.words_.emplace(std::move(*bytes), static_cast<token>(i));
    }
  }
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
    right.what = std::numeric_limits<symbol>::max();  // gone
    left.next = right.next;
    if (left.next >= 0) links[left.next].previous = c.left;
    propose(left.previous);
    propose(c.left);
  }
}

result<void> bpe::emit_bytes(std::string_view bytes, std::vector<token>& out) const {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const token id = symbols_[byte_symbols_[byte]].id;
    if (id < 0 && unknown_ < 0) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("the vocabulary has neither a token for the byte {} nor an unknown "
                              "token; convert the model again with its whole tokenizer",
                              hex_byte(byte)));
    }
    out.push_back(id < 0 ? unknown_ : id);
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
  std::vector<link> links(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    links[i] = {byte_symbols_[static_cast<unsigned char>(word[i])], at - 1, at + 1,
                static_cast<uint32_t>(i)};
  }
  if (links.empty()) return {};
  links.back().next = -1;
  merge_all(links);
  for (int32_t i = 0; i >= 0; i = links[i].next) {
    const symbol_info& s = symbols_[links[i].what];
    if (s.id >= 0) {
      out.push_back(s.id);
    } else if (auto done = emit_bytes(word.substr(links[i].begin, s.length), out); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace bitnet::tokenizer
