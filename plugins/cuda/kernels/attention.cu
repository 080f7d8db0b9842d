// Keys and values: written by the step, read by attention.

#include "formats.cuh"
#include "group.cuh"

using namespace bitnet::cuda;
namespace gpu = bitnet::gpu;

namespace {

// How keys are turned on their way, as rope does it; without cosines they stay.
struct turning {
  const float* turns;
  uint32_t pairs;
  bool neox;

  // Element i of a head x.
  __device__ float operator()(const float* x, uint32_t i) const {
    if (!turns || i >= 2 * pairs) return x[i];
    const uint32_t pair = neox ? i % pairs : i / 2;
    const bool second = neox ? i >= pairs : i % 2 != 0;
    const uint32_t other = neox ? (second ? i - pairs : i + pairs) : (i ^ 1u);
    const float a = x[i] * turns[2 * pair], b = x[other] * turns[2 * pair + 1];
    return second ? b + a : a - b;
  }
};

// Units of a row: words, or blocks of 32 elements and nine words.
__device__ uint32_t units_of(uint32_t dtype, uint32_t head_dim) {
  return dtype == BITNET_DTYPE_F32   ? head_dim
         : dtype == BITNET_DTYPE_F16 ? (head_dim + 1) / 2
                                     : head_dim / 32;
}

__device__ void put_q8_0(const float* x, uint32_t from, uint32_t* out, const turning& turned) {
  float largest = 0;
  for (uint32_t i = 0; i < 32; ++i) largest = larger(largest, fabsf(turned(x, from + i)));
  const uint32_t bits = f32_to_f16(fminf(largest / 127.0f, 65504.0f));
  const float d = f16_to_f32(bits);
  const float inverse = d > 0 ? 1.0f / d : 0;
  const auto code = [&](uint32_t i) {
    const int q = quantised(turned(x, from + i), inverse);
    return q < -127 ? -127 : q;
  };
  out[0] = bits;
  for (uint32_t w = 0; w < 8; ++w)
    out[1 + w] = packed4(code(4 * w), code(4 * w + 1), code(4 * w + 2), code(4 * w + 3));
}

__device__ void put(uint32_t dtype, const float* x, uint32_t head_dim, uint32_t unit, uint32_t* row,
                    const turning& turned) {
  if (dtype == BITNET_DTYPE_F32) {
    row[unit] = bits_of<uint32_t>(turned(x, unit));
  } else if (dtype == BITNET_DTYPE_F16) {
    const uint32_t i = 2 * unit;
    const uint32_t high = i + 1 < head_dim ? f32_to_f16(turned(x, i + 1)) : 0;
    row[unit] = f32_to_f16(turned(x, i)) | high << 16;
  } else {
    put_q8_0(x, 32 * unit, row + 9 * unit, turned);
  }
}

}  // namespace

