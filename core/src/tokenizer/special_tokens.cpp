#include "tokenizer/special_tokens.hpp"

#include <algorithm>
#include <queue>

namespace bitnet::tokenizer {

namespace {

// <|im_end|>, <\uff5cUser\uff5c>, <turn|> ...: what turns are made of, by the look of it.
bool looks_like_a_mark(std::string_view text) {
  if (text == "<start_of_turn>" || text == "<end_of_turn>") return true;
  constexpr size_t shortest = 5;
  if (text.size() < shortest || !text.starts_with('<') || !text.ends_with('>')) return false;
  const std::string_view name = text.substr(1, text.size() - 2);
  return name.starts_with('|') || name.ends_with('|') || name.starts_with("\uff5c") ||
         name.ends_with("\uff5c");
}

bool marks_turns(const vocabulary& v, token id) {
  return v.ends.contains(id) || id == v.bos || id == v.eos || id == v.eot || id == v.eom ||
         looks_like_a_mark(v.texts[static_cast<size_t>(id)]);
}

// How many bytes from `at` on lie in no plain range.
size_t trusted_from(std::span<const text_range> plain, size_t at, size_t size) {
  const auto next = std::ranges::upper_bound(plain, at, {}, &text_range::end);
  if (next == plain.end()) return size - at;
  return next->begin > at ? next->begin - at : 0;
}

}  // namespace

special_tokens::special_tokens(const vocabulary& v) : nodes_(1) {
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const auto id = static_cast<token>(i);
    if (!v.is_special(id)) continue;
    const bool always = v.type(id) == token_type::user_defined;
    add(v.texts[i], id, always, always && marks_turns(v, id));
  }
}

void special_tokens::add(std::string_view text, token id, bool always, bool marks_turns) {
  uint64_t here = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto [edge, fresh] =
        edges_.emplace(here << 8 | byte, static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.emplace_back();
    here = edge->second;
  }
  (always ? nodes_[here].always : nodes_[here].parsed) = id;
  if (always) nodes_[here].marks_turns = marks_turns;
  begins_[static_cast<unsigned char>(text[0])] = true;
  longest_ = std::max(longest_, text.size());
}

special_tokens::match special_tokens::longest(std::string_view text, size_t at, size_t limit,
                                              size_t trusted, bool parse) const {
  match best{at, 0, -1};
  uint64_t here = 0;
  for (size_t i = 0; i < limit; ++i) {
    const auto edge = edges_.find(here << 8 | static_cast<unsigned char>(text[at + i]));
    if (edge == edges_.end()) break;
    here = edge->second;
    const node& n = nodes_[here];
    const bool plain = i >= trusted;
    const token id = n.always >= 0     ? (plain && n.marks_turns ? -1 : n.always)
                     : parse && !plain ? n.parsed
                                       : -1;
    if (id >= 0) best = {at, i + 1, id};
  }
  return best;
}

std::vector<fragment> special_tokens::cut(std::string_view text, bool parse_special,
                                          std::span<const text_range> plain) const {
  // At most one candidate per position waits: its longest token that still fits. When a better
  // token has taken part of that room, the candidate comes back with the next shorter one.
  const auto later = [](const match& a, const match& b) {
    if (a.length != b.length) return a.length < b.length;
    return a.id != b.id ? a.id > b.id : a.at > b.at;
  };
  std::priority_queue<match, std::vector<match>, decltype(later)> waiting(later);
  for (size_t i = 0; i < text.size(); ++i) {
    if (!begins_[static_cast<unsigned char>(text[i])]) continue;
    const match m = longest(text, i, std::min(longest_, text.size() - i),
                            trusted_from(plain, i, text.size()), parse_special);
    if (m.length > 0) waiting.push(m);
  }
  if (waiting.empty()) {
    return text.empty() ? std::vector<fragment>() : std::vector<fragment>{{-1, text}};
  }

  std::vector<bool> taken(text.size());
  std::vector<match> found;
  while (!waiting.empty()) {
    const match m = waiting.top();
    waiting.pop();
    if (taken[m.at]) continue;
    // Whatever was taken before is at least as long as m, so it covers m's end if it touches m at
    // all and not its beginning.
    if (!taken[m.at + m.length - 1]) {
      std::fill_n(taken.begin() + static_cast<ptrdiff_t>(m.at), m.length, true);
      found.push_back(m);
      continue;
    }
    const auto begin = taken.begin() + static_cast<ptrdiff_t>(m.at);
    const auto room = static_cast<size_t>(std::find(begin, taken.end(), true) - begin);
    const match shorter =
        longest(text, m.at, room, trusted_from(plain, m.at, text.size()), parse_special);
    if (shorter.length > 0) waiting.push(shorter);
  }

  std::ranges::sort(found, {}, &match::at);
  std::vector<fragment> out;
  size_t done = 0;
  for (const match& m : found) {
    if (m.at > done) out.push_back({-1, text.substr(done, m.at - done)});
    out.push_back({m.id, text.substr(m.at, m.length)});
    done = m.at + m.length;
  }
  if (done < text.size()) out.push_back({-1, text.substr(done)});
  return out;
}

}  // namespace bitnet::tokenizer
