// Keys and values: written by the step, read by attention.

#include "tile.cuh"

using namespace bitnet::kernels;
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

// Units of a row: words, or blocks of 32 elements.
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

__device__ void put_q4_0(const float* x, uint32_t from, uint32_t* out, const turning& turned) {
  float extreme = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const float one = turned(x, from + i);
    if (fabsf(one) > fabsf(extreme)) extreme = one;
  }
  const float step = fminf(fmaxf(extreme / -8.0f, -65504.0f), 65504.0f);
  const uint32_t bits = f32_to_f16(step);
  const float inverse = (bits & 0x7fffu) != 0 ? 1.0f / step : 0;
  const auto code = [&](uint32_t i) {
    // In this order NaN becomes 0.
    return static_cast<uint32_t>(fminf(larger(0.0f, turned(x, from + i) * inverse + 8.5f), 15.0f));
  };
  out[0] = bits;
  for (uint32_t w = 0; w < 4; ++w) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; ++i)
      word |= (code(4 * w + i) | code(4 * w + i + 16) << 4) << (8 * i);
    out[1 + w] = word;
  }
}

__device__ void put(uint32_t dtype, const float* x, uint32_t head_dim, uint32_t unit, uint32_t* row,
                    const turning& turned) {
  if (dtype == BITNET_DTYPE_F32) {
    row[unit] = bits_of<uint32_t>(turned(x, unit));
  } else if (dtype == BITNET_DTYPE_F16) {
    const uint32_t i = 2 * unit;
    const uint32_t high = i + 1 < head_dim ? f32_to_f16(turned(x, i + 1)) : 0;
    row[unit] = f32_to_f16(turned(x, i)) | high << 16;
  } else if (dtype == BITNET_DTYPE_Q8_0) {
    put_q8_0(x, 32 * unit, row + 9 * unit, turned);
  } else {
    put_q4_0(x, 32 * unit, row + 5 * unit, turned);
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

// Formats of keys and values that are known when the kernel is compiled.
template <class Key, class Value>
struct fixed_formats {
  __device__ explicit fixed_formats(const launch&) {}
  template <class F>
  __device__ void with_key(F f) const {
    f(Key{});
  }
  template <class F>
  __device__ void with_value(F f) const {
    f(Value{});
  }
};

template <class Formats, uint32_t rows>
class attention {
 public:
  __device__ explicit attention(const launch& l)
      : formats_(l),
        p_(params_of<gpu::attn_tiles_params>(l)),
        header_(memory_of<const uint32_t>(l, 0)),
        q_(memory_of<const float>(l, 1)),
        positions_(memory_of<const uint32_t>(l, 2)),
        sequences_(memory_of<const uint32_t>(l, 3)),
        block_tables_(memory_of<const uint32_t>(l, 4)),
        keys_(memory_of<const uint32_t>(l, 5)),
        values_(memory_of<const uint32_t>(l, 6)),
        out_(memory_of<float>(l, 7)),
        key_words_(gpu::kv_row_words(l.constants[1], p_.head_dim)),
        value_words_(gpu::kv_row_words(l.constants[2], p_.head_dim)),
        m_(p_.head_dim) {}

  // What the group does: of its tiles the whole context, or a part.
  __device__ void run(uint32_t n_tokens) const {
    const uint32_t of_kv = p_.n_heads / p_.n_kv_heads, most = rows / smaller(of_kv, rows);
    const uint32_t shares = gpu::attn_tile_shares(of_kv, rows), split = p_.parts ? p_.parts : 1;
    each_y(n_tokens, [&](uint32_t t) {
      const uint32_t tokens = tokens_of_tile(sequences_, t, n_tokens, most);
      if (tokens == 0) return;
      sight all = sight_of(t);
      for (uint32_t i = 1; i < tokens; ++i) all = all.with(sight_of(t + i));
      const uint32_t n = all.parts();
      each_group(uint64_t{p_.n_kv_heads} * shares * split, [&](uint32_t unit) {
        const uint32_t mine = unit % split, share = unit / split % shares;
        if (p_.parts != 0 && mine >= n) return;
        const uint32_t kv_head = unit / split / shares, left = of_kv - share * rows;
        const tile one = {t, tokens, kv_head, kv_head * of_kv + share * rows, smaller(left, rows)};
        load(one);
        for (uint32_t i = p_.parts ? mine : 0; i < (p_.parts ? mine + 1 : n); ++i)
          take_part(one, all.part_at(i), all.end);
        if (p_.parts == 0) finish();
        __syncthreads();
      });
    });
  }

 private:
  __device__ sight sight_of(uint32_t t) const {
    return sight::of(positions_[t], header_[2], header_[3], p_.window);
  }

  __device__ void load(const tile& one) const {
    for (uint32_t r = threadIdx.x; r < rows; r += threads) {
      const bool some = r < one.rows();
      const uint32_t t = one.first_token + r / one.heads;
      m_.row[r] = some ? t * p_.n_heads + one.first_head + r % one.heads : no_row;
      m_.sees[r] = some ? sight_of(t) : sight{};
      m_.merged[r] = {-INFINITY, 0, 0, 0};
    }
    for (uint32_t i = threadIdx.x; i < rows * p_.head_dim; i += threads) m_.sums[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows * m_.width; i += threads) {
      const uint32_t r = i / m_.width, d = i % m_.width;
      const bool some = m_.row[r] != no_row && d < p_.head_dim;
      m_.q[d / 4 * 4 * rows + 4 * r + d % 4] = some ? q_[uint64_t{m_.row[r]} * p_.head_dim + d] : 0;
    }
    __syncthreads();
  }

  // The row of the KV pool that has a position, if a token of the tile sees it.
  __device__ uint32_t find(const tile& one, uint32_t position) const {
    bool seen = false;
    for (uint32_t r = 0; r < one.rows(); r += one.heads) seen |= m_.sees[r].sees(position);
    if (!seen) return no_row;
    const uint32_t* table = block_tables_ + uint64_t{sequences_[one.first_token]} * p_.max_blocks;
    const uint32_t block = table[position / p_.block_tokens];
    return (block * p_.n_kv_heads + one.kv_head) * p_.block_tokens + position % p_.block_tokens;
  }

  // Part `i` of the context, no position of which from `end` on is seen.
  __device__ void take_part(const tile& one, uint32_t i, uint32_t end) const {
    const uint32_t first = i * part, row = find(one, first + threadIdx.x % part);
    if (threadIdx.x < part) m_.at[threadIdx.x] = row == no_row ? 0 : row;
    formats_.with_key([&](auto of) {
      multiply_key<decltype(of)>(m_, row == no_row ? nullptr : keys_ + row * key_words_,
                                 p_.head_dim);
    });
    __syncthreads();
    const bool whole = p_.parts == 0;
    weigh(m_, first, p_.scale, [&](uint32_t r, float highest, float total) {
      if (whole) {
        m_.merged[r].add(highest, total);
        return;
      }
      m_.merged[r].of_part = 1;
      float* written = left_of(r, i);
      written[p_.head_dim] = highest;
      written[p_.head_dim + 1] = total;
    });
    __syncthreads();
    const auto take = [&](uint32_t r, uint32_t d, float sum) {
      const merging& state = m_.merged[r];
      if (state.of_part < 0) return;
      if (whole) {
        float& all = m_.sums[r * p_.head_dim + d];
        all = all * state.before + sum * state.of_part;
      } else {
        left_of(r, i)[d] = sum;
      }
    };
    formats_.with_value([&](auto of) {
      sum_values<decltype(of)>(m_, values_, value_words_, p_.head_dim, smaller(part, end - first),
                               take);
    });
    __syncthreads();
  }
  // What part i leaves of a row.
  __device__ float* left_of(uint32_t r, uint32_t i) const {
    return out_ + (uint64_t{m_.row[r]} * p_.parts + i) * (p_.head_dim + 2);
  }

  __device__ void finish() const {
    for (uint32_t i = threadIdx.x; i < rows * p_.head_dim; i += threads) {
      const uint32_t r = i / p_.head_dim, d = i % p_.head_dim;
      if (m_.row[r] == no_row) continue;
      out_[uint64_t{m_.row[r]} * p_.head_dim + d] = m_.sums[i] / m_.merged[r].total;
    }
  }

  const Formats formats_;
  const gpu::attn_tiles_params p_;
  const uint32_t* header_;
  const float* q_;
  const uint32_t *positions_, *sequences_, *block_tables_, *keys_, *values_;
  float* out_;
  const uint64_t key_words_, value_words_;
  const tile_memory<rows> m_;
};

}  // namespace

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

// The parts of a token's head in shared memory, as many at a time as threads: what merging::add()
// makes of each, so that columns are merged with no more than a load, two products and a sum.
struct merge_memory {
  float *highest, *total, *before, *of_part;

  __device__ merge_memory() {
    highest = static_cast<float*>(shared_memory());
    total = highest + threads;
    before = total + threads;
    of_part = before + threads;
  }
  // `found` is the thread's part, one of n; `so_far` the largest score of those before, and then of
  // all.
  __device__ void prepare(const float* found, uint32_t n, float& so_far) const {
    const uint32_t me = threadIdx.x;
    if (me < n) {
      highest[me] = found[0];
      total[me] = found[1];
    }
    __syncthreads();
    float ahead = so_far;
    for (uint32_t i = 0; i < n; ++i) {
      if (i == me) ahead = so_far;
      so_far = larger(so_far, highest[i]);
    }
    if (me < n) {
      const float now = larger(ahead, highest[me]);
      before[me] = expf(ahead - now);
      of_part[me] = expf(highest[me] - now);
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
