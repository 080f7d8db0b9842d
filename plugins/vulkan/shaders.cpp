#include "shaders.hpp"

namespace bitnet::vulkan {

const shader* shader_of(gpu::kernel_id id, const forms& device) {
  const shader* best = nullptr;
  const auto uses = [](const shader& s) { return int{s.subgroups} + int{s.dot_product}; };
  for (const shader& s : shaders()) {
    if (s.id != id || (s.subgroups && device.subgroup == 1) ||
        (s.dot_product && !device.dot_product))
      continue;
    if (!best || uses(s) > uses(*best)) best = &s;
  }
  return best;
}

}  // namespace bitnet::vulkan
