#pragma once
// A text that records which of its bytes came from a message.
//
// Marks   One mark per byte, kept beside the bytes; no marks if all bytes have the same origin. So
//         operations cut and join both alike, and a mixed text takes twice its size.
// Source  docs/adr/0048-message-text-is-plain.md

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::jinja {

// `own`: text of the template, or a token that the vocabulary names. `message`: all other text,
// also a result of both that contains none of their bytes unchanged.
enum class origin : char { own, message };

struct byte_range {
  std::size_t begin;
  std::size_t end;
  bool operator==(const byte_range&) const = default;
};

class marked_text {
 public:
  marked_text() = default;
  marked_text(std::string bytes, origin all) : bytes_(std::move(bytes)), all_(all) {}

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] bool mixed() const { return !marks_.empty(); }
  [[nodiscard]] origin at(std::size_t i) const {
    return marks_.empty() ? all_ : static_cast<origin>(marks_[i]);
  }
  // Returns message if any of these bytes has it.
  [[nodiscard]] origin at(std::size_t begin, std::size_t size) const;
  [[nodiscard]] origin all() const { return at(0, size()); }
  [[nodiscard]] uint64_t cost() const { return bytes_.size() + marks_.size(); }

  [[nodiscard]] marked_text part(std::size_t begin, std::size_t size = std::string::npos) const;
  // `piece` lies within bytes().
  [[nodiscard]] marked_text part(std::string_view piece) const;

  // Reserves room for n bytes, and for marks if there are any or will be.
  void reserve(std::size_t n);
  marked_text& append(std::string_view bytes, origin of);
  marked_text& append(const marked_text& more);
  // `piece` lies within the bytes of `from`.
  marked_text& append(const marked_text& from, std::string_view piece);

  // The same bytes, all with one origin.
  [[nodiscard]] marked_text with_origin(origin all) && { return {std::move(bytes_), all}; }

  // Ascending and not adjacent.
  [[nodiscard]] std::vector<byte_range> message_ranges() const;

 private:
  [[nodiscard]] std::size_t offset_of(std::string_view piece) const;
  void spell_marks();
  void append_marked(std::string_view bytes, std::string_view marks, origin all);

  std::string bytes_;
  std::string marks_;  // an origin per byte; empty if all bytes have `all_`
  origin all_ = origin::own;
};

// `changed` is `from` in another case, by python_text.hpp; each character keeps its mark.
[[nodiscard]] marked_text with_marks_of(const marked_text& from, std::string changed);

}  // namespace bitnet::jinja
