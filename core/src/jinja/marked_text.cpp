#include "jinja/marked_text.hpp"

#include <algorithm>

#include "jinja/python_text.hpp"

namespace bitnet::jinja {
namespace {

constexpr char mark_of(origin of) {
  return static_cast<char>(of);
}

}  // namespace

origin marked_text::at(std::size_t begin, std::size_t size) const {
  if (marks_.empty() || size == 0) return all_;
  const std::string_view those = std::string_view(marks_).substr(begin, size);
  return those.find(mark_of(origin::message)) == std::string_view::npos ? origin::own
                                                                        : origin::message;
}

std::size_t marked_text::offset_of(std::string_view piece) const {
  return piece.empty() ? 0 : static_cast<std::size_t>(piece.data() - bytes_.data());
}

marked_text marked_text::part(std::size_t begin, std::size_t size) const {
  marked_text out;
  const std::string_view whole = bytes_;
  const std::string_view marks = marks_;
  out.append_marked(whole.substr(begin, size), marks.empty() ? marks : marks.substr(begin, size),
                    all_);
  return out;
}

marked_text marked_text::part(std::string_view piece) const {
  return part(offset_of(piece), piece.size());
}

void marked_text::spell_marks() {
  if (!marks_.empty()) return;
  marks_.reserve(bytes_.capacity());
  marks_.assign(bytes_.size(), mark_of(all_));
}

// `marks`: one per byte; or empty, then all bytes have the origin `all`.
void marked_text::append_marked(std::string_view bytes, std::string_view marks, origin all) {
  if (bytes.empty()) return;
  if (!marks.empty() && marks.find_first_not_of(marks.front()) == std::string_view::npos) {
    all = static_cast<origin>(marks.front());
    marks = {};
  }
  if (bytes_.empty() && marks.empty()) all_ = all;
  if (!marks.empty() || !marks_.empty() || all != all_) {
    spell_marks();
    if (marks.empty())
      marks_.append(bytes.size(), mark_of(all));
    else
      marks_.append(marks);
  }
  bytes_.append(bytes);
}

void marked_text::reserve(std::size_t n) {
  bytes_.reserve(n);
  if (!marks_.empty()) marks_.reserve(n);
}

marked_text& marked_text::append(std::string_view bytes, origin of) {
  append_marked(bytes, {}, of);
  return *this;
}

marked_text& marked_text::append(const marked_text& more) {
  append_marked(more.bytes_, more.marks_, more.all_);
  return *this;
}

marked_text& marked_text::append(const marked_text& from, std::string_view piece) {
  const std::string_view marks = from.marks_;
  append_marked(piece, marks.empty() ? marks : marks.substr(from.offset_of(piece), piece.size()),
                from.all_);
  return *this;
}

std::vector<byte_range> marked_text::message_ranges() const {
  std::vector<byte_range> out;
  if (marks_.empty()) {
    if (all_ == origin::message && !bytes_.empty()) out.push_back({0, bytes_.size()});
    return out;
  }
  constexpr char message = mark_of(origin::message);
  for (std::size_t begin = marks_.find(message); begin != std::string::npos;) {
    const std::size_t end = std::min(marks_.find_first_not_of(message, begin), marks_.size());
    out.push_back({begin, end});
    begin = marks_.find(message, end);
  }
  return out;
}

marked_text with_marks_of(const marked_text& from, std::string changed) {
  if (!from.mixed()) return {std::move(changed), from.all()};
  marked_text out;
  std::string_view before = from.bytes();
  std::string_view after = changed;
  while (!before.empty() && !after.empty()) {
    const character was = first_character(before);
    constexpr char32_t sharp_s = 0xDF;  // the one character that becomes two: SS or Ss
    const std::size_t n =
        was.code == sharp_s && after.front() == 'S' ? 2 : first_character(after).length;
    out.append(after.substr(0, n), from.at(from.size() - before.size(), was.length));
    before.remove_prefix(was.length);
    after.remove_prefix(std::min(n, after.size()));
  }
  if (before.empty() && after.empty()) return out;
  return {std::move(changed), origin::message};
}

}  // namespace bitnet::jinja
