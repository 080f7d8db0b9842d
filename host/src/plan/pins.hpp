#pragma once
// The settings with which a run keeps to a plan.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "plan/plan.hpp"

namespace bitnet::host::plans {

struct pins {
  std::string backend = {};              // the requested backend
  bool all_layers = false;               // all layers and the embedding; else `n_layers`
  uint32_t n_layers = 0;                 // the last layers, on devices of that backend
  std::vector<float> shares = {};        // layers of each device, by its index
  std::vector<std::string> params = {};  // "cpu.isa=avx2"
};

// Exit code 14 if this engine cannot divide a model as the plan says.
[[nodiscard]] result<pins> pins_of(const plan& of);

// The number in "cuda:1"; nothing if it is absent or too large for a plan.
[[nodiscard]] std::optional<uint32_t> device_index(std::string_view device);

}  // namespace bitnet::host::plans
