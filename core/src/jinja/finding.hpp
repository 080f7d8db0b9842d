#pragma once
// A text that is looked for in another one, in steps for what is looked at: linear in both,
// whatever they are.

#include <string_view>
#include <vector>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

class text_finder {
 public:
  enum class way : uint8_t { forwards, backwards };
  // `what` stays with the caller.
  text_finder(rendering& at, std::string_view what, way direction = way::forwards);

  // Where the first one begins, or the last one where it looks backwards; npos if there is none.
  [[nodiscard]] std::size_t in(std::string_view text);

 private:
  [[nodiscard]] std::size_t by_table(std::string_view text) const;

  rendering& at_;
  std::string_view what_;
  bool back_;
  // By how many bytes of it fit, how many still do where the next one does not: D. E. Knuth,
  // J. H. Morris, V. R. Pratt, Fast pattern matching in strings, 1977. Empty for short texts.
  std::vector<uint32_t> fallback_;
};

}  // namespace bitnet::jinja
