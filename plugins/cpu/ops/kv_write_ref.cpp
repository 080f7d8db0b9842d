#include <cstring>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

void store(const float* x, uint64_t n, uint32_t dtype, uint8_t* out) {
  if (dtype == BITNET_DTYPE_F32) {
    std::memcpy(out, x, n * sizeof(float));
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint16_t half = sdk::f32_to_f16(x[i]);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

}  // namespace

void kv_write_row(const sdk::kv_storage& kv, uint64_t layer, uint64_t slot, const float* k,
                  const float* v) {
  store(k, kv.width, kv.dtype_k, kv.k(layer, slot));
  store(v, kv.width, kv.dtype_v, kv.v(layer, slot));
}

}  // namespace bitnet::cpu
