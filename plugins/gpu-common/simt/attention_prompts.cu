// attn_tiles for steps of many tokens: a thread keeps products of several rows with several keys,
// and sums of several rows and columns, in registers, so that what is loaded from shared memory is
// multiplied four or more times. The bits are those of attention.cu.

#include "tile.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// The thread's number. Values that depend on it are computed where they are used, because the
// registers are needed for sums.
__device__ inline uint32_t thread() {
  uint32_t out = threadIdx.x;
  forget(out);
  return out;
}

// A thread's tiles: of products `each` rows by 8 keys, of sums `each` rows by `width` / 16 columns.
constexpr uint32_t row_groups = 8, key_groups = part / 8, column_groups = 16;
static_assert(threads == 2 * row_groups * key_groups && threads == row_groups * column_groups);

// Memory of a group. Heads have at most `width` elements.
template <uint32_t width, uint32_t each>
struct prompt_memory {
  static constexpr uint32_t rows = row_groups * each;
  // 16 bytes more than the rows: eight lanes that read four rows each of eight positions find them
  // in different banks.
  static constexpr uint32_t stride = rows + 4;
  // Two sixteens of all keys of a part, or so many positions of values.
  static constexpr uint32_t staged_words = part * 32, positions = staged_words / width;

  float* q;         // (width / 4, rows, 4), zeros past head_dim
  float* staged;    // keys (2, 4, part, 4): fours of the even and of the odd sixteen; or values
                    // (positions, width / 4, 4), fours of a position in the order of place()
  float* weights;   // (part, stride): products, scores, then weights as in tile_memory
  merging* merged;  // of each row
  sight* sees;      // of each row
  uint32_t* row;    // each in q and y, or no_row
  uint32_t* at;     // (part) rows of the KV pool; 0 for what is not visible

  __device__ prompt_memory() {
    q = static_cast<float*>(shared_memory());
    staged = q + rows * width;
    weights = staged + staged_words;
    merged = reinterpret_cast<merging*>(weights + part * stride);
    sees = reinterpret_cast<sight*>(merged + rows);
    row = reinterpret_cast<uint32_t*>(sees + rows);
    at = row + rows;
  }
  // Where four columns of a position lie, so that neither eight lanes that write every fourth nor
  // eight that read adjacent ones meet in a bank.
  __device__ static uint32_t place(uint32_t four) { return 4 * (four ^ (four >> 2 & 7u)); }
};

__device__ inline void put_zeros(float (&out)[16]) {
  BITNET_UNROLL
  for (uint32_t i = 0; i < 16; ++i) out[i] = 0;
}
// Sixteen elements of a row of n, from 16 * piece on; zeros past its end.
template <class Row>
__device__ void sixteen_of(const uint32_t* row, uint32_t piece, uint32_t n, float (&out)[16]) {
  if (piece < n / 16)
    Row::piece(row, piece, out);
  else if (!Row::blocks && piece == n / 16)
    ending<Row>(row, piece, n % 16, out);
  else
    put_zeros(out);
}
__device__ inline void put_four_of(float* to, const float (&x)[16], uint32_t four) {
  *reinterpret_cast<uint4*>(to) =
      make_uint4(bits_of<uint32_t>(x[4 * four]), bits_of<uint32_t>(x[4 * four + 1]),
                 bits_of<uint32_t>(x[4 * four + 2]), bits_of<uint32_t>(x[4 * four + 3]));
}

template <uint32_t width, uint32_t each>
class prompt {
 public:
  using memory = prompt_memory<width, each>;
  static constexpr uint32_t rows = memory::rows, fours = width / 64;
  static_assert(rows % warps == 0);

  __device__ explicit prompt(const launch& l) : l_(l) {}

