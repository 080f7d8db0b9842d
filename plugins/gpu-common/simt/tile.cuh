#pragma once
// The parts of attention by tiles: which positions a token sees, the merging of parts of the
// context, and a tile's steps through one part. A thread has a key, or half of one, for all rows of
// the tile, then two columns of values for some of them: no number of the KV pool goes through
// shared memory, and few are read twice. plugins/gpu-common/kernels.hpp has the order of sums.

#include <type_traits>

#include "formats.cuh"
#include "group.cuh"

namespace bitnet::kernels {

constexpr uint32_t part = gpu::attn_part;
static_assert(threads == 2 * part && part % warp == 0);

// The positions that a token sees: [kept_from, kept_to), if that is not empty, and [begin, end).
struct sight {
  uint32_t kept_from, kept_to, begin, end;

  __device__ static sight of(uint32_t position, uint32_t window, uint32_t keep,
                             uint32_t own_window) {
    const uint32_t end = position + 1;
    const uint32_t of_step = window == 0 || end <= window ? 0 : end - window;
    const uint32_t kept = smaller(keep, of_step);
    const uint32_t least = own_window == 0 || end <= own_window ? 0 : end - own_window;
    return {smaller(least, kept), kept, of_step > least ? of_step : least, end};
  }
  // At least what either sees.
  __device__ sight with(const sight& o) const {
    sight out = *this;
    if (o.kept_from < o.kept_to) {
      const bool one = kept_from >= kept_to;
      out.kept_from = one ? o.kept_from : smaller(kept_from, o.kept_from);
      out.kept_to = one || kept_to < o.kept_to ? o.kept_to : kept_to;
    }
    out.begin = smaller(begin, o.begin);
    out.end = end > o.end ? end : o.end;
    return out;
  }
  __device__ bool sees(uint32_t p) const {
    return (p >= kept_from && p < kept_to) || (p >= begin && p < end);
  }

  // The parts that have some of them, in ascending order.
  __device__ uint32_t kept_parts() const {
    return kept_from < kept_to ? (kept_to + part - 1) / part - kept_from / part : 0;
  }
  __device__ uint32_t first_late() const {
    const uint32_t behind = kept_parts() == 0 ? 0 : kept_from / part + kept_parts();
    return begin / part > behind ? begin / part : behind;
  }
  __device__ uint32_t parts() const {
    const uint32_t late = (end + part - 1) / part, first = first_late();
    return kept_parts() + (late > first ? late - first : 0);
  }
  __device__ uint32_t part_at(uint32_t i) const {
    const uint32_t kept = kept_parts();
    return i < kept ? kept_from / part + i : first_late() + i - kept;
  }
};

// Merges a row's parts one after the other: the earlier sums are multiplied by `before`, those of
// the part by `of_part`, which is negative if the row sees no position of the part.
struct merging {
  float highest, total, before, of_part;

  __device__ void add(float part_highest, float part_total) {
    const float now = larger(highest, part_highest);
    before = expf(highest - now);
    of_part = expf(part_highest - now);
    total = total * before + part_total * of_part;
    highest = now;
  }
};

// Adjacent tokens of one sequence, times heads of one KV head: row r is head
// r % heads of token r / heads.
struct tile {
  uint32_t first_token, tokens, kv_head, first_head, heads;

  __device__ uint32_t rows() const { return tokens * heads; }
};

// The positions that the tokens of a tile see: each token sees [begin, end), if that is not empty,
// and no token sees a position outside of `any`.
struct sight_of_tile {
  sight any;
  uint32_t begin, end;

  // sight_of(t): what token t sees.
  template <class SightOf>
  __device__ static sight_of_tile of(const tile& one, SightOf sight_of) {
    sight_of_tile out;
    out.any = sight_of(one.first_token);
    out.begin = out.any.begin;
    out.end = out.any.end;
    for (uint32_t i = 1; i < one.tokens; ++i) {
      const sight next = sight_of(one.first_token + i);
      out.begin = out.begin > next.begin ? out.begin : next.begin;
      out.end = smaller(out.end, next.end);
      out.any = out.any.with(next);
    }
    return out;
  }
  // Whether all tokens see all of `n` positions from `first` on.
  __device__ bool whole(uint32_t first, uint32_t n) const {
    return first >= begin && first + n <= end;
  }
};

// Returns the number of tokens of the tile that begins with token t; 0 if t is in an earlier tile.
// Tiles end at multiples of `most`.
__device__ inline uint32_t tokens_of_tile(const uint32_t* sequences, uint32_t t, uint32_t all,
                                          uint32_t most) {
  if (t % most != 0 && sequences[t - 1] == sequences[t]) return 0;
  uint32_t n = 1;
  while (t + n < all && (t + n) % most != 0 && sequences[t + n] == sequences[t]) ++n;
  return n;
}

// Formats of keys and values as parameters of the launch: one kernel in place of sixteen, for code
// of many architectures.
struct given_formats {
  uint32_t key, value;