// Constants 1 and 2: element types of keys and values; 3: keys are turned first.
BITNET_KERNEL(kv_write) {
  const auto p = params_of<gpu::kv_write_params>(l);
  const auto* slots = memory_of<const uint32_t>(l, 1);
  const auto* k = memory_of<const float>(l, 2);
  const auto* v = memory_of<const float>(l, 3);
  const auto* turns = memory_of<const float>(l, 4);
  auto* keys = memory_of<uint32_t>(l, 5);
  auto* values = memory_of<uint32_t>(l, 6);
  const uint32_t key_type = l.constants[1], value_type = l.constants[2];
  const uint32_t of_k = units_of(key_type, p.head_dim), of_v = units_of(value_type, p.head_dim);
  each_y(rows_of(l), [&](uint32_t t) {
    const uint32_t slot = slots[t];
    const turning as_rope = {l.constants[3] ? turns + 2 * uint64_t{t} * p.pairs : nullptr, p.pairs,
                             p.neox != 0};
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

namespace {

template <class Key>
__device__ float score(const uint32_t* q, const uint32_t* key, uint32_t head_dim) {
  const uint32_t pieces = head_dim / 16, left = head_dim % 16;
  float sums[4] = {}, of_q[16], of_key[16];
  for (uint32_t i = 0; i < pieces; ++i) {
    Key::piece(key, i, of_key);
    f32_row::piece(q, i, of_q);
    add_products(of_key, of_q, sums);
  }
  if (!Key::blocks && left != 0) {
    ending<Key>(key, pieces, left, of_key);
    ending<f32_row>(q, pieces, left, of_q);
    add_products(of_key, of_q, sums);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The positions that a token sees, in ascending order.
struct sight {
  uint32_t kept_from, early, begin, seen;

  __device__ sight(uint32_t position, uint32_t window, uint32_t keep, uint32_t own_window) {
    const uint32_t end = position + 1;
    const uint32_t begin_of_step = window == 0 || end <= window ? 0 : end - window;
    const uint32_t kept = smaller(keep, begin_of_step);
    const uint32_t least = own_window == 0 || end <= own_window ? 0 : end - own_window;
    kept_from = smaller(least, kept);
    early = kept - kept_from;
    begin = begin_of_step > least ? begin_of_step : least;
    seen = early + end - begin;
  }
  __device__ uint32_t at(uint32_t i) const { return i < early ? kept_from + i : begin + i - early; }
};

// Softmax as it goes: a tile of positions at a time, what was summed before is scaled when a larger
// score comes. A group takes a token's head. In its memory: scores, then what they weigh; rows of
// keys and values, of this KV head; and the sums, each of which one thread has for itself.
template <class Key, class Value>
__device__ void attention(const launch& l) {
  const auto p = params_of<gpu::attn_paged_params>(l);
  const auto* header = memory_of<const uint32_t>(l, 0);
  const auto* q = memory_of<const float>(l, 1);
  const auto* positions = memory_of<const uint32_t>(l, 2);
  const auto* sequences = memory_of<const uint32_t>(l, 3);
  const auto* block_tables = memory_of<const uint32_t>(l, 4);
  const auto* keys = memory_of<const uint32_t>(l, 5);
  const auto* values = memory_of<const uint32_t>(l, 6);
  auto* y = memory_of<float>(l, 7);
  auto* weights = static_cast<float*>(shared_memory());
  auto* at = reinterpret_cast<uint32_t*>(weights + threads);
  auto* sums = reinterpret_cast<float*>(at + threads);
  const uint64_t key_words = gpu::kv_row_words(l.constants[1], p.head_dim);
  const uint64_t value_words = gpu::kv_row_words(l.constants[2], p.head_dim);
  const uint32_t me = threadIdx.x;
  each_y(rows_of(l), [&](uint32_t t) {
    const sight sees(positions[t], header[2], header[3], p.window);
    const uint32_t* table = block_tables + uint64_t{sequences[t]} * p.max_blocks;
    each_group(p.n_heads, [&](uint32_t head) {
      const uint32_t kv_head = head / (p.n_heads / p.n_kv_heads);
      const uint64_t mine = (uint64_t{t} * p.n_heads + head) * p.head_dim;
      float highest = -INFINITY, total = 0;
      for (uint32_t d = me; d < p.head_dim; d += threads) sums[d] = 0;
      for (uint32_t first = 0; first < sees.seen; first += threads) {
        const uint32_t n = smaller(threads, sees.seen - first);
        if (me < n) {
          const uint32_t position = sees.at(first + me);
          at[me] = (table[position / p.block_tokens] * p.n_kv_heads + kv_head) * p.block_tokens +
                   position % p.block_tokens;
          weights[me] = score<Key>(reinterpret_cast<const uint32_t*>(q + mine),
                                   keys + at[me] * key_words, p.head_dim) *
                        p.scale;
        }
        const float now = larger(highest, group_max(me < n ? weights[me] : -INFINITY));
        if (me < n) weights[me] = expf(weights[me] - now);
        __syncthreads();
        const float shrink = expf(highest - now);
        highest = now;
        total *= shrink;
        for (uint32_t j = 0; j < n; ++j) total += weights[j];
        for (uint32_t d = me; d < p.head_dim; d += threads) {
          float sum = sums[d] * shrink;
          for (uint32_t j = 0; j < n; ++j)
            sum += weights[j] * Value::at(values + at[j] * value_words, d);
          sums[d] = sum;
        }
        __syncthreads();
      }
      for (uint32_t d = me; d < p.head_dim; d += threads) y[mine + d] = sums[d] / total;
    });
  });
}

}  // namespace

#define BITNET_ATTENTION(key, value)          \
  BITNET_KERNEL(attn_paged_##key##_##value) { \
    attention<key##_row, value##_row>(l);     \
  }
BITNET_ATTENTION(f32, f32)
BITNET_ATTENTION(f32, f16)
BITNET_ATTENTION(f32, q8_0)
BITNET_ATTENTION(f16, f32)
BITNET_ATTENTION(f16, f16)
BITNET_ATTENTION(f16, q8_0)
BITNET_ATTENTION(q8_0, f32)
BITNET_ATTENTION(q8_0, f16)
BITNET_ATTENTION(q8_0, q8_0)
