#include "forms.hpp"

namespace bitnet::level_zero {

const form* form_of(const gpu::kernel_spec& spec) noexcept {
  const form* best = nullptr;
  for (const form& f : forms()) {
    if (f.id != spec.id) continue;
    bool fits = true;
    for (uint32_t i = 0; i < 5; ++i)
      fits = fits && (f.loose != 0 && i == f.loose ? f.constants[i] >= spec.constants[i]
                                                   : f.constants[i] == spec.constants[i]);
    if (fits && (!best || f.constants[f.loose] < best->constants[f.loose])) best = &f;
  }
  return best;
}

}  // namespace bitnet::level_zero
