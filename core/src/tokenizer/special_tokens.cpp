#include "tokenizer/special_tokens.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <string>

namespace bitnet::tokenizer {
namespace {

// Whether a text looks like a mark of turns: <|im_end|>, <\uff5cUser\uff5c>, <turn|> ...
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

// Number of bytes from `at` on that lie in no plain range.
size_t trusted_from(std::span<const text_range> plain, size_t at, size_t size) {
  const auto next = std::ranges::upper_bound(plain, at, {}, &text_range::end);
  if (next == plain.end()) return size - at;
  return next->begin > at ? next->begin - at : 0;
}

// A token found at a position.
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
    const bool always = v.type(id) == token_type::user_defined;
    if (!v.is_special(id) || (!with_parsed && !always)) continue;
    const auto number = static_cast<uint32_t>(out.entries.size());
    const std::string& text = v.texts[i];
    out.entries.push_back({id, static_cast<uint32_t>(text.size()), always && !marks_turns(v, id)});
    out.backwards.add(std::string(text.rbegin(), text.rend()), number);
    by_length.push_back(number);
  }
  out.backwards.finish();
  // Shorter ones first, since longer ones link to them.
  std::ranges::sort(by_length, {}, [&](uint32_t n) { return out.entries[n].length; });
  for (const uint32_t number : by_length) {
    entry& e = out.entries[number];
    const std::string& text = v.texts[static_cast<std::size_t>(e.id)];
    patterns::state here = patterns::begin;
    for (auto c = text.rbegin(); c != text.rend(); ++c)
      here = out.backwards.next(here, static_cast<unsigned char>(*c));
    const uint32_t shorter = out.backwards.number(out.backwards.shorter(here));
    const uint32_t safe = shorter == none ? none : out.entries[shorter].longest_safe;
    out.link(number, shorter, &entry::all);
    if (e.is_safe) out.link(number, safe, &entry::safe);
    e.longest_safe = e.is_safe ? number : safe;
  }
  return out;
}

// Jump pointers with the lengths of skew binary numbers: E. W. Myers, An applicative random access
// stack, 1983.
void special_tokens::table::link(uint32_t number, uint32_t shorter, links entry::* which) {
  if (shorter == none) return;
  links& of = entries[number].*which;
  const auto at = [&](uint32_t n) { return n == none ? links{} : entries[n].*which; };
  const links s = at(shorter);
  const uint32_t second = at(s.far).far;
  const bool even = s.far != none && s.rank - at(s.far).rank == at(s.far).rank - at(second).rank;
  of = {shorter, even ? second : shorter, s.rank + 1};
}

uint32_t special_tokens::table::at_most(uint32_t longest, std::size_t length,
                                        links entry::* which) const {
  uint32_t at = longest;
  while (at != none && entries[at].length > length) {
    const links& to = entries[at].*which;
    at = to.far != none && entries[to.far].length > length ? to.far : to.shorter;
  }
  return at;
}

uint32_t special_tokens::table::fitting(uint32_t longest, std::size_t limit,
                                        std::size_t trusted) const {
  const uint32_t any = at_most(longest, std::min(limit, trusted), &entry::all);
  if (trusted >= limit) return any;
  const uint32_t safe = at_most(entries[longest].longest_safe, limit, &entry::safe);
  if (any == none || safe == none) return any == none ? safe : any;
  return entries[safe].length > entries[any].length ? safe : any;
}

std::vector<fragment> special_tokens::cut(std::string_view text, bool parse_special,
                                          std::span<const text_range> plain) const {
  const table& tokens = parse_special ? parsed_ : always_;
  if (text.empty()) return {};
  // At most one candidate per position is queued: its longest token that still fits. If a better
  // token has taken part of that room, the candidate is queued again with the next shorter token.
  // The taken token is at least as long as the candidate, so the room at least halves from one such
  // token to the next: a position is queued O(log of its longest token) times.
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
    const auto longest = tokens.backwards.longest(here);
    if (longest == patterns::begin) continue;
    const std::size_t rest = text.size() - i;
    const uint32_t fitting =
        tokens.fitting(tokens.backwards.number(longest), rest, trusted_from(plain, i, text.size()));
    if (fitting != none) waiting.push({static_cast<uint32_t>(i), fitting});
  }
  if (waiting.empty()) return {{-1, text}};

  std::vector<bool> taken(text.size());
  const auto by_place = [](const match& a, const match& b) { return a.at < b.at; };
  std::set<match, decltype(by_place)> found(by_place);
  while (!waiting.empty()) {
    const match m = waiting.top();
    waiting.pop();
    if (taken[m.at]) continue;
    // A token taken before is at least as long as m, so if it overlaps m but not m's beginning, it
    // covers m's end.
    const uint32_t length = tokens.entries[m.entry].length;
    if (!taken[m.at + length - 1]) {
      std::fill_n(taken.begin() + static_cast<ptrdiff_t>(m.at), length, true);
      found.insert(m);
      continue;
    }
    const uint32_t shorter = tokens.fitting(m.entry, found.lower_bound(m)->at - m.at,
                                            trusted_from(plain, m.at, text.size()));
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
