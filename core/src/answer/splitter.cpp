#include "answer/splitter.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::answer {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view separators = " \t\r\n;,";  // between leading calls

// Length of the end of `text` that is a proper prefix of `tag`.
std::size_t begun(std::string_view text, std::string_view tag) {
  for (std::size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.ends_with(tag.substr(0, n))) return n;
  return 0;
}

std::size_t first_not_of(std::string_view text, std::string_view these) {
  return std::min(text.find_first_not_of(these), text.size());
}

}  // namespace

void splitter::add(part::kind what, std::string text) {
  out_.push_back({.what = what, .text = std::move(text), .index = 0, .id = {}, .name = {}});
}

void splitter::add_thinking(std::string_view text) {
  if (held_.empty() && !said_) text.remove_prefix(first_not_of(text, blanks));
  const std::size_t known = text.find_last_not_of(blanks) + 1;  // 0 if there is none
  if (known > 0) {
    said_ = true;
    add(part::kind::thinking, std::exchange(held_, "") + std::string(text.substr(0, known)));
  }
  held_ += text.substr(known);
}

void splitter::add_content(std::string_view text) {
  const std::size_t known = text.find_last_not_of(blanks) + 1;
  if (known > 0) {
    if (behind_part_ && !said_) {  // no text yet
      held_.clear();
      const std::size_t first = text.find_first_not_of(blanks);
      add(part::kind::content, std::string(text.substr(first, known - first)));
    } else {
      add(part::kind::content, std::exchange(held_, "") + std::string(text.substr(0, known)));
    }
    said_ = true;
    behind_part_ = false;
  }
  held_ += text.substr(known);
}

// The first word shows whether the answer begins with thinking.
bool splitter::begin(bool at_end) {
  const std::string_view tag = how_.dialect->thinking_begins;
  const std::size_t first = first_not_of(pending_, blanks);
  const std::string_view word = std::string_view(pending_).substr(first);
  const bool opens = word.starts_with(tag);
  if (!opens && !at_end && tag.starts_with(word)) return false;
  if (opens) pending_.erase(0, first + tag.size());
  now_ = opens || how_.thinks ? state::thinking : state::saying;
  if (now_ == state::thinking) add(part::kind::thinking_begins);
  return true;
}

bool splitter::think(bool at_end) {
  const std::string_view tag = how_.dialect->thinking_ends;
  const auto found = pending_.find(tag);
  if (found == std::string::npos) {
    const std::size_t known = pending_.size() - (at_end ? 0 : begun(pending_, tag));
    add_thinking(std::string_view(pending_).substr(0, known));
    pending_.erase(0, known);
    return false;
  }
  add_thinking(std::string_view(pending_).substr(0, found));
  pending_.erase(0, found + tag.size());
  add(part::kind::thinking_ends);
  held_.clear();
  said_ = false;
  behind_part_ = true;
  now_ = state::saying;
  return true;
}

void splitter::begin_call(const frame& of, std::size_t tag_bytes) {
  frame_ = &of;
  pending_.erase(0, tag_bytes);
  search_ = end_search{};
  search_.brackets = json::bracket_finder(of.begin == "[");
  now_ = state::calling;
}

// A call at the start of the content. Returns false if more text is needed.
bool splitter::say_leading(bool at_end, bool& is_call) {
  const std::string_view rest = pending_;
  const std::size_t first = first_not_of(rest, n_calls_ > 0 ? separators : blanks);
  const std::string_view word = rest.substr(first);
  for (const frame& one : how_.dialect->frames) {
    if (!one.leading) continue;
    if (word.starts_with(one.begin)) {
      if (n_calls_ == 0) add_content(rest.substr(0, first));
      begin_call(one, first);
      is_call = true;
      return true;
    }
    if (!at_end && one.begin.starts_with(word)) return false;
  }
  if (at_end && word.empty() && n_calls_ > 0) pending_.clear();
  leading_ = word.empty() && !at_end;
  return !leading_;
}

