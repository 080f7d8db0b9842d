#pragma once
// Builders of texts and lists. They ask the rendering for memory before they grow, including the
// spare room. If it grants none, they stay as they are and the rendering has the error.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "jinja/marked_text.hpp"
#include "jinja/rendering.hpp"

namespace bitnet::jinja {

class text_maker {
 public:
  explicit text_maker(rendering& at) : at_(at) {}

  bool add(std::string_view piece, origin of) {
    if (!fits(piece.size())) return false;
    out_.append(piece, of);
    return at_.ok();
  }
  bool add(const marked_text& all) {
    if (!fits(all.size())) return false;
    out_.append(all);
    return at_.ok();
  }
  // `piece` lies within the bytes of `from`.
  bool add(const marked_text& from, std::string_view piece) {
    if (!fits(piece.size())) return false;
    out_.append(from, piece);
    return at_.ok();
  }
  bool fill(uint64_t n, char c, origin of) {
    if (!fits(n)) return false;
    const std::string some(std::min<uint64_t>(n, 4096), c);
    for (; n > 0; n -= std::min<uint64_t>(n, some.size()))
      out_.append(std::string_view(some).substr(0, n), of);
    return at_.ok();
  }
  [[nodiscard]] marked_text take() { return std::exchange(out_, {}); }
  [[nodiscard]] value text() { return at_.kept(take()); }

 private:
  bool fits(uint64_t n) {
    if (n <= room_ - out_.size()) return true;
    constexpr uint64_t least = 32;
    if (n > at_.room_left()) return at_.room(n);  // which reports it
    const uint64_t size = std::max({out_.size() + n, 2 * room_, least});
    // Twice: a mixed text has a mark for each byte.
    if (!at_.room(2 * size + 64)) return false;
    out_.reserve(size);
    room_ = size;
    return true;
  }

  rendering& at_;
  marked_text out_;
  uint64_t room_ = 0;  // bytes granted by the rendering
};

class list_maker {
 public:
  explicit list_maker(rendering& at) : at_(at) {}

  bool reserve(uint64_t n) {
    if (n > at_.room_left() || !at_.room(n * sizeof(value) + 32)) return at_.room(n);
    out_.reserve(n);
    return true;
  }
  bool add(value one) {
    if (out_.size() == out_.capacity() && !reserve(std::max<uint64_t>(2 * out_.size(), 4)))
      return false;
    out_.push_back(std::move(one));
    return at_.ok();
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  [[nodiscard]] bool empty() const { return out_.empty(); }
  [[nodiscard]] sequence& items() { return out_; }
  [[nodiscard]] sequence take() { return std::exchange(out_, {}); }
  [[nodiscard]] value list() { return at_.kept_list(take()); }
  [[nodiscard]] value tuple() { return at_.kept_tuple(take()); }

 private:
  rendering& at_;
  sequence out_;
};

}  // namespace bitnet::jinja
