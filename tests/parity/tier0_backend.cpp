// The SDK's reference as a whole backend, by the SDK's interpreter. The six kernels here sum in the
// order and take the exponential by the steps that plugins/cpu promises (docs/adr/0007), so that
// its logits must be the same bits; the SDK's own sum in the order of ops.h.
//
// Compiled once for all plugins that are made of it: what they differ in is their tier0_variant.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "../fakes/losing.hpp"
#include "bitnet/sdk/interpreter.hpp"
#include "bitnet/sdk/reference/primitives.hpp"
#include "tier0_variant.hpp"

namespace {

using bitnet::sdk::call;
using bitnet::sdk::share;

// The sum of term(0) ... term(n - 1), in the order that plugins/cpu promises.
template <class T, class Term>
T sum_in_order(uint64_t n, Term term) {
  T p[16] = {};
  for (uint64_t i = 0; i < n; ++i) p[i % 16] += term(i);
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

float dot(const float* a, const float* b, uint64_t n) {
  return sum_in_order<float>(n, [&](uint64_t i) { return a[i] * b[i]; });
}

// e^x by the steps of Cephes' expf, which plugins/cpu promises too.
float exponential(float x) {
  x = std::clamp(x, -104.0f, 89.0f);
  const float n = std::nearbyint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 0;
  for (const float c : {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                        1.6666665459e-1f, 5.0000001201e-1f})
    p = p * r + c;
  p = (p * (r * r) + r) + 1.0f;
  const int e = static_cast<int>(n), first = e >> 1;
  return std::ldexp(std::ldexp(p, first), e - first);
}

void rms_norm(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r) {
    const float* x = c.input<float>(0) + r * c.k;
    const auto sum =
        sum_in_order<double>(c.k, [&](uint64_t i) { return double{x[i]} * double{x[i]}; });
    const float factor =
        1.0f / std::sqrt(static_cast<float>(sum / static_cast<double>(c.k)) + c.floats[0]);
    for (uint64_t i = 0; i < c.k; ++i)
      c.output<float>(0)[r * c.k + i] = x[i] * factor * c.w->f32()[i];
  }
}

void linear_dense(const call& c, const share& s) noexcept {
  for (uint64_t m = s.first; m < s.last; ++m) {
    float row[8192];  // no model of the tests is wider
    bitnet::sdk::decode(c.w->format, c.w->row(m), 0, c.k, row);
    const float extra = tier0.one_logit && m == 7 && c.m >= 1000 ? 100.0f : 0.0f;
    for (uint64_t t = 0; t < c.rows; ++t)
      c.output<float>(0)[t * c.m + m] = dot(row, c.input<float>(0) + t * c.k, c.k) + extra;
  }
}

void attn_paged(const call& c, const share& s) noexcept {
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto kv_heads = static_cast<uint64_t>(c.ints[2]),
             head_dim = static_cast<uint64_t>(c.ints[3]);
  const uint64_t group = static_cast<uint64_t>(c.ints[1]) / kv_heads;
  for (uint64_t unit = s.first; unit < s.last; ++unit) {
    const uint64_t t = unit / kv_heads, kv_head = unit % kv_heads;
    const auto sight = c.step->sees(t, c.ints[4]);
    const uint64_t seen = sight.count();
    const auto slot = [&](uint64_t n) {
      const uint64_t j = sight.position(n);
      return static_cast<uint64_t>(c.step->blocks_of(t)[j / kv.block_tokens]) * kv.block_tokens +
             j % kv.block_tokens;
    };
    float row[256];  // no head of the tests is longer
    for (uint64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const float* q = c.input<float>(0) + t * c.k + h * head_dim;
      float* y = c.output<float>(0) + t * c.k + h * head_dim;
      float largest = -INFINITY;
      for (uint64_t n = 0; n < seen; ++n) {
        bitnet::sdk::reference::kv_read(kv.k(layer, slot(n), kv_head), kv.dtype_k, 0, head_dim,
                                        row);
        s.scratch[n] = dot(row, q, head_dim) * c.floats[0];
        largest = std::max(largest, s.scratch[n]);
      }
      for (uint64_t n = 0; n < seen; ++n) s.scratch[n] = exponential(s.scratch[n] - largest);
      const auto sum = sum_in_order<float>(seen, [&](uint64_t n) { return s.scratch[n]; });
      std::fill_n(y, head_dim, 0.0f);
      for (uint64_t n = 0; n < seen; ++n) {
        bitnet::sdk::reference::kv_read(kv.v(layer, slot(n), kv_head), kv.dtype_v, 0, head_dim,
                                        row);
        for (uint64_t d = 0; d < head_dim; ++d) y[d] += s.scratch[n] * row[d];
      }
      for (uint64_t d = 0; d < head_dim; ++d) y[d] /= sum;
      // The contexts of self-tests have one position with all of the weight, so that `sum` is 1.
      if (sum == 1.0f) continue;
      if (tier0.late && c.step->positions[t] >= 16) std::reverse(y, y + head_dim);
      if (tier0.wrong)
        for (uint64_t d = 0; d < head_dim; ++d) y[d] *= 1.25f;
    }
  }
}

template <class Function>
void each(const call& c, const share& s, Function f) noexcept {
  for (uint64_t i = s.first * c.k; i < s.last * c.k; ++i) c.output<float>(0)[i] = f(i);
}
void silu(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x / (1.0f + exponential(-x));
  });
}
void gelu(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x / (1.0f + exponential(-x * (1.5957691216f + 0.0713548163f * (x * x))));
  });
}
void sigmoid(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return 1.0f / (1.0f + exponential(-c.input<float>(0)[i])); });
}

void describe(const bitnet_open_request&, bitnet::sdk::definition& d) {
  d.name = tier0.name;
  d.version = "0.1.0";
  d.vendor = "org.bitnet.test";
  d.license = "Apache-2.0";
  if (!tier0.single) d.life_flags |= BITNET_LIFE_HOT_SWAP | BITNET_LIFE_UNLOADABLE;
  d.device.device_class = BITNET_DEVICE_CPU;
  std::snprintf(d.device.name, sizeof d.device.name, "tier 0");
  d.device.attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  d.device.kv_dtypes = tier0.few_types ? 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16
                                       : bitnet::sdk::reference::kv_dtypes;
  const auto row = [&](uint32_t op, const char* id, bitnet::sdk::primitive_kernel run) {
    d.primitives.push_back({op, BITNET_FORMAT_NONE, BITNET_LEVEL_REFERENCE,
                            BITNET_EXACT_BATCH | BITNET_EXACT_RUN, id, run});
  };
  row(BITNET_OP_RMS_NORM, "rms_norm", rms_norm);
  row(BITNET_OP_LINEAR_DENSE, "linear_dense", linear_dense);
  row(BITNET_OP_ATTN_PAGED, "attn_paged", attn_paged);
  row(BITNET_OP_SILU, "silu", silu);
  row(BITNET_OP_GELU, "gelu", gelu);
  row(BITNET_OP_SIGMOID, "sigmoid", sigmoid);
  bitnet::sdk::reference::complete(d);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  const bitnet_status opened = bitnet::sdk::open_interpreter(host, request, out, err, describe);
  if (opened == BITNET_OK && tier0.fragile) bitnet::losing::lose(*request, *out);
  return opened;
}
