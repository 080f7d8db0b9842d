#pragma once
// Settings from a YAML file: one mapping whose keys are the long flag names.
//
//   ctx-size: 4k
//   temp: 0.7
//   reverse-prompt: ["User:", "###"]
//
// Limits  64 KiB, one document, no anchors, aliases or tags, nothing nested below a list.
// Errors  exit code 2 with file:line for a wrong type or a broken file; an unknown key is a
//         warning.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "settings/value.hpp"

namespace bitnet::host {

inline constexpr uint64_t longest_config = uint64_t{64} * 1024;  // bytes

struct config_setting {
  const option* row;
  value content;
  int line;
};

struct config_contents {
  std::vector<config_setting> settings;
  std::vector<std::string> warnings;  // "file:line: unknown key ..."
};

// `file`: the file's name in messages.
[[nodiscard]] result<config_contents> parse_config(std::string_view text, const std::string& file);

}  // namespace bitnet::host
