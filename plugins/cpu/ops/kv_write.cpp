#include <cstring>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

void store(const isa_form& isa, const float* x, uint64_t n, uint32_t dtype, uint8_t* out) {
  if (dtype == BITNET_DTYPE_F32)
    std::memcpy(out, x, n * sizeof(float));
  else if (dtype == BITNET_DTYPE_Q8_0)
    isa.rows.q8_0(x, n, out);
  else
    isa.rows.halves(x, n, out);
}

}  // namespace

void kv_write_row(const isa_form& isa, const sdk::kv_storage& kv, uint64_t layer, uint64_t slot,
                  const float* k, const float* v) {
  store(isa, k, kv.width, kv.dtype_k, kv.k(layer, slot));
  store(isa, v, kv.width, kv.dtype_v, kv.v(layer, slot));
}

}  // namespace bitnet::cpu
