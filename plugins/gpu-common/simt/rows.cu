// Kernels of whole rows: norms, quantisation, transforms.

#include "group.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Stores word w of the codes of a row with group factors, from the elements v, which are zeros past
// the row. For the first word of a group it also stores the factor. All lanes of a warp call it
// with adjacent words. A group has 8, 16 or 32 words, all in one warp, because a row has a multiple
// of 32 words.
__device__ inline void quantise_word(const float (&v)[4], uint32_t w, uint32_t k, uint32_t group,
                                     uint32_t* q, float* d) {
  const uint32_t words = group / 4;
  float largest = 1e-30f;
  for (const float one : v) largest = larger(largest, fabsf(one));
  for (uint32_t apart = words / 2; apart != 0; apart /= 2)
    largest = larger(largest, shuffle_xor(largest, apart));
  const float scale = 127.0f / largest;
  if (w >= static_cast<uint32_t>(gpu::i8_row_words(k))) return;
  q[w] = packed4(quantised(v[0], scale), quantised(v[1], scale), quantised(v[2], scale),
                 quantised(v[3], scale));
  if (w % words == 0 && 4 * w < k) d[w / words] = largest / 127.0f;
}
// Four elements of a row: activation(gate) * up.
__device__ inline void gated_four_of(const float* gate, const float* up, uint32_t op, uint32_t w,
                                     uint32_t k, float (&out)[4]) {
  float by[4];
  four_of(gate, w, k, out);
  four_of(up, w, k, by);
  for (uint32_t i = 0; i < 4; ++i) out[i] = activation(op, out[i]) * by[i];
}
// Words of a row and those past it, so that each lane of a warp has one.
__device__ inline uint32_t words_of_warps(uint32_t k) {
  return (static_cast<uint32_t>(gpu::i8_row_words(k)) + warp - 1) / warp * warp;
}

}  // namespace

BITNET_KERNEL(rms_norm) {
  const auto p = params_of<gpu::rms_norm_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  each_row(uint64_t{rows_of(l)} * p.heads, [&](uint64_t r) {
    const float* in = x + r * p.k;
    const float factor = norm_factor(in, p.k, p.eps);
    float* out = y + r * p.k;
    for (uint32_t w = threadIdx.x; 4 * w < p.k; w += threads) {
      float v[4];
      normed_four_of(in, factor, weight, w, p.k, v);
      put_four(out, w, p.k, v);
    }
  });
}

BITNET_KERNEL(act_quant) {
  const auto p = params_of<gpu::act_quant_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* q = memory_of<uint32_t>(l, 2);
  auto* s = memory_of<float>(l, 3);
  each_row(rows_of(l), [&](uint64_t r) {
    const float* in = x + r * p.k;
    const float scale = quantise_row([&](uint32_t w, float(&v)[4]) { four_of(in, w, p.k, v); }, p.k,
                                     q + r * gpu::i8_row_words(p.k));
    if (threadIdx.x == 0) s[r] = scale;
  });
}

// Adjacent lanes take the four elements of a word each, so that a warp reads and writes adjacent
// memory.
BITNET_KERNEL(act_quant_groups) {
  const auto p = params_of<gpu::act_quant_groups_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* q = memory_of<uint32_t>(l, 2);
  auto* d = memory_of<float>(l, 3);
  each_y(rows_of(l), [&](uint32_t r) {
    each_x(words_of_warps(p.k), [&](uint32_t w) {
      float v[4] = {};
      if (4 * w < p.k) four_of(x + uint64_t{r} * p.k, w, p.k, v);
      quantise_word(v, w, p.k, p.group, q + r * gpu::i8_row_words(p.k),
                    d + uint64_t{r} * (p.k / p.group));
    });
  });
}

// The bits of rms_norm, then act_quant.
BITNET_KERNEL(norm_quant) {
  const auto p = params_of<gpu::norm_quant_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* q = memory_of<uint32_t>(l, 3);
  auto* s = memory_of<float>(l, 4);
  each_row(rows_of(l), [&](uint64_t r) {
    const float* in = x + r * p.k;
    const float factor = norm_factor(in, p.k, p.eps);
    const float scale = quantise_row(
        [&](uint32_t w, float(&v)[4]) { normed_four_of(in, factor, weight, w, p.k, v); }, p.k,
        q + r * gpu::i8_row_words(p.k));
    if (threadIdx.x == 0) s[r] = scale;
  });
}