  // The whole context of a tile.
  __device__ void take(const tile& one) const {
    const auto seen = sight_of_tile::of(one, [&](uint32_t t) { return sight_of(t); });
    load(one);
    float sums[each][4 * fours] = {};
    const uint32_t n = seen.any.parts();
    BITNET_NO_UNROLL
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t first = seen.any.part_at(i) * part;
      const bool whole = seen.whole(first, part);
      multiply_keys(one, first, whole);
      weigh(first);
      __syncthreads();
      add_values(smaller(part, seen.any.end - first), whole, sums);
    }
    finish(sums);
    __syncthreads();
  }

 private:
  __device__ sight sight_of(uint32_t t) const {
    return sight::of(words(2)[t], words(0)[2], words(0)[3], params().window);
  }

  __device__ void load(const tile& one) const {
    for (uint32_t r = threadIdx.x; r < rows; r += threads) {
      const bool some = r < one.rows();
      const uint32_t t = one.first_token + r / one.heads;
      m_.row[r] = some ? t * params().n_heads + one.first_head + r % one.heads : no_row;
      m_.sees[r] = some ? sight_of(t) : sight{};
      m_.merged[r] = {-INFINITY, 0, 0, 0};
    }
    __syncthreads();
    const auto* q = memory_of<const float>(l_, 1);
    for (uint32_t i = threadIdx.x; i < rows * width; i += threads) {
      const uint32_t r = i / width, d = i % width;
      const bool some = m_.row[r] != no_row && d < head_dim();
      m_.q[d / 4 * 4 * rows + 4 * r + d % 4] = some ? q[uint64_t{m_.row[r]} * head_dim() + d] : 0;
    }
  }

  // The row of the KV pool that has a position, if a token of the tile sees it. `whole`: all do.
  __device__ uint32_t find(const tile& one, uint32_t position, bool whole) const {
    bool seen = whole;
    for (uint32_t r = 0; !seen && r < one.rows(); r += one.heads) seen = m_.sees[r].sees(position);
    if (!seen) return no_row;
    const auto p = params();
    const uint32_t* table = words(4) + uint64_t{words(3)[one.first_token]} * p.max_blocks;
    const uint32_t block = table[position / p.block_tokens];
    return (block * p.n_kv_heads + one.kv_head) * p.block_tokens + position % p.block_tokens;
  }

  // Half of the threads takes the even sixteens of keys, the other half the odd ones. Then each
  // half passes its sums for half of the keys to the other one, which adds them to scores.
  __device__ void multiply_keys(const tile& one, uint32_t first, bool whole) const {
    const uint32_t this_thread = thread(), side = this_thread / part, j = this_thread % part;
    const uint32_t found = find(one, first + j, whole), n = (head_dim() + 31) / 32;
    if (side == 0) m_.at[j] = found == no_row ? 0 : found;
    const uint32_t* key =
        words(5) + uint64_t{found} * gpu::kv_row_words(l_.constants[1], head_dim());
    float sums[each][8] = {};
    BITNET_NO_UNROLL
    for (uint32_t i = 0; i < n; ++i) {
      float x[16];
      put_zeros(x);
      if (found != no_row)
        given_formats(l_).with_key(
            [&](auto of) { sixteen_of<decltype(of)>(key, 2 * i + side, head_dim(), x); });
      __syncthreads();  // all threads have read the previous content
      BITNET_UNROLL
      for (uint32_t four = 0; four < 4; ++four)
        put_four_of(m_.staged + 4 * ((4 * side + four) * part + j), x, four);
      __syncthreads();
      add_sixteens(8 * i + 4 * side, m_.staged + 16 * side * part, sums);
    }
    exchange(side, sums);
  }
  // Fours of q from `from` on, and staged fours of keys.
  __device__ void add_sixteens(uint32_t from, const float* keys, float (&sums)[each][8]) const {
    const uint32_t this_thread = thread(), r = this_thread % row_groups,
                   k = this_thread / row_groups % key_groups;
    BITNET_NO_UNROLL
    for (uint32_t four = 0; four < 4; ++four) {
      float q[each][4];
      BITNET_UNROLL
      for (uint32_t i = 0; i < each; ++i)
        load_floats(m_.q + 4 * ((from + four) * rows + r + row_groups * i), q[i]);
      BITNET_UNROLL
      for (uint32_t at = 0; at < 8; ++at) {
        float key[4];
        load_floats(keys + 4 * (four * part + k + key_groups * at), key);
        BITNET_UNROLL
        for (uint32_t i = 0; i < each; ++i) {
          BITNET_UNROLL
          for (uint32_t e = 0; e < 4; ++e) sums[i][at] = fmaf(key[e], q[i][e], sums[i][at]);
        }
      }
    }
  }
  __device__ void exchange(uint32_t side, const float (&sums)[each][8]) const {
    const uint32_t this_thread = thread(), r = this_thread % row_groups,
                   k = this_thread / row_groups % key_groups;
    const auto place = [&](uint32_t i, uint32_t at) {
      return m_.weights + (k + key_groups * at) * memory::stride + r + row_groups * i;
    };
    BITNET_UNROLL
    for (uint32_t i = 0; i < each; ++i) {
      BITNET_UNROLL
      for (uint32_t at = 0; at < 4; ++at)
        *place(i, side == 0 ? at + 4 : at) = side == 0 ? sums[i][at + 4] : sums[i][at];
    }
    __syncthreads();
    BITNET_UNROLL
    for (uint32_t i = 0; i < each; ++i) {
      BITNET_UNROLL
      for (uint32_t at = 0; at < 4; ++at) {
        float* score = place(i, side == 0 ? at : at + 4);
        *score = ((side == 0 ? sums[i][at] : sums[i][at + 4]) + *score) * params().scale;
      }
    }
    __syncthreads();
  }

  // Scores become weights. A warp takes adjacent rows, four at a time; a lane has them at one
  // position, or two.
  static constexpr uint32_t of_warp = rows / warps, of_lane = part / warp,
                            at_once = of_warp < 4 ? of_warp : 4;
  __device__ void weigh(uint32_t first) const {
    BITNET_NO_UNROLL
    for (uint32_t r = warp_of_group() * of_warp; r < (warp_of_group() + 1) * of_warp; r += at_once)
      weigh_some(r, first);
  }
  __device__ void weigh_some(uint32_t row, uint32_t first) const {
    float x[of_lane][at_once], highest[at_once], total[at_once];
    bool seen[of_lane][at_once], some[at_once];
    BITNET_UNROLL
    for (uint32_t i = 0; i < of_lane; ++i) move_scores<true>(x[i], row, i);
    BITNET_UNROLL
    for (uint32_t r = 0; r < at_once; ++r) {
      highest[r] = -INFINITY;
      bool any = false;
      BITNET_UNROLL
      for (uint32_t i = 0; i < of_lane; ++i) {
        seen[i][r] = m_.sees[row + r].sees(first + lane() + i * warp);
        any |= seen[i][r];
        if (seen[i][r]) highest[r] = larger(highest[r], x[i][r]);
      }
      some[r] = lanes_with(any) != 0;
    }
    BITNET_UNROLL
    for (uint32_t d = warp / 2; d != 0; d /= 2) {
      BITNET_UNROLL
      for (uint32_t r = 0; r < at_once; ++r)
        highest[r] = larger(highest[r], shuffle_xor(highest[r], d));
    }
    BITNET_UNROLL
    for (uint32_t r = 0; r < at_once; ++r) {
      total[r] = 0;
      BITNET_UNROLL
      for (uint32_t i = 0; i < of_lane; ++i) {
        x[i][r] = seen[i][r] ? expf(x[i][r] - highest[r]) : -1.0f;
        if (seen[i][r]) total[r] += x[i][r];
      }
    }
    BITNET_UNROLL
    for (uint32_t i = 0; i < of_lane; ++i) move_scores<false>(x[i], row, i);
    BITNET_UNROLL
    for (uint32_t d = warp / 2; d != 0; d /= 2) {
      BITNET_UNROLL
      for (uint32_t r = 0; r < at_once; ++r) total[r] += shuffle_xor(total[r], d);
    }
    if (lane() != 0) return;
    BITNET_UNROLL
    for (uint32_t r = 0; r < at_once; ++r) {
      merging& state = m_.merged[row + r];
      state.of_part = -1.0f;
      if (some[r]) state.add(highest[r], total[r]);
    }
  }
  // Between registers and shared memory.
  template <bool loads>
  __device__ void move_scores(float (&x)[at_once], uint32_t row, uint32_t i) const {
    float* const scores = m_.weights + (lane() + i * warp) * memory::stride + row;
    if constexpr (at_once != 4) {
      BITNET_UNROLL
      for (uint32_t r = 0; r < at_once; ++r) (loads ? x[r] : scores[r]) = loads ? scores[r] : x[r];
    } else if constexpr (loads) {
      load_floats(scores, x);
    } else {
      *reinterpret_cast<uint4*>(scores) =
          make_uint4(bits_of<uint32_t>(x[0]), bits_of<uint32_t>(x[1]), bits_of<uint32_t>(x[2]),
                     bits_of<uint32_t>(x[3]));
    }
  }
  // Of the first n positions of a part. `whole`: all rows see all of them.
  __device__ void add_values(uint32_t n, bool whole, float (&sums)[each][4 * fours]) const {
    float of_part[each][4 * fours] = {};
    BITNET_NO_UNROLL
    for (uint32_t from = 0; from < n; from += memory::positions) {
      stage_values(from);
      if (whole)
        add_positions<true>(from, of_part);
      else
        add_positions<false>(from, of_part);
    }
    BITNET_UNROLL
    for (uint32_t i = 0; i < each; ++i) {
      const merging& state = m_.merged[first_row() + i];
      if (state.of_part < 0) continue;
      BITNET_UNROLL
      for (uint32_t e = 0; e < 4 * fours; ++e)
        sums[i][e] = sums[i][e] * state.before + of_part[i][e] * state.of_part;
    }
  }
  __device__ static uint32_t first_row() { return thread() / column_groups * each; }

  __device__ void stage_values(uint32_t from) const {
    constexpr uint32_t pieces = width / 16;
    const uint32_t this_thread = thread(), j = this_thread / pieces, piece = this_thread % pieces;
    const uint32_t* value =
        words(6) + uint64_t{m_.at[from + j]} * gpu::kv_row_words(l_.constants[2], head_dim());
    float x[16];
    given_formats(l_).with_value(
        [&](auto of) { sixteen_of<decltype(of)>(value, piece, head_dim(), x); });
    __syncthreads();  // what was there before has been read
    BITNET_UNROLL
    for (uint32_t four = 0; four < 4; ++four)
      put_four_of(m_.staged + j * width + memory::place(4 * piece + four), x, four);
    __syncthreads();
  }

  template <bool whole>
  __device__ void add_positions(uint32_t from, float (&sums)[each][4 * fours]) const {
    const uint32_t this_thread = thread(), column = this_thread % column_groups;
    const float* weights = m_.weights + from * memory::stride + this_thread / column_groups * each;
    const float* columns[fours];
    BITNET_UNROLL
    for (uint32_t i = 0; i < fours; ++i)
      columns[i] = m_.staged + memory::place(column + column_groups * i);
    BITNET_NO_UNROLL
    for (uint32_t some = 0; some < memory::positions; some += 4) {
      BITNET_UNROLL
      for (uint32_t j = some; j < some + 4; ++j) {
        float w[each];
        weights_of(weights + j * memory::stride, w);
        BITNET_UNROLL
        for (uint32_t i = 0; i < fours; ++i) {
          float v[4];
          load_floats(columns[i] + j * width, v);
          BITNET_UNROLL
          for (uint32_t r = 0; r < each; ++r) {
            if (!whole && w[r] < 0) continue;
            BITNET_UNROLL
            for (uint32_t e = 0; e < 4; ++e)
              sums[r][4 * i + e] = fmaf(w[r], v[e], sums[r][4 * i + e]);
          }
        }
      }
    }
  }
  __device__ static void weights_of(const float* from, float (&out)[each]) {
    if constexpr (each == 4)
      load_floats(from, out);
    else
      for (uint32_t i = 0; i < each; ++i) out[i] = from[i];
  }

  __device__ void finish(const float (&sums)[each][4 * fours]) const {
    BITNET_UNROLL
    for (uint32_t r = 0; r < each; ++r) {
      const uint32_t row = m_.row[first_row() + r];
      if (row == no_row) continue;
      const float total = m_.merged[first_row() + r].total;
      float* const y = memory_of<float>(l_, 7) + uint64_t{row} * head_dim();
      BITNET_UNROLL
      for (uint32_t i = 0; i < 4 * fours; ++i) {
        const uint32_t d = 4 * (threadIdx.x % column_groups) + i / 4 * 64 + i % 4;
        if (d < head_dim()) y[d] = sums[r][i] / total;
      }
    }
  }

  // Reads parameters of the launch where they are needed, from constant memory, to save registers.
  __device__ const uint32_t* words(uint32_t binding) const {
    return memory_of<const uint32_t>(l_, binding);
  }
  __device__ uint32_t head_dim() const { return l_.constants[4]; }
  __device__ gpu::attn_tiles_params params() const { return params_of<gpu::attn_tiles_params>(l_); }

  const launch& l_;
  const memory m_;
};

