#pragma once
// --n-gpu-layers, --split-mode and --tensor-split, and the devices that the layers are on.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::host {

struct layer_count {
  uint32_t how = BITNET_GPU_LAYERS_AUTO;
  uint32_t n = 0;  // for BITNET_GPU_LAYERS_COUNT
};
// Parses auto, all, or a number of layers.
[[nodiscard]] result<layer_count> read_gpu_layers(std::string_view text);
// Parses "3,1": numbers from 0 on, not all of them 0. "" gives an empty list.
[[nodiscard]] result<std::vector<float>> read_shares(std::string_view text);

// The member `parts` of a session's report as text: "embedding and 0-11 on cpu:0, 12-29 and head on
// cuda:0", with bytes if `sizes`. "" if everything is on `selected`.
[[nodiscard]] std::string layers_text(const nlohmann::json& report, const std::string& selected,
                                      bool sizes);

}  // namespace bitnet::host
