#include "tokenizer/special_tokens.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <string>

namespace bitnet::tokenizer {
namespace {

// A token that may be cut out at a place.
struct match {
  uint32_t at;
  uint32_t entry;
};

}  // namespace

special_tokens::special_tokens(const vocabulary& v)
    : always_(made(v, false)), parsed_(made(v, true)) {}

special_tokens::table special_tokens::made(const vocabulary& v, bool with_parsed) {
  table out;
  std::vector<uint32_t> by_length;
  for (std::size_t i = 0; i < v.texts.size(); ++i) {
    const auto id = static_cast<token>(i);
    if (!v.is_special(id) || (!with_parsed && v.type(id) != token_type::user_defined)) continue;
    const auto number = static_cast<uint32_t>(out.entries.size());
    const std::string& text = v.texts[i];
    out.entries.push_back({id, static_cast<uint32_t>(text.size()), none, none, 0});
    out.backwards.add(std::string(text.rbegin(), text.rend()), number);
    by_length.push_back(number);
  }
  out.backwards.finish();
  // The shorter ones first, since each stands on them.
  std::ranges::sort(by_length, {}, [&](uint32_t n) { return out.entries[n].length; });
  for (const uint32_t number : by_length) {
    entry& e = out.entries[number];
    const std::string& text = v.texts[static_cast<std::size_t>(e.id)];
    patterns::state here = patterns::begin;
    for (auto c = text.rbegin(); c != text.rend(); ++c)
      here = out.backwards.next(here, static_cast<unsigned char>(*c));
    e.shorter = out.backwards.number(out.backwards.shorter(here));
    if (e.shorter == none) continue;
    // Jumps whose lengths are those of a skew binary number: E. W. Myers, An applicative random
    // access stack, 1983.
    const entry& s = out.entries[e.shorter];
    e.rank = s.rank + 1;
    const auto rank = [&](uint32_t n) { return n == none ? 0 : out.entries[n].rank; };
    const uint32_t second = s.far == none ? none : out.entries[s.far].far;
    const bool even = s.far != none && s.rank - rank(s.far) == rank(s.far) - rank(second);
    e.far = even ? second : e.shorter;
  }
  return out;
}

// The longest token that begins as entry `longest` does and has at most `length` bytes; `none`.
uint32_t special_tokens::table::at_most(uint32_t longest, std::size_t length) const {
  uint32_t at = longest;
  while (at != none && entries[at].length > length) {
    const uint32_t far = entries[at].far;
    at = far != none && entries[far].length > length ? far : entries[at].shorter;
  }
  return at;
}

std::vector<fragment> special_tokens::cut(std::string_view text, bool parse_special) const {
  const table& tokens = parse_special ? parsed_ : always_;
  if (text.empty()) return {};
  // At most one candidate per position waits: its longest token that still fits. When a better
  // token has taken part of that room, the candidate comes back with the next shorter one. What
  // took it is at least as long as the candidate, so that the room at least halves from one such
  // token to the next one: a position comes back O(log of its longest token) times.
  const auto later = [&](const match& a, const match& b) {
    const entry &x = tokens.entries[a.entry], &y = tokens.entries[b.entry];
    if (x.length != y.length) return x.length < y.length;
    return x.id != y.id ? x.id > y.id : a.at > b.at;
  };
  std::priority_queue<match, std::vector<match>, decltype(later)> waiting(later);
  patterns::state here = patterns::begin;
  for (std::size_t i = text.size(); i-- > 0;) {
    here = tokens.backwards.next(here, static_cast<unsigned char>(text[i]));
    if (here == patterns::begin) continue;
    if (const auto longest = tokens.backwards.longest(here); longest != patterns::begin)
      waiting.push({static_cast<uint32_t>(i), tokens.backwards.number(longest)});
  }
  if (waiting.empty()) return {{-1, text}};

  std::vector<bool> taken(text.size());
  const auto by_place = [](const match& a, const match& b) { return a.at < b.at; };
  std::set<match, decltype(by_place)> found(by_place);
  while (!waiting.empty()) {
    const match m = waiting.top();
    waiting.pop();
    if (taken[m.at]) continue;
    // Whatever was taken before is at least as long as m, so it covers m's end if it touches m at
    // all and not its beginning.
    const uint32_t length = tokens.entries[m.entry].length;
    if (!taken[m.at + length - 1]) {
      std::fill_n(taken.begin() + static_cast<ptrdiff_t>(m.at), length, true);
      found.insert(m);
      continue;
    }
    const uint32_t shorter = tokens.at_most(m.entry, found.lower_bound(m)->at - m.at);
    if (shorter != none) waiting.push({m.at, shorter});
  }

  std::vector<fragment> out;
  std::size_t done = 0;
  for (const match& m : found) {
    const entry& e = tokens.entries[m.entry];
    if (m.at > done) out.push_back({-1, text.substr(done, m.at - done)});
    out.push_back({e.id, text.substr(m.at, e.length)});
    done = m.at + e.length;
  }
  if (done < text.size()) out.push_back({-1, text.substr(done)});
  return out;
}

}  // namespace bitnet::tokenizer
