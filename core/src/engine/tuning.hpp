#pragma once
// Settings of a device that only measuring finds (bitnet/abi/tuning.h): measured at the first
// start, kept beside the packed weights, handed over at the next.

#include <string>
#include <vector>

#include "bitnet/abi/backend.h"
#include "engine/pack_cache.hpp"
#include "select/selection.hpp"

namespace bitnet::engine {

// The settings that the device uses now, by bitnet_tuning_v1::describe, "" if its backend has none
// to tune. They are measured if `now`, or if there is a cache without a reliable result. Errors are
// notes of the cache: the backend keeps its settings.
[[nodiscard]] std::string tune(const select::choice& choice, bitnet_device* device,
                               const pack_cache* cache, bool now);

// One setting of such a text, with its measurement: "ahead:4096=30.1~2".
struct tuning_figure {
  std::string setting, value;
  double figure = 0, spread_percent = 0;
};
struct tuning_text {
  std::string settings;  // the other words
  std::vector<tuning_figure> figures;
};
[[nodiscard]] tuning_text read_tuning(const std::string& text);

}  // namespace bitnet::engine
