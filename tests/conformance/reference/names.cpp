#include "reference/names.hpp"

#include "bitnet/abi/info.h"
#include "bitnet/abi/ops.h"
#include "model/formats.hpp"

namespace bitnet::conformance {
namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

const std::vector<op_row>& all_ops() {
#define BITNET_ROW(NAME, ID, ...) {ID, lower(#NAME)},
  static const std::vector<op_row> rows = {BITNET_OP_LIST(BITNET_ROW)};
#undef BITNET_ROW
  return rows;
}

std::string op_name(uint32_t id) {
  for (const op_row& row : all_ops())
    if (row.id == id) return row.name;
  return "op " + std::to_string(id);
}

const char* level_name(uint32_t level) {
  switch (level) {
    case BITNET_LEVEL_NONE:
      return "none";
    case BITNET_LEVEL_REFERENCE:
      return "reference";
    case BITNET_LEVEL_OPTIMISED:
      return "optimised";
    case BITNET_LEVEL_FUSED:
      return "fused";
    default:
      return "unknown";
  }
}

std::string kernel_name(uint32_t op, uint32_t format) {
  const std::string of = format_name(format);
  return op_name(op) + (of.empty() ? "" : "." + of);
}

}  // namespace bitnet::conformance
