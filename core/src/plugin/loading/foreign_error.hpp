#pragma once
// Errors that a plugin fills in.

#include <fmt/core.h>

#include <string>

#include "bitnet/abi/base.h"
#include "plugin/codes/text.hpp"

namespace bitnet::plugin {

[[nodiscard]] inline bitnet_error blank_error() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

[[nodiscard]] inline std::string describe(bitnet_status status, const bitnet_error& e) {
  std::string out = printable_array(e.message);
  if (out.empty()) out = "no reason given";
  out += fmt::format(" (status {}", status);
  if (e.native_code != 0) out += fmt::format(", {} {}", printable_array(e.domain), e.native_code);
  return out + ")";
}

}  // namespace bitnet::plugin
