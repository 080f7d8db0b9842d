#include "waves.hpp"

#include "plugins/rocm/kernels/launch.hpp"
#include "simt.hpp"

namespace {

using bitnet::kernels::joined_launch;
using bitnet::kernels::launch;

struct work {
  void* kernel;
  const void* value;
  bool joined;
};

void call(const void* given) {
  const auto& one = *static_cast<const work*>(given);
  if (one.joined)
    reinterpret_cast<void (*)(joined_launch)>(one.kernel)(
        *static_cast<const joined_launch*>(one.value));
  else
    reinterpret_cast<void (*)(launch)>(one.kernel)(*static_cast<const launch*>(one.value));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void bitnet_waves_run(void* kernel, const void* value,
                                                             bool joined,
                                                             const bitnet_waves_grid* how) {
  const work one{kernel, value, joined};
  simt::run(call, &one,
            {{how->groups_x, how->groups_y, 1}, how->threads, how->shared_bytes, true, how->name});
}
__attribute__((visibility("default"))) unsigned int bitnet_waves_lanes() {
  return simt::lanes;
}

}  // extern "C"
