#include "reference/kv_store.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bitnet/abi/tensor.h"
#include "model/formats.hpp"

namespace bitnet::conformance {
namespace {

// One block of 32, in f32 as tensor.h says it.
void pack_q8_0(const float* x, uint8_t* out) {
  float m = 0;
  for (uint64_t i = 0; i < BITNET_Q8_0_BLOCK; ++i)
    if (!std::isnan(x[i])) m = std::max(m, std::fabs(x[i]));
  const uint16_t d = float_to_half(std::min(m / 127.0f, 65504.0f));
  out[0] = static_cast<uint8_t>(d);
  out[1] = static_cast<uint8_t>(d >> 8);
  const float step = half_to_float(d);
  for (uint64_t i = 0; i < BITNET_Q8_0_BLOCK; ++i) {
    const float code =
        step == 0 ? 0 : std::clamp(std::nearbyint(x[i] * (1.0f / step)), -127.0f, 127.0f);
    out[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(code));
  }
}

// The same of 4 bits.
void pack_q4_0(const float* x, uint8_t* out) {
  float e = 0;
  for (uint64_t i = 0; i < BITNET_Q4_0_BLOCK; ++i)
    if (std::fabs(x[i]) > std::fabs(e)) e = x[i];
  const float s = std::clamp(e / -8.0f, -65504.0f, 65504.0f);
  const uint16_t d = float_to_half(s);
  out[0] = static_cast<uint8_t>(d);
  out[1] = static_cast<uint8_t>(d >> 8);
  for (uint64_t i = 0; i < BITNET_Q4_0_BLOCK; ++i) {
    const float scaled = half_to_float(d) == 0 ? 0 : x[i] * (1.0f / s);
    const auto q = static_cast<uint8_t>(std::floor(std::clamp(scaled + 8.5f, 0.0f, 15.0f)));
    uint8_t& pair = out[2 + i % 16];
    pair = static_cast<uint8_t>(i < 16 ? q : pair | q << 4);
  }
}

}  // namespace

std::vector<uint8_t> kv_pack(uint32_t dtype, std::span<const float> x) {
  std::vector<uint8_t> out(kv_head_bytes(dtype, x.size()));
  if (dtype == BITNET_DTYPE_F32) std::memcpy(out.data(), x.data(), out.size());
  for (uint64_t i = 0; dtype == BITNET_DTYPE_F16 && i < x.size(); ++i) {
    const uint16_t h = float_to_half(x[i]);
    out[2 * i] = static_cast<uint8_t>(h);
    out[2 * i + 1] = static_cast<uint8_t>(h >> 8);
  }
  for (uint64_t i = 0; dtype == BITNET_DTYPE_Q8_0 && i < x.size(); i += BITNET_Q8_0_BLOCK)
    pack_q8_0(x.data() + i, out.data() + i / BITNET_Q8_0_BLOCK * BITNET_Q8_0_BLOCK_BYTES);
  for (uint64_t i = 0; dtype == BITNET_DTYPE_Q4_0 && i < x.size(); i += BITNET_Q4_0_BLOCK)
    pack_q4_0(x.data() + i, out.data() + i / BITNET_Q4_0_BLOCK * BITNET_Q4_0_BLOCK_BYTES);
  return out;
}

double kv_element(uint32_t dtype, const uint8_t* head, uint64_t i) {
  return element(kv_type_of(dtype).format, head, i);
}

uint64_t kv_layout::block_bytes() const {
  return at(false, layers, 0, 0);
}

uint64_t kv_layout::at(bool value, uint64_t layer, uint64_t head, uint64_t token) const {
  const uint64_t k = kv_head_bytes(dtype_k, head_dim), v = kv_head_bytes(dtype_v, head_dim);
  const uint64_t tokens = heads * block_tokens;
  return layer * tokens * (k + v) + (value ? tokens * k : 0) +
         (head * block_tokens + token) * (value ? v : k);
}

}  // namespace bitnet::conformance
