#pragma once
// What a run has to ask for so that it keeps to a plan.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "result.hpp"

namespace bitnet::host::plans {

struct pins {
  std::string backend = {};              // the request
  bool all_layers = false;               // of the model, with the embedding; else `n_layers`
  uint32_t n_layers = 0;                 // the last ones, on devices of that backend
  std::vector<float> shares = {};        // of them, by the index of the device
  std::vector<std::string> params = {};  // "cpu.isa=avx2"
};

// Exit code 14 where this engine cannot cut a model like that.
[[nodiscard]] result<pins> pins_of(const plan& of);

// The number behind the colon of "cuda:1", nothing where there is none that a plan may have.
[[nodiscard]] std::optional<uint32_t> device_index(std::string_view device);

// Settings of our backends that choose kernels, and nothing else: a plan may set no others.
struct form {
  std::string_view backend, setting;
  std::string_view values;  // "on|off"
};
[[nodiscard]] const std::vector<form>& all_forms();
// Why "vulkan.subgroups=0" may not stand in a plan; "": it may.
[[nodiscard]] std::string why_no_form(std::string_view text);
// What messages add where a kernel of the backend is not the one that a plan has.
[[nodiscard]] std::string forms_text(std::string_view backend);

// The value of cpu.isa that has the kernels of these ids and names; "": none follows from them.
[[nodiscard]] std::string isa_of(const part& on);

}  // namespace bitnet::host::plans