  __device__ explicit given_formats(const launch& l) : key(l.constants[1]), value(l.constants[2]) {}
  template <class F>
  __device__ void with_key(F f) const {
    with(key, f);
  }
  template <class F>
  __device__ void with_value(F f) const {
    with(value, f);
  }
  template <class F>
  __device__ static void with(uint32_t dtype, F f) {
    if (dtype == BITNET_DTYPE_F32)
      f(f32_row{});
    else if (dtype == BITNET_DTYPE_F16)
      f(f16_row{});
    else if (dtype == BITNET_DTYPE_Q8_0)
      f(q8_0_row{});
    else
      f(q4_0_row{});
  }
};

constexpr uint32_t no_row = ~0u;

// Memory of a group, as much as gpu::attn_tile_words().
template <uint32_t rows>
struct tile_memory {
  float* q;         // (width / 4, rows, 4), zeros past head_dim
  float* scores;    // (2, rows, part): sums of the even and of the odd sixteens; then, in the first
                    // half, weights, negative for what the row does not see
  float* sums;      // (rows, head_dim)
  merging* merged;  // of each row
  sight* sees;      // of each row
  uint32_t* row;    // each in q and y, or no_row
  uint32_t* at;     // (part) rows of the KV pool; 0 for what is not visible
  uint32_t width;

