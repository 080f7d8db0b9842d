#include "plugin/codes/codes.hpp"

#include <array>

#include "base/wording.hpp"

namespace bitnet::plugin {
namespace {

struct row {
  std::string_view text, hint;
};

#define BITNET_CODE_ROW(id, text, hint) row{text, hint},
constexpr auto rows = std::to_array<row>({BITNET_CODES(BITNET_CODE_ROW)});
#undef BITNET_CODE_ROW

}  // namespace

std::string_view code_text(code c) {
  return rows[static_cast<std::size_t>(c)].text;
}

std::string code_hint(code c) {
  return say_in(rows[static_cast<std::size_t>(c)].hint);
}

std::optional<code> code_of(std::string_view text) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].text == text) return static_cast<code>(i);
  return std::nullopt;
}

}  // namespace bitnet::plugin
