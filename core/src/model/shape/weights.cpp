#include "model/shape/weights.hpp"

namespace bitnet::model {

uint32_t activation_group_of(const weight& w, uint32_t wanted) {
  constexpr uint64_t longest = 8192;
  const auto k = static_cast<uint64_t>(w.ne[0]);
  const uint64_t own = w.scale_group == 0 ? k : w.scale_group;
  if (w.format != BITNET_FORMAT_TERNARY2 || (own != k && (own % 32 != 0 || own > longest)))
    return 0;
  for (const uint32_t group : {128U, 64U, 32U})
    if (group <= wanted && k % group == 0 && (own % group == 0 || group % own == 0)) return group;
  return 0;
}

}  // namespace bitnet::model
