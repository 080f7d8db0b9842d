#pragma once
// Searches a text for another one, and counts steps for the bytes read. The time is linear in both
// texts.

#include <string_view>
#include <vector>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

class text_finder {
 public:
  enum class way : uint8_t { forwards, backwards };
  // The caller keeps `what` alive.
  text_finder(rendering& at, std::string_view what, way direction = way::forwards);

  // Position of the first match, or of the last one if it searches backwards; npos: none.
  [[nodiscard]] std::size_t in(std::string_view text);

 private:
  [[nodiscard]] std::size_t by_table(std::string_view text) const;

  rendering& at_;
  std::string_view what_;
  bool back_;
  // Indexed by the number of matching bytes: how many remain after a mismatch. D. E. Knuth, J. H.
  // Morris, V. R. Pratt, Fast pattern matching in strings, 1977. Empty for short texts.
  std::vector<uint32_t> fallback_;
};

}  // namespace bitnet::jinja
