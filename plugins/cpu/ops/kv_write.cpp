#include <cstring>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

void store(const isa_form& isa, const float* x, uint64_t n, uint32_t dtype, uint8_t* out) {
  switch (kv_format_of(dtype)) {
    case kv_format::f32:
      std::memcpy(out, x, n * sizeof(float));
      return;
    case kv_format::f16:
      return isa.rows.halves(x, n, out);
    case kv_format::q8_0:
      return isa.rows.q8_0(x, n, out);
    case kv_format::q4_0:
      return isa.rows.q4_0(x, n, out);
    case kv_format::none:
      return;
  }
}

}  // namespace

void kv_write_row(const isa_form& isa, const sdk::kv_storage& kv, uint64_t layer, uint64_t slot,
                  const float* k, const float* v) {
  for (uint64_t head = 0; head < kv.n_kv_heads; ++head, k += kv.head_dim, v += kv.head_dim) {
    store(isa, k, kv.head_dim, kv.dtype_k, kv.k(layer, slot, head));
    store(isa, v, kv.head_dim, kv.dtype_v, kv.v(layer, slot, head));
  }
}

}  // namespace bitnet::cpu
