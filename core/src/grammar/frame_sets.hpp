#pragma once
// Sets of frames: the places where a matcher may be in a grammar. A frame is a place among the
// elements with, below it, the set of places where to continue after its rule. So all stacks of a
// matcher share their common parts, and equal sets have one number.

#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace bitnet::grammar {

using set_number = uint32_t;

struct frame {
  uint32_t position;
  set_number below;
  auto operator<=>(const frame&) const = default;
};

class frame_sets {
 public:
  static constexpr set_number end = 0;   // only the end of the text is left
  static constexpr set_number none = 1;  // no place at all

  frame_sets();

  // Takes the frames in any order. Frames of one place become one, whose set below is the union of
  // theirs.
  set_number number_of(std::vector<frame>& frames);
  [[nodiscard]] std::span<const frame> of(set_number set) const;  // valid until the next number_of
  [[nodiscard]] uint32_t depth(set_number set) const { return sets_[set].depth; }

  // Copies a set and all below it to `to`; `copied` maps the sets that were copied before.
  set_number copy_to(frame_sets& to, set_number set,
                     std::unordered_map<set_number, set_number>& copied) const;

  [[nodiscard]] uint64_t bytes() const;
  // How many frames were looked at so far.
  [[nodiscard]] uint64_t work() const { return work_; }

 private:
  struct extent {
    uint32_t begin, size, depth;
  };

  set_number united(set_number a, set_number b);
  set_number numbered(std::span<const frame> sorted);

  std::vector<frame> frames_;
  std::vector<extent> sets_;
  std::unordered_multimap<uint64_t, set_number> by_hash_;
  std::unordered_map<uint64_t, set_number> unions_;  // by both numbers, the lower one first
  uint64_t work_ = 0;
};

}  // namespace bitnet::grammar
