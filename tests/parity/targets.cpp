// Compiled for each binary with the paths of its plugins: BITNET_TIER0_PLUGIN, and
// BITNET_GPU_PLUGIN or, where the cpu backend is built, BITNET_CPU_PLUGIN.

#include "targets.hpp"

#if defined(BITNET_CPU_PLUGIN)
#include "cpu/forms.hpp"
#endif

namespace bitnet::parity {

const target& tier0() {
  static const target one{"tier0", BITNET_TIER0_PLUGIN, ""};
  return one;
}

#if defined(BITNET_GPU_PLUGIN)
std::vector<target> all_plugins() {
  return {{"gpu", BITNET_GPU_PLUGIN, "", true}};
}

std::vector<target> all_targets() {
  return all_plugins();
}
#elif defined(BITNET_CPU_PLUGIN)
std::vector<target> all_plugins() {
  return {tier0(), {"cpu", BITNET_CPU_PLUGIN, ""}};
}

std::vector<target> all_targets() {
  std::vector<target> out{tier0()};
  for (const cpu::isa_form* form : all_forms())
    out.push_back({"cpu_" + test_name(form->name), BITNET_CPU_PLUGIN, form->name});
  return out;
}
#else
std::vector<target> all_plugins() {
  return {tier0()};
}

std::vector<target> all_targets() {
  return all_plugins();
}
#endif

}  // namespace bitnet::parity
