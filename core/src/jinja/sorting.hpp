#pragma once
// A stable sort that accepts an inconsistent order: NaN among numbers, or a comparison that failed.
//
// With such an order std::sort may read out of range, and std::stable_sort of libstdc++ 12 calls
// functions that C++23 deprecates.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace bitnet::jinja {

template <class Element, class Less>
void sort_in_order(std::vector<Element>& all, const Less& less) {
  std::vector<Element> merged(all.size());
  const auto at = [](auto& of, std::size_t i) {
    return of.begin() + static_cast<std::ptrdiff_t>(std::min(i, of.size()));
  };
  const auto moved = [&](std::size_t i) { return std::make_move_iterator(at(all, i)); };
  for (std::size_t width = 1; width < all.size(); width *= 2) {
    for (std::size_t i = 0; i < all.size(); i += 2 * width)
      std::merge(moved(i), moved(i + width), moved(i + width), moved(i + 2 * width), at(merged, i),
                 less);
    all.swap(merged);
  }
}

}  // namespace bitnet::jinja
