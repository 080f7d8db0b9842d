#include <algorithm>
#include <array>

#include "model/architectures/architecture.hpp"
#include "text/ascii.hpp"

namespace bitnet::model {
namespace {

constexpr std::array all_rows = {
#define BITNET_ROW(name) &rows::name,
    BITNET_ARCHITECTURES(BITNET_ROW)
#undef BITNET_ROW
};

std::string without_punctuation(std::string_view spelled) {
  std::string plain;
  for (const char c : spelled)
    if (c != '-' && c != '_' && c != '.' && c != ' ') plain += lower_ascii(c);
  return plain;
}

}  // namespace

const architecture* find_architecture(std::string_view spelled) {
  const std::string plain = without_punctuation(spelled);
  if (plain.empty()) return nullptr;
  const auto is_meant = [&](const architecture* row) {
    return without_punctuation(row->name) == plain || without_punctuation(row->also) == plain;
  };
  const auto* row = std::ranges::find_if(all_rows, is_meant);
  return row == all_rows.end() ? nullptr : *row;
}

std::string architecture_names() {
  std::string out;
  for (const architecture* row : all_rows) {
    if (row != all_rows.front()) out += row == all_rows.back() ? " and " : ", ";
    out += row->name;
  }
  return out;
}

std::vector<const huggingface::checkpoint_form*> checkpoint_forms() {
  std::vector<const huggingface::checkpoint_form*> out;
  for (const architecture* row : all_rows)
    if (row->checkpoint != nullptr && std::ranges::find(out, row->checkpoint) == out.end())
      out.push_back(row->checkpoint);
  return out;
}

}  // namespace bitnet::model
