#pragma once
// Attention by tiles, for one or several tokens.

#include "kv_rows.cuh"
#include "tile.cuh"

namespace bitnet::kernels {

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
// Numbers of bindings; by default those of attn_tiles.
struct attention_bindings {
  uint32_t positions = 2, sequences = 3, block_tables = 4, keys = 5, values = 6, out = 7;
};

// The first parameters of each kernel of attention are those of attn_tiles.
template <class Formats, uint32_t rows>
class attention {
 public:
  __device__ explicit attention(const launch& l, attention_bindings at = {})
      : formats_(l),
        p_(params_of<gpu::attn_tiles_params>(l)),
        header_(memory_of<const uint32_t>(l, 0)),
        q_(memory_of<const float>(l, 1)),
        positions_(memory_of<const uint32_t>(l, at.positions)),
        sequences_(memory_of<const uint32_t>(l, at.sequences)),
        block_tables_(memory_of<const uint32_t>(l, at.block_tables)),
        keys_(memory_of<const uint32_t>(l, at.keys)),
        values_(memory_of<const uint32_t>(l, at.values)),
        out_(memory_of<float>(l, at.out)),
        key_words_(gpu::kv_row_words(l.constants[1], p_.head_dim)),
        value_words_(gpu::kv_row_words(l.constants[2], p_.head_dim)),
        m_(p_.head_dim) {}

  // Runs the group's tiles: each over the whole context, or over one part of it.
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
        load(one, [](const float* q, uint32_t, uint32_t d) { return q[d]; });
        for (uint32_t i = p_.parts ? mine : 0; i < (p_.parts ? mine + 1 : n); ++i)
          take_part(one, all.part_at(i), all.end);
        if (p_.parts == 0) finish();
        __syncthreads();
      });
    });
  }

 protected:
  __device__ sight sight_of(uint32_t t) const {
    return sight::of(positions_[t], header_[2], header_[3], p_.window);
  }

  // element(q, r, d): element d of the tile's row r, whose head of queries is q.
  template <class Element>
  __device__ void load(const tile& one, Element element) const {
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
      const float* q = q_ + uint64_t{m_.row[r]} * p_.head_dim;
      m_.q[d / 4 * 4 * rows + 4 * r + d % 4] = some ? element(q, r, d) : 0;
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

  // Takes part `i` of the context; no token sees a position from `end` on.
  __device__ void take_part(const tile& one, uint32_t i, uint32_t end) const {
    const uint32_t first = i * part, row = find(one, first + threadIdx.x % part);
    if (threadIdx.x < part) m_.at[threadIdx.x] = row == no_row ? 0 : row;
    formats_.with_key([&](auto of) {
      multiply_key<decltype(of)>(m_, row == no_row ? nullptr : keys_ + row * key_words_,
                                 p_.head_dim, rows);
    });
    __syncthreads();
    const bool whole = p_.parts == 0;
    const auto sees = [&](uint32_t r) -> const sight& { return m_.sees[r]; };
    weigh(m_, first, p_.scale, rows, sees, [&](uint32_t r, float highest, float total) {
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
  // The result of part i for a row.
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

}  // namespace bitnet::kernels
