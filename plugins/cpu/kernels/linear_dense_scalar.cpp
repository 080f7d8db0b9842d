// The reference of linear_dense.hpp: every other form returns the same bits.
#include <algorithm>

#include "bitnet/sdk/formats.hpp"
#include "linear_dense.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t chunk = 256;   // elements decoded at a time: a whole number of every block
constexpr uint64_t together = 8;  // tokens that share a decoded chunk

float total(float* p) {
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

}  // namespace

void linear_dense_scalar(const dense_tile& a) {
  for (uint64_t first = 0; first < a.tokens; first += together) {
    const uint64_t tokens = std::min(together, a.tokens - first);
    for (uint64_t r = 0; r < a.rows; ++r) {
      float partial[together][16] = {};
      const auto kept = [&](uint64_t t) { return a.partials + ((first + t) * a.rows + r) * 16; };
      for (uint64_t t = 0; a.partials != nullptr && t < tokens; ++t)
        std::copy_n(kept(t), 16, partial[t]);
      for (uint64_t at = 0; at < a.k; at += chunk) {
        const uint64_t n = std::min(chunk, a.k - at);
        float w[chunk];
        sdk::decode(a.format, a.w + r * a.w_stride, at, n, w);
        for (uint64_t t = 0; t < tokens; ++t) {
          const float* x = a.x + (first + t) * a.x_stride + at;
          for (uint64_t i = 0; i < n; ++i) partial[t][i % 16] += w[i] * x[i];
        }
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        if (a.partials != nullptr)
          std::copy_n(partial[t], 16, kept(t));
        else
          a.y[(first + t) * a.y_stride + r] = total(partial[t]);
      }
    }
  }
}

void weighted_sum_scalar(const weighted_rows& a) {
  if (a.format == kv_format::none) return;
  for (uint64_t j = 0; j < a.rows; ++j) {
    const uint8_t* row = a.v + j * a.v_stride;
    for (uint64_t at = 0; at < a.width; at += chunk) {
      const uint64_t n = std::min(chunk, a.width - at);
      float v[chunk];
      sdk::decode(static_cast<uint32_t>(a.format), row, at, n, v);
      for (uint64_t h = 0; h < a.heads; ++h)
        for (uint64_t d = 0; d < n; ++d)
          a.y[h * a.y_stride + at + d] += a.p[h * a.p_stride + j] * v[d];
    }
  }
}

}  // namespace bitnet::cpu