bool splitter::say(bool at_end) {
  const auto frames = how_.dialect->frames;
  if (leading_ && std::ranges::any_of(frames, &frame::leading)) {
    bool is_call = false;
    if (!say_leading(at_end, is_call)) return false;
    if (is_call) return true;
  }
  const frame* next = nullptr;
  std::size_t place = std::string::npos;
  std::size_t open = 0;  // bytes that may begin a tag
  for (const frame& one : frames) {
    if (one.leading) continue;
    const std::size_t found = pending_.find(one.begin);
    if (found < place) {
      place = found;
      next = &one;
    }
    if (!at_end) open = std::max(open, begun(pending_, one.begin));
  }
  if (next == nullptr) {
    const std::size_t known = pending_.size() - open;
    add_content(std::string_view(pending_).substr(0, known));
    pending_.erase(0, known);
    return false;
  }
  add_content(std::string_view(pending_).substr(0, place));
  begin_call(*next, place + (next->kept ? 0 : next->begin.size()));
  return true;
}

// Offset behind the call's end; the body ends there, or before the end tag.
std::optional<std::size_t> splitter::find_end(bool at_end) {
  const std::string_view text = pending_;
  if (frame_->ends == ending::answer) return at_end ? std::optional(text.size()) : std::nullopt;
  if (!search_.is_json) {
    const std::size_t first = first_not_of(text, blanks);
    if (first < text.size()) search_.is_json = text[first] == '{' || text[first] == '[';
  }
  for (std::size_t& at = search_.at; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (frame_->ends == ending::bracket) {
      if (search_.brackets.take(text[at])) return at + 1;
      continue;
    }
    if (!search_.brackets.in_string()) {
      if (rest.starts_with(frame_->end)) return at + frame_->end.size();
      if (!at_end && frame_->end.starts_with(rest)) return std::nullopt;
    }
    if (search_.is_json.value_or(false)) search_.brackets.take(text[at]);
  }
  return std::nullopt;
}

bool splitter::call_on(bool at_end) {
  const auto end = find_end(at_end);
  if (!end && !at_end) return false;
  const std::size_t bytes = end.value_or(pending_.size());
  std::string_view body = std::string_view(pending_).substr(0, bytes);
  if (end && frame_->ends == ending::tag && !frame_->kept) body.remove_suffix(frame_->end.size());
  end_call(body, bytes);
  return true;
}

void splitter::end_call(std::string_view body, std::size_t bytes) {
  auto read = how_.dialect->read(body, how_.known);
  // A beginning that is no clear mark counts as a call only if it names a known tool.
  const bool named = read && std::ranges::all_of(*read, [&](const call& one) {
                       return find(how_.known, one.name) != nullptr;
                     });
  const std::string whole =
      (frame_->kept ? "" : std::string(frame_->begin)) + pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  now_ = state::saying;
  if (frame_->leading && !named) {
    leading_ = false;
    add_content(whole);
    return;
  }
  leading_ = leading_ && frame_->leading;
  behind_part_ = true;
  if (!read) {
    add(part::kind::malformed, whole);
    out_.back().name = read.error();
    return;
  }
  for (std::size_t i = 0; i < read->size(); ++i) {
    const uint32_t index = n_calls_++;
    call& one = (*read)[i];
    const std::string id = how_.id_prefix + std::to_string(index);
    out_.push_back({part::kind::call_begins, "", index, id, std::move(one.name)});
    out_.push_back({part::kind::arguments, std::move(one.arguments), index, "", ""});
    out_.push_back({part::kind::call_ends, i + 1 == read->size() ? whole : "", index, "", ""});
  }
}

// Processes the text as far as it is unambiguous; false if more is needed.
bool splitter::step(bool at_end) {
  switch (now_) {
    case state::start:
      return begin(at_end);
    case state::thinking:
      return think(at_end);
    case state::saying:
      return say(at_end);
    case state::calling:
      return call_on(at_end);
  }
  return false;
}

std::vector<part> splitter::take(std::string_view text) {
  pending_ += text;
  while (!pending_.empty() && step(false)) {
  }
  return std::exchange(out_, {});
}

std::vector<part> splitter::finish() {
  while (step(true)) {
  }
  // White space at the end of content is the model's; behind a call or thinking it is dropped.
  const bool is_text = now_ == state::saying && !behind_part_;
  if (is_text && !held_.empty()) add(part::kind::content, held_);
  held_.clear();
  return std::exchange(out_, {});
}

}  // namespace bitnet::answer