  __device__ explicit tile_memory(uint32_t head_dim) : width((head_dim + 15) / 16 * 16) {
    q = static_cast<float*>(shared_memory());
    scores = q + rows * width;
    sums = scores + 2 * rows * part;
    merged = reinterpret_cast<merging*>(sums + rows * head_dim);
    sees = reinterpret_cast<sight*>(merged + rows);
    row = reinterpret_cast<uint32_t*>(sees + rows);
    at = row + rows;
  }
};

__device__ inline void load_floats(const float* p, float (&out)[4]) {
  const uint4 words = *reinterpret_cast<const uint4*>(p);
  out[0] = bits_of<float>(words.x);
  out[1] = bits_of<float>(words.y);
  out[2] = bits_of<float>(words.z);
  out[3] = bits_of<float>(words.w);
}

// Adds the products of a sixteen of a key, at column `from`, to the sums of the first `used` rows.
template <uint32_t rows>
__device__ void add_sixteen(const tile_memory<rows>& m, uint32_t from, const float (&key)[16],
                            uint32_t used, float (&sums)[rows]) {
  BITNET_UNROLL
  for (uint32_t r = 0; r < rows; ++r) {
    if (r < used) {
      BITNET_UNROLL
      for (uint32_t four = 0; four < 16; four += 4) {
        float q[4];
        load_floats(m.q + (from + four) * rows + 4 * r, q);
        for (uint32_t i = 0; i < 4; ++i) sums[r] = fmaf(key[four + i], q[i], sums[r]);
      }
    }
  }
}

// The thread's half of the products of a key, if there is one, with the first `used` rows. The
// scores of the others are zeros.
template <class Key, uint32_t rows>
__device__ void multiply_key(const tile_memory<rows>& m, const uint32_t* key, uint32_t head_dim,
                             uint32_t used) {
  const uint32_t j = threadIdx.x % part, side = threadIdx.x / part;
  const uint32_t sixteens = head_dim / 16, left = head_dim % 16;
  float sums[rows] = {}, of_key[16];
  BITNET_NO_UNROLL
  for (uint32_t i = side; key && i < sixteens; i += 2) {
    Key::piece(key, i, of_key);
    add_sixteen(m, 16 * i, of_key, used, sums);
  }
  if (!Key::blocks && key && left != 0 && sixteens % 2 == side) {
    ending<Key>(key, sixteens, left, of_key);
    add_sixteen(m, 16 * sixteens, of_key, used, sums);
  }
  BITNET_UNROLL
  for (uint32_t r = 0; r < rows; ++r) m.scores[(side * rows + r) * part + j] = sums[r];
}

// Turns the scores of the first `used` rows for a part that begins at position `first` into
// weights, one row per warp. sees(row) is what a row sees. A lane calls take(row, largest score,
// sum of weights) for each row that sees some of the part.
template <uint32_t rows, class Sees, class Take>
__device__ void weigh(const tile_memory<rows>& m, uint32_t first, float scale, uint32_t used,
                      Sees sees, Take take) {
  BITNET_NO_UNROLL
  for (uint32_t r = warp_of_group(); r < used; r += warps) {
    constexpr uint32_t each = part / warp;  // two in warps of 32 lanes, one in those of 64
    float x[each], highest = -INFINITY, total = 0;
    bool seen[each], any = false;
    for (uint32_t i = 0; i < each; ++i) {
      const uint32_t j = lane() + i * warp;
      seen[i] = sees(r).sees(first + j);
      x[i] = (m.scores[r * part + j] + m.scores[(rows + r) * part + j]) * scale;
      any |= seen[i];
      if (seen[i]) highest = larger(highest, x[i]);
    }
    for (uint32_t d = warp / 2; d != 0; d /= 2) highest = larger(highest, shuffle_xor(highest, d));
    for (uint32_t i = 0; i < each; ++i) {
      x[i] = seen[i] ? expf(x[i] - highest) : -1.0f;
      if (seen[i]) total += x[i];
      m.scores[r * part + lane() + i * warp] = x[i];
    }
    for (uint32_t d = warp / 2; d != 0; d /= 2) total += shuffle_xor(total, d);
    const bool some = lanes_with(any) != 0;
    if (lane() != 0) continue;
    m.merged[r].of_part = -1.0f;
    if (some) take(r, highest, total);
  }
}

// Columns 2 * pair and the next of a row of n.
template <class Row>
__device__ void two_of(const uint32_t* row, uint32_t pair, uint32_t n, float (&out)[2]) {
  const bool both = !std::is_same_v<Row, f32_row> || 2 * pair + 1 < n;  // the others are padded
  out[0] = Row::at(row, 2 * pair);
  out[1] = both ? Row::at(row, 2 * pair + 1) : 0.0f;
}

// Calls take(row, column, sum of w * value) for the thread's columns, and `each` of the rows; of
// the first n positions of a part.
template <class Value, uint32_t rows, uint32_t each, class Take>
__device__ void sum_values(const tile_memory<rows>& m, const uint32_t* values, uint64_t words,
                           uint32_t head_dim, uint32_t n, Take take) {
  constexpr uint32_t width = threads / (rows / each), at_once = each <= 4 ? 8 : 4;
  const uint32_t first = threadIdx.x / width * each, pairs = (head_dim + 1) / 2;
  BITNET_NO_UNROLL
  for (uint32_t pair = threadIdx.x % width; pair < pairs; pair += width) {
    float sums[each][2] = {};
    BITNET_NO_UNROLL
    for (uint32_t from = 0; from < n; from += at_once) {
      float v[at_once][2];
      BITNET_UNROLL
      for (uint32_t j = 0; j < at_once; ++j)
        two_of<Value>(values + m.at[from + j] * words, pair, head_dim, v[j]);
      BITNET_UNROLL
      for (uint32_t r = 0; r < each; ++r) {
        BITNET_UNROLL
        for (uint32_t four = 0; four < at_once; four += 4) {
          float w[4];
          load_floats(m.scores + (first + r) * part + from + four, w);
          BITNET_UNROLL
          for (uint32_t j = 0; j < 4; ++j) {
            if (w[j] < 0) continue;
            sums[r][0] = fmaf(w[j], v[four + j][0], sums[r][0]);
            sums[r][1] = fmaf(w[j], v[four + j][1], sums[r][1]);
          }
        }
      }
    }
    BITNET_UNROLL
    for (uint32_t r = 0; r < each; ++r)
      for (uint32_t i = 0; i < 2; ++i)
        if (2 * pair + i < head_dim) take(first + r, 2 * pair + i, sums[r][i]);
  }
}

// A half of the rows to a thread, or a quarter where there are few columns.
template <class Value, uint32_t rows, class Take>
__device__ void sum_values(const tile_memory<rows>& m, const uint32_t* values, uint64_t words,
                           uint32_t head_dim, uint32_t n, Take take) {
  if (head_dim <= threads / 2)
    sum_values<Value, rows, rows / 4>(m, values, words, head_dim, n, take);
  else
    sum_values<Value, rows, rows / 2>(m, values, words, head_dim, n, take);
}

}  // namespace bitnet::kernels
