#pragma once
// What `bench` measures one after the other: models, and with --matrix backends.

#include <string>
#include <vector>

#include "library/engine.hpp"

namespace bitnet::host {

struct bench_target {
  std::string model;   // as in find_model
  std::string device;  // "" = as the settings say
};
// Models in the order in which they were named; with --matrix each on every device: the names of
// --device, or all that can be used. Exit code 4 where there is none.
[[nodiscard]] result<std::vector<bench_target>> bench_targets(const invocation& in);

// The settings of a target.
[[nodiscard]] result<settings> settings_for(const settings& given, const bench_target& target);

}  // namespace bitnet::host
