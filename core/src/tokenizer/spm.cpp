#include "tokenizer/spm.hpp"

#include <fmt/core.h>

#include <queue>
#include <unordered_map>

#include "tokenizer/blanks.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

struct link {  // a symbol in a doubly linked list; length 0: removed
  uint32_t begin;
  uint32_t length;
  int32_t previous;
  int32_t next;
};

struct candidate {
  float score;
  int32_t left;
  int32_t right;
  uint32_t length;  // of both when queued; if a part has changed, it differs
  bool operator<(const candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

class word_merger {
 public:
  word_merger(const vocabulary& v, std::string_view text) : v_(v), text_(text) {}

  void merge_all() {
    cut_into_characters();
    for (size_t i = 1; i < links_.size(); ++i) {
      propose(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    }
    while (!queue_.empty()) {
      const candidate c = queue_.top();
      queue_.pop();
      link& left = links_[c.left];
      link& right = links_[c.right];
      if (left.length == 0 || right.length == 0 || left.length + right.length != c.length) continue;
      note_parts(left, right);
      left.length += right.length;
      right.length = 0;
      left.next = right.next;
      if (left.next >= 0) links_[left.next].previous = c.left;
      propose(left.previous, c.left);
      propose(c.left, left.next);
    }
  }

  result<void> emit(std::vector<token>& out) const {
    for (int32_t i = links_.empty() ? -1 : 0; i >= 0; i = links_[i].next) {
      if (auto done = emit_symbol(text_.substr(links_[i].begin, links_[i].length), out); !done) {
        return done;
      }
    }
    return {};
  }

 private:
  // Whether merges may produce this token. User-defined ones are found in the text before; control,
  // unknown and byte tokens never come from text.
  [[nodiscard]] std::optional<token> mergeable(std::string_view text) const {
    if (text.size() > v_.longest_text) return std::nullopt;
    const auto id = v_.find(text);
    if (!id) return std::nullopt;
    const token_type t = v_.type(*id);
    return t == token_type::normal || t == token_type::unused ? id : std::nullopt;
  }

  void cut_into_characters() {
    for (size_t i = 0; i < text_.size();) {
      const utf8_char c = first_utf8_char(text_.substr(i));
      // Invalid bytes stay separate: each becomes a byte token.
      const uint8_t length = c.state == utf8_state::complete ? c.length : 1;
      const auto at = static_cast<int32_t>(links_.size());
      links_.push_back({static_cast<uint32_t>(i), length, at - 1, at + 1});
      i += length;
    }
    if (!links_.empty()) links_.back().next = -1;
  }

  void propose(int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const uint32_t length = links_[left].length + links_[right].length;
    const auto id = mergeable(text_.substr(links_[left].begin, length));
    if (id) queue_.push({v_.scores[static_cast<size_t>(*id)], left, right, length});
  }

  void note_parts(const link& left, const link& right) {
    const auto id = mergeable(text_.substr(left.begin, left.length + right.length));
    if (id && v_.type(*id) == token_type::unused) parts_[*id] = left.length;
  }

  result<void> emit_symbol(std::string_view symbol, std::vector<token>& out) const {
    std::vector<std::string_view> waiting = {symbol};  // the next one at the back
    while (!waiting.empty()) {
      const std::string_view text = waiting.back();
      waiting.pop_back();
      const auto id = mergeable(text);
      if (id && v_.type(*id) != token_type::unused) {
        out.push_back(*id);
        continue;
      }
      const auto part = id ? parts_.find(*id) : parts_.end();
      if (part != parts_.end()) {
        waiting.push_back(text.substr(part->second));
        waiting.push_back(text.substr(0, part->second));
        continue;
      }
      if (auto done = emit_bytes(text, out); !done) return done;
    }
    return {};
  }

  result<void> emit_bytes(std::string_view bytes, std::vector<token>& out) const {
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      token id = v_.byte_tokens[byte];
      if (id < 0 && v_.unknown) id = *v_.unknown;
      if (id < 0) {
        return fail(BITNET_BAD_DATA,
                    fmt::format("the vocabulary has neither a token for the byte {} nor an unknown "
                                "token; convert the model again with its whole tokenizer",
                                hex_byte(byte)));
      }
      out.push_back(id);
    }
    return {};
  }

  const vocabulary& v_;
  std::string_view text_;
  std::vector<link> links_;
  std::priority_queue<candidate> queue_;
  std::unordered_map<token, uint32_t> parts_;  // unused token: length of its left part
};

}  // namespace

result<void> encode_spm(const vocabulary& v, std::string_view text, bool space_before,
                        std::vector<token>& out) {
  const std::string marked = with_marked_blanks(text, space_before);
  word_merger merger(v, marked);
  merger.merge_all();
  return merger.emit(out);
}

}  // namespace bitnet::tokenizer
