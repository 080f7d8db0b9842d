#pragma once
// Texts and lists that grow piece by piece. Room is asked for before they take it, the room that
// growing takes included; where there is none they stay as they are, and so does the trouble.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

class text_maker {
 public:
  explicit text_maker(rendering& at) : at_(at) {}

  bool add(std::string_view piece) {
    if (piece.size() > out_.capacity() - out_.size() && !grow(piece.size())) return false;
    out_ += piece;
    return at_.ok();
  }
  bool add(char c) { return add(std::string_view(&c, 1)); }
  bool fill(uint64_t n, char c) {
    if (n > out_.capacity() - out_.size() && !grow(n)) return false;
    out_.append(n, c);
    return at_.ok();
  }
  [[nodiscard]] rendering& at() const { return at_; }
  [[nodiscard]] std::string take() { return std::move(out_); }
  [[nodiscard]] value text() { return at_.kept(take()); }

 private:
  bool grow(uint64_t n) {
    constexpr uint64_t least = 32;
    if (n > at_.room_left()) return at_.room(n);  // which says so
    const uint64_t size = std::max({out_.size() + n, 2 * out_.capacity(), least});
    if (!at_.room(size + 32)) return false;
    out_.reserve(size);
    return true;
  }

  rendering& at_;
  std::string out_;
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
