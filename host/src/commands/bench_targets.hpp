#pragma once
// The list of things that `bench` measures: models, and with --matrix backends.

#include <string>
#include <vector>

#include "session/engine.hpp"

namespace bitnet::host {

struct bench_target {
  std::string model;   // as in find_model
  std::string device;  // "": the device of the settings
};
// The models in the order given; with --matrix, each one on every device of --device, or on all
// usable ones. Exit code 4 if there is no usable device.
[[nodiscard]] result<std::vector<bench_target>> bench_targets(const invocation& in);

// The settings of a target.
[[nodiscard]] result<settings> settings_for(const settings& given, const bench_target& target);

}  // namespace bitnet::host
