#include "grammar/prefix_tree.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/utf8.hpp"
#include "grammar/character_classes.hpp"

namespace bitnet::grammar {
namespace {

// The number of characters, if all are plain; 0 if not, or if there are too many.
uint32_t plain_length(std::string_view text) {
  uint32_t n = 0;
  for (; !text.empty(); ++n) {
    const auto one = first_utf8_char(text);
    if (one.state != utf8_state::complete || n == prefix_tree::longest_plain ||
        !has_any(plain_characters(), one.code_point, one.code_point))
      return 0;
    text.remove_prefix(one.length);
  }
  return n;
}

}  // namespace

prefix_tree::prefix_tree(uint32_t n_vocab, const std::function<std::string(int32_t)>& text_of)
    : n_vocab_(n_vocab) {
  std::vector<word> words;
  words.reserve(n_vocab);
  for (uint32_t i = 0; i < n_vocab; ++i) {
    const auto id = static_cast<int32_t>(i);
    std::string text = text_of(id);
    // A depth has 16 bits; no vocabulary has words of more than 4096 bytes.
    if (!text.empty() && text.size() <= UINT16_MAX) words.emplace_back(std::move(text), id);
  }
  // std::string compares by unsigned bytes.
  std::ranges::sort(words);
  std::vector<word> others;
  plain_.assign(longest_plain + 1, std::vector<uint64_t>((n_vocab + 63) / 64));
  for (const auto& [text, id] : words) {
    const uint32_t n = plain_length(text);
    if (n == 0) others.emplace_back(text, id);
    const auto place = static_cast<uint32_t>(id);
    for (uint32_t most = std::max(n, 1U); n > 0 && most <= longest_plain; ++most)
      plain_[most][place / 64] |= uint64_t{1} << (place % 64);
  }
  build(words);
  others_.reset(new prefix_tree(n_vocab, std::move(others)));  // its constructor is private
}

prefix_tree::prefix_tree(uint32_t n_vocab, std::vector<word> words) : n_vocab_(n_vocab) {
  build(words);
}

void prefix_tree::build(const std::vector<word>& words) {
  std::vector<uint32_t> path;  // nodes from the root to the last one
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].behind = static_cast<uint32_t>(nodes_.size());
  };
  std::string_view before;
  for (const auto& [text, id] : words) {
    const auto same = std::ranges::mismatch(text, before).in1 - text.begin();
    close_to(static_cast<std::size_t>(same));
    for (std::size_t i = path.size(); i < text.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), static_cast<uint16_t>(i + 1),
                        static_cast<unsigned char>(text[i])});
    }
    tokens_.push_back(id);
    longest_ = std::max(longest_, text.size());
    before = text;
  }
  close_to(0);
  nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), 0, 0});
}

}  // namespace bitnet::grammar