// Tiles of few rows, such as those of sequences with one token in the step, have one row per
// thread.
constexpr uint32_t most_each = 4, most_rows = row_groups * most_each;

template <uint32_t width>
__device__ void attend(const launch& l) {
  const auto p = params_of<gpu::attn_tiles_params>(l);
  const auto* sequences = memory_of<const uint32_t>(l, 3);
  const uint32_t of_kv = p.n_heads / p.n_kv_heads, most = most_rows / smaller(of_kv, most_rows);
  const uint32_t shares = gpu::attn_tile_shares(of_kv, most_rows), n_tokens = rows_of(l);
  each_y(n_tokens, [&](uint32_t t) {
    const uint32_t tokens = tokens_of_tile(sequences, t, n_tokens, most);
    if (tokens == 0) return;
    each_group(uint64_t{p.n_kv_heads} * shares, [&](uint32_t unit) {
      const uint32_t share = unit % shares, kv_head = unit / shares;
      const uint32_t left = of_kv - share * most_rows;
      const tile one = {t, tokens, kv_head, kv_head * of_kv + share * most_rows,
                        smaller(left, most_rows)};
      if (one.rows() <= row_groups)
        prompt<width, 1>(l).take(one);
      else
        prompt<width, most_each>(l).take(one);
    });
  });
}

}  // namespace

// Sums of many rows and columns take more registers than four groups on a multiprocessor can have.
#define BITNET_ATTENTION_OF_PROMPTS(width, groups) \
  BITNET_KERNEL_OF(attn_prompt_##width, groups) {  \
    attend<width>(l);                              \
  }
BITNET_ATTENTION_OF_PROMPTS(64, 3)
BITNET_ATTENTION_OF_PROMPTS(128, 3)
BITNET_ATTENTION_OF_PROMPTS(256, 2)
