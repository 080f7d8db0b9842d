// Keys and values: written by the step, read by attention.

#include "attention.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

// Constants 1 and 2: element types of keys and values; 3: keys are rotated first.
BITNET_KERNEL(kv_write) {
  const auto p = params_of<gpu::kv_write_params>(l);
  const auto* slots = memory_of<const uint32_t>(l, 1);
  const auto* k = memory_of<const float>(l, 2);
  const auto* v = memory_of<const float>(l, 3);
  const auto* rotations = memory_of<const float>(l, 4);
  auto* keys = memory_of<uint32_t>(l, 5);
  auto* values = memory_of<uint32_t>(l, 6);
  const uint32_t key_type = l.constants[1], value_type = l.constants[2];
  const uint32_t of_k = units_of(key_type, p.head_dim), of_v = units_of(value_type, p.head_dim);
  each_y(rows_of(l), [&](uint32_t t) {
    const uint32_t slot = slots[t];
    const rotation as_rope = {l.constants[3] ? rotations + 2 * uint64_t{t} * p.pairs : nullptr,
                              p.pairs, p.neox != 0};
    each_x(uint64_t{p.n_kv_heads} * (of_k + of_v), [&](uint32_t unit) {
      const bool is_key = unit < p.n_kv_heads * of_k;
      const uint32_t i = is_key ? unit : unit - p.n_kv_heads * of_k;
      const uint32_t head = i / (is_key ? of_k : of_v), in_head = i % (is_key ? of_k : of_v);
      const uint64_t from = (uint64_t{t} * p.n_kv_heads + head) * p.head_dim;
      const uint64_t to = (uint64_t{slot / p.block_tokens} * p.n_kv_heads + head) * p.block_tokens +
                          slot % p.block_tokens;
      if (is_key)
        put(key_type, k + from, p.head_dim, in_head,
            keys + to * gpu::kv_row_words(key_type, p.head_dim), as_rope);
      else
        put(value_type, v + from, p.head_dim, in_head,
            values + to * gpu::kv_row_words(value_type, p.head_dim), {nullptr, 0, false});
    });
  });
}

// Tiles of more rows keep more in registers.
#ifdef BITNET_ATTENTION_OF_GIVEN_FORMATS
#define BITNET_ATTENTION_GIVEN(rows)                        \
  BITNET_KERNEL_OF(attn_tiles_##rows, (rows) > 4 ? 3 : 4) { \
    attention<given_formats, rows>(l).run(rows_of(l));      \
  }
BITNET_ATTENTION_GIVEN(4)
BITNET_ATTENTION_GIVEN(8)
#else
#define BITNET_ATTENTION_OF(key, value, rows)                                  \
  BITNET_KERNEL_OF(attn_tiles_##key##_##value##_##rows, (rows) > 4 ? 3 : 4) {  \
    attention<fixed_formats<key##_row, value##_row>, rows>(l).run(rows_of(l)); \
  }
#define BITNET_ATTENTION(key, value) \
  BITNET_ATTENTION_OF(key, value, 4) \
  BITNET_ATTENTION_OF(key, value, 8) \
  BITNET_ATTENTION_OF(key, value, 16)
#define BITNET_ATTENTION_OF_KEY(key) \
  BITNET_ATTENTION(key, f32)         \
  BITNET_ATTENTION(key, f16)         \
  BITNET_ATTENTION(key, q8_0)        \
  BITNET_ATTENTION(key, q4_0)
BITNET_ATTENTION_OF_KEY(f32)
BITNET_ATTENTION_OF_KEY(f16)
BITNET_ATTENTION_OF_KEY(q8_0)
BITNET_ATTENTION_OF_KEY(q4_0)
#endif

namespace {

// Results of merging::add() for the parts of a token's head, in shared memory, as many at a time as
// there are threads. With them, merging a column takes a load, two products and a sum.
struct merge_memory {
  float *highest, *total, *before, *of_part;

  __device__ merge_memory() {
    highest = static_cast<float*>(shared_memory());
    total = highest + threads;
    before = total + threads;
    of_part = before + threads;
  }
  // `found` is the thread's part, one of n. `so_far` is the largest score of the earlier parts, and
  // afterwards that of all parts.
  __device__ void prepare(const float* found, uint32_t n, float& so_far) const {
    const uint32_t this_thread = threadIdx.x;
    if (this_thread < n) {
      highest[this_thread] = found[0];
      total[this_thread] = found[1];
    }
    __syncthreads();
    float ahead = so_far;
    for (uint32_t i = 0; i < n; ++i) {
      if (i == this_thread) ahead = so_far;
      so_far = larger(so_far, highest[i]);
    }
    if (this_thread < n) {
      const float now = larger(ahead, highest[this_thread]);
      before[this_thread] = expf(ahead - now);
      of_part[this_thread] = expf(highest[this_thread] - now);
    }
    __syncthreads();
  }
};

}  // namespace

BITNET_KERNEL(attn_merge) {
  const auto p = params_of<gpu::attn_merge_params>(l);
  const auto* header = memory_of<const uint32_t>(l, 0);
  const auto* positions = memory_of<const uint32_t>(l, 1);
  const auto* parts = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  const merge_memory m;
  const uint32_t stride = p.head_dim + 2;
  each_y(rows_of(l), [&](uint32_t t) {
    const sight sees = sight::of(positions[t], header[2], header[3], p.window);
    const uint32_t all = sees.parts();
    each_group(p.n_heads, [&](uint32_t head) {
      const uint64_t row = uint64_t{t} * p.n_heads + head;
      const float* mine = parts + row * p.parts * stride;
      for (uint32_t from = 0; from < p.head_dim; from += threads) {
        const uint32_t d = from + threadIdx.x;
        float highest = -INFINITY, total = 0, sum = 0;
        for (uint32_t first = 0; first < all; first += threads) {
          const uint32_t n = smaller(threads, all - first);
          const uint32_t own = first + smaller(threadIdx.x, n - 1);
          m.prepare(mine + uint64_t{sees.part_at(own)} * stride + p.head_dim, n, highest);
          for (uint32_t i = 0; d < p.head_dim && i < n; ++i) {
            const float x = mine[uint64_t{sees.part_at(first + i)} * stride + d];
            total = total * m.before[i] + m.total[i] * m.of_part[i];
            sum = sum * m.before[i] + x * m.of_part[i];
          }
          __syncthreads();
        }
        if (d < p.head_dim) y[row * p.head_dim + d] = sum / total;
      }
    });
  });
}