// The bits of rms_norm, then act_quant_groups.
BITNET_KERNEL(norm_quant_groups) {
  const auto p = params_of<gpu::norm_quant_groups_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* q = memory_of<uint32_t>(l, 3);
  auto* d = memory_of<float>(l, 4);
  each_row(rows_of(l), [&](uint64_t r) {
    const float* in = x + r * p.k;
    const float factor = norm_factor(in, p.k, p.eps);
    for (uint32_t w = threadIdx.x; w < words_of_warps(p.k); w += threads) {
      float v[4] = {};
      if (4 * w < p.k) normed_four_of(in, factor, weight, w, p.k, v);
      quantise_word(v, w, p.k, p.group, q + r * gpu::i8_row_words(p.k), d + r * (p.k / p.group));
    }
  });
}

// The bits of an activation (constant 1), mul, rms_norm (if constant 2), then act_quant.
BITNET_KERNEL(glu_quant) {
  const auto p = params_of<gpu::glu_quant_params>(l);
  const auto* gate = memory_of<const float>(l, 1);
  const auto* up = memory_of<const float>(l, 2);
  const auto* weight = memory_of<const float>(l, 3);
  auto* scratch = memory_of<float>(l, 4);
  auto* q = memory_of<uint32_t>(l, 5);
  auto* s = memory_of<float>(l, 6);
  const bool norm = l.constants[2] != 0;
  each_row(rows_of(l), [&](uint64_t r) {
    float* mid = scratch + r * p.k;
    for (uint32_t w = threadIdx.x; 4 * w < p.k; w += threads) {
      float v[4];
      gated_four_of(gate + r * p.k, up + r * p.k, l.constants[1], w, p.k, v);
      put_four(mid, w, p.k, v);
    }
    __syncthreads();
    uint32_t* codes = q + r * gpu::i8_row_words(p.k);
    float scale;
    if (norm) {
      const float factor = norm_factor(mid, p.k, p.eps);
      scale = quantise_row(
          [&](uint32_t w, float(&v)[4]) { normed_four_of(mid, factor, weight, w, p.k, v); }, p.k,
          codes);
    } else {
      scale = quantise_row([&](uint32_t w, float(&v)[4]) { four_of(mid, w, p.k, v); }, p.k, codes);
    }
    if (threadIdx.x == 0) s[r] = scale;
  });
}

// The bits of an activation (constant 1), mul, then act_quant_groups, with its threads.
BITNET_KERNEL(glu_quant_groups) {
  const auto p = params_of<gpu::glu_quant_groups_params>(l);
  const auto* gate = memory_of<const float>(l, 1);
  const auto* up = memory_of<const float>(l, 2);
  auto* q = memory_of<uint32_t>(l, 3);
  auto* d = memory_of<float>(l, 4);
  each_y(rows_of(l), [&](uint32_t r) {
    const uint64_t row = uint64_t{r} * p.k;
    each_x(words_of_warps(p.k), [&](uint32_t w) {
      float v[4] = {};
      if (4 * w < p.k) gated_four_of(gate + row, up + row, l.constants[1], w, p.k, v);
      quantise_word(v, w, p.k, p.group, q + r * gpu::i8_row_words(p.k),
                    d + uint64_t{r} * (p.k / p.group));
    });
  });
}

// A tile has constant 1 elements: runs of adjacent elements, `from` elements of the row apart; a
// single run if `from` is 1.
BITNET_KERNEL(hadamard) {
  const auto p = params_of<gpu::hadamard_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  auto* tile = static_cast<float*>(shared_memory());
  const uint32_t size = l.constants[1];
  const uint32_t run = p.from == 1 ? size : size / (p.to / p.from);
  const uint32_t nearest = p.from == 1 ? 1 : run, apart = p.from == 1 ? size : p.from;
  const uint32_t side_by_side = apart / run, units = (p.k + size - 1) / size;
  each_row(uint64_t{rows_of(l)} * units, [&](uint64_t r) {
    const auto u = static_cast<uint32_t>(r % units);
    const uint32_t begin = u / side_by_side * (side_by_side * size) + u % side_by_side * run;
    const float* in = x + r / units * p.k;
    float* out = y + r / units * p.k;
    __syncthreads();  // the previous tile is written
    for (uint32_t i = threadIdx.x; i < size; i += threads) {
      const uint32_t at = begin + i / run * apart + i % run;
      const float value = at < p.k ? in[at] : 0.0f;
      tile[i] = p.before && at < p.k ? value * weight[at] : value;
    }
    for (uint32_t d = nearest; d < nearest * (p.to / p.from); d *= 2) {
      __syncthreads();
      for (uint32_t pair = threadIdx.x; pair < size / 2; pair += threads) {
        const uint32_t i = 2 * pair - (pair & (d - 1));
        const float a = tile[i], b = tile[i + d];
        tile[i] = a + b;
        tile[i + d] = a - b;
      }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < size; i += threads) {
      const uint32_t at = begin + i / run * apart + i % run;
      if (at >= p.k) continue;
      const float value = tile[i] * p.scale;
      out[at] = p.after ? value * weight[at] : value;
    }
  });
}
