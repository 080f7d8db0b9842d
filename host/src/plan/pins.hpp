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

// Backend settings that only choose kernels; a plan may set no others.
struct form {
  std::string_view backend, setting;
  std::string_view values;  // "on|off"
};
[[nodiscard]] const std::vector<form>& all_forms();
// Why a setting such as "vulkan.subgroups=0" is not allowed in a plan; "": it is allowed.
[[nodiscard]] std::string why_no_form(std::string_view text);
// Text for messages about a kernel that differs from the plan: the settings of that backend.
[[nodiscard]] std::string forms_text(std::string_view backend);

// The value of cpu.isa that gives the kernels with these ids and names; "": unknown.
[[nodiscard]] std::string isa_of(const part& on);

}  // namespace bitnet::host::plans
