#include "grammar/prefix_tree.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::grammar {

prefix_tree::prefix_tree(uint32_t n_vocab, const std::function<std::string(int32_t)>& text_of)
    : n_vocab_(n_vocab) {
  std::vector<std::pair<std::string, int32_t>> words;
  words.reserve(n_vocab);
  for (uint32_t i = 0; i < n_vocab; ++i) {
    const auto id = static_cast<int32_t>(i);
    std::string text = text_of(id);
    // A depth has 16 bits; no vocabulary has words of more than 4096 bytes.
    if (!text.empty() && text.size() <= UINT16_MAX) words.emplace_back(std::move(text), id);
  }
  // By unsigned bytes, as std::string compares.
  std::ranges::sort(words);
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
