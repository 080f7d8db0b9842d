#pragma once
// Settings of backends in variables of the environment: BITNET_<NAME>_<KEY>, in upper case, with
// '_' for the '-' and '.' of a name.

#include <optional>
#include <string>
#include <string_view>

#include "text/ascii.hpp"

namespace bitnet {

// The key, in lower case, of the setting for `backend` that this variable has; nullopt if it has
// none. BITNET_CPU_ISA is "isa" for "cpu".
[[nodiscard]] inline std::optional<std::string> backend_setting(std::string_view backend,
                                                                std::string_view variable) {
  std::string start = "BITNET_";
  for (const char c : backend) start += (c == '-' || c == '.') ? '_' : upper_ascii(c);
  start += '_';
  if (variable.size() <= start.size() || !variable.starts_with(start)) return std::nullopt;
  return lower_ascii(std::string(variable.substr(start.size())));
}

}  // namespace bitnet
