// attn_rounded: attention of prompts on tensor cores, in programs that permit f16. Queries, keys,
// weights and values are factors of f16, their products are added in f32. A warp has 16 rows of a
// tile: scores, weights and sums stay in its registers, and a weight's place there is where the
// next product wants it.

#include <cfloat>

#include "fragments.cuh"
#include "gpu-common/simt/tile.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Bindings of attn_rounded, in the order of plugins/gpu-common/kernels.hpp.
enum : uint32_t { header, q_rows, positions, sequences, block_tables, keys, values, y };

// Returns the biased exponent of the power of two that a row of q is multiplied by. The row's
// largest finite magnitude is then in [2^14, 2^15), or lower if it is below 2^-46.
__device__ uint32_t exponent_for(float largest) {
  const uint32_t found = bits_of<uint32_t>(largest) >> 23, wanted = 127 + 14;
  return smaller(127 + wanted - found, 127 + 60);
}

// What weights, at most 1, are multiplied by before they are rounded: so f16's normal range reaches
// down to weights of 2^-29.
constexpr float weight_power = 32768.0f;

constexpr uint32_t rounded_rows = 64;

template <uint32_t width>
struct rounded_memory {
  static constexpr tile_form form = rounded_prompt_form<width>;
  static constexpr uint32_t stage = rounded_stage<width>;
  static constexpr uint32_t pieces = width / 8;                        // 16 bytes of a position
  static constexpr uint32_t kept = rounded_kept<width> / 16;           // sixteens of q in registers
  static constexpr uint32_t sixteens = width / 16, tiles = stage / 8;  // of eight positions
  static_assert(form.rows == rounded_rows && rounded_rows == 16 * warps && part % stage == 0 &&
                stage <= 2 * warp);

  // (stage, pieces), each row in the order of key_place(); the same by value_place(); and fragments
  // of q, (sixteens - kept, threads), which each thread has for itself.
  __device__ static uint4* keys() { return static_cast<uint4*>(shared_memory()); }
  __device__ static uint4* values() { return keys() + stage * pieces; }
  __device__ static uint4* left() { return values() + stage * pieces; }
  // Of each row: what it sees, and which it is in q and y, or no_row.
  __device__ static sight* sees() {
    return reinterpret_cast<sight*>(left() + (sixteens - kept) * threads);
  }
  __device__ static uint32_t* row() { return reinterpret_cast<uint32_t*>(sees() + rounded_rows); }
  // (2, stage): rows of the KV pool, or no_row for what is not visible.
  __device__ static uint32_t* at() { return row() + rounded_rows; }
  // (stage): not 0 where a value is no number.
  __device__ static uint32_t* odd() { return at() + 2 * stage; }

  // Where a piece of a position lies, so that the eight lanes that are served at a time find theirs
  // in different banks: four pieces of two positions, or one of eight.
  __device__ static uint32_t key_place(uint32_t j, uint32_t piece) {
    return j * pieces + (piece ^ j % 2 * 4);
  }
  __device__ static uint32_t value_place(uint32_t j, uint32_t piece) {
    return j * pieces + (piece ^ j % 8);
  }
};

// A lane's values of its two rows: row lane / 4 of the warp, and the row 8 further.
struct two_rows {
  float factor[2];   // scores are products times this, for powers of two
  float highest[2];  // score so far
  float total[2];    // of the lane's own weights
};

template <uint32_t width>
class rounded_prompt {
 public:
  using memory = rounded_memory<width>;
  static constexpr uint32_t stage = memory::stage, tiles = memory::tiles, pieces = memory::pieces,
                            kept = memory::kept;

  __device__ explicit rounded_prompt(const launch& l) : l_(l) {}

  // The whole context of a tile.
  __device__ void take(const tile& one) const {
    const auto seen = sight_of_tile::of(one, [&](uint32_t t) { return sight_of(t); });
    const auto first_of = [&](uint32_t i) {
      return seen.any.part_at(i / (part / stage)) * part + i % (part / stage) * stage;
    };
    const auto is_whole = [&](uint32_t first) { return seen.whole(first, stage); };
    put_rows(one);
    __syncthreads();
    find(one, first_of(0), is_whole(first_of(0)), memory::at());
    __syncthreads();
    copy_keys(memory::at());
    uint32_t q[kept][4];
    two_rows state;
    load_q(q, state);
    float sums[pieces][4] = {};
    const uint32_t n = seen.any.parts() * (part / stage);
    BITNET_NO_UNROLL
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t first = first_of(i), *here = memory::at() + i % 2 * stage;
      const bool whole = is_whole(first);
      wait_for_copies();
      __syncthreads();  // keys have arrived, and no thread reads the previous values
      copy_values(here);
      if (i + 1 < n)
        find(one, first_of(i + 1), is_whole(first_of(i + 1)), memory::at() + (i + 1) % 2 * stage);
      float scores[tiles][4] = {};
      multiply_keys(q, scores);
      weigh(first, whole, scores, state, sums);
      if (!whole && threadIdx.x < stage) memory::odd()[threadIdx.x] = 0;
      wait_for_copies();
      __syncthreads();  // values have arrived, and no thread reads the keys
      if (i + 1 < n) copy_keys(memory::at() + (i + 1) % 2 * stage);
      if (whole)
        add_values(scores, sums);
      else
        add_seen_values(first, here, scores, sums);
    }
    finish(state, sums);
    __syncthreads();
  }

 private:
  __device__ sight sight_of(uint32_t t) const {
    return sight::of(words(positions)[t], words(header)[2], words(header)[3], params().window);
  }
  // The lane's rows in the tile.
  __device__ static uint32_t row_at(uint32_t half) {
    return warp_of_group() * 16 + lane() / 4 + half * 8;
  }

  __device__ void put_rows(const tile& one) const {
    for (uint32_t r = threadIdx.x; r < rounded_rows; r += threads) {
      const bool some = r < one.rows();
      const uint32_t t = one.first_token + r / one.heads;
      memory::row()[r] = some ? t * params().n_heads + one.first_head + r % one.heads : no_row;
      memory::sees()[r] = some ? sight_of(t) : sight{};
    }
  }

  // The rows of the KV pool that have the positions of a stage, as far as a token of the tile sees
  // them. `whole`: all see all of them.
  __device__ void find(const tile& one, uint32_t first, bool whole, uint32_t* at) const {
    const uint32_t j = threadIdx.x, position = first + j;
    if (j >= stage) return;
    bool seen = whole;
    for (uint32_t r = 0; !seen && r < one.rows(); r += one.heads)
      seen = memory::sees()[r].sees(position);
    if (!seen) {
      at[j] = no_row;
      return;
    }
    const auto p = params();
    const uint32_t* table =
        words(block_tables) + uint64_t{words(sequences)[one.first_token]} * p.max_blocks;
    const uint32_t block = table[position / p.block_tokens];
    at[j] = (block * p.n_kv_heads + one.kv_head) * p.block_tokens + position % p.block_tokens;
  }

  __device__ void copy_keys(const uint32_t* at) const {
    copy(words(keys), at,
         [&](uint32_t j, uint32_t piece) { return memory::keys() + memory::key_place(j, piece); });
  }
  __device__ void copy_values(const uint32_t* at) const {
    copy(words(values), at, [&](uint32_t j, uint32_t piece) {
      return memory::values() + memory::value_place(j, piece);
    });
  }
  // Writes zeros for slots that were never written and for elements past the end of a head, so that
  // neither is multiplied.
  template <class Place>
  __device__ void copy(const uint32_t* from, const uint32_t* at, Place place) const {
    constexpr uint32_t at_once = 4 * threads;
    static_assert(stage * pieces % at_once == 0);
    BITNET_NO_UNROLL
    for (uint32_t some = threadIdx.x; some < stage * pieces; some += at_once) {
      BITNET_UNROLL
      for (uint32_t i = some; i < some + at_once; i += threads) {
        const uint32_t j = i / pieces, piece = i % pieces, row = at[j];
        if (row != no_row && 8 * piece < head_dim())
          copy_ahead(place(j, piece), reinterpret_cast<const uint4*>(
                                          from + uint64_t{row} * (head_dim() / 2) + 4 * piece));
        else
          *place(j, piece) = make_uint4(0, 0, 0, 0);
      }
    }
  }

  // Eight elements of a row of q, from 32 * i + 8 * (lane % 4) on.
  __device__ void eight_of(uint32_t half, uint32_t i, float (&out)[8]) const {
    const uint32_t row = memory::row()[row_at(half)], d = 32 * i + lane() % 4 * 8;
    if (row == no_row || d >= head_dim()) {
      for (float& x : out) x = 0;
      return;
    }
    float fours[2][4];
    const float* from = memory_of<const float>(l_, q_rows) + uint64_t{row} * head_dim() + d;
    for (uint32_t four = 0; four < 2; ++four) {
      load_floats(from + 4 * four, fours[four]);
      for (uint32_t e = 0; e < 4; ++e) out[4 * four + e] = fours[four][e];
    }
  }
  // Fragments of two sixteens have the words of 16 bytes, as keys have them: words 2 * h and 2 * h
  // + 1 of a lane are its words of sixteen h.
  __device__ void load_q(uint32_t (&q)[kept][4], two_rows& state) const {
    float power[2];
    for (uint32_t half = 0; half < 2; ++half) {
      float largest = 0;
      BITNET_NO_UNROLL
      for (uint32_t i = 0; i < width / 32; ++i) {
        float x[8];
        eight_of(half, i, x);
        for (const float one : x)
          if (fabsf(one) <= FLT_MAX) largest = larger(largest, fabsf(one));
      }
      for (uint32_t d = 1; d < 4; d *= 2) largest = larger(largest, shuffle_xor(largest, d));
      const uint32_t exponent = exponent_for(largest);
      constexpr float log2_of_e = 1.44269504f;
      power[half] = power_of(exponent);
      state.factor[half] = params().scale * log2_of_e * power_of(2 * 127 - exponent);
      state.highest[half] = -INFINITY;
      state.total[half] = 0;
    }
    BITNET_UNROLL
    for (uint32_t i = 0; i < width / 32; ++i) {
      uint32_t a[2][4];
      for (uint32_t half = 0; half < 2; ++half) {
        float x[8];
        eight_of(half, i, x);
        for (uint32_t w = 0; w < 4; ++w)
          a[w / 2][w % 2 * 2 + half] =
              two_f32_to_f16(x[2 * w] * power[half], x[2 * w + 1] * power[half]);
      }
      for (uint32_t h = 0; h < 2; ++h)
        if (2 * i + h < kept)
          for (uint32_t w = 0; w < 4; ++w) q[2 * i + h][w] = a[h][w];
        else
          memory::left()[(2 * i + h - kept) * threads + threadIdx.x] =
              make_uint4(a[h][0], a[h][1], a[h][2], a[h][3]);
    }
  }

  __device__ void multiply_keys(const uint32_t (&q)[kept][4], float (&scores)[tiles][4]) const {
    const uint32_t own = lane() / 4 * pieces + lane() % 4, turn = lane() / 4 % 2;
    BITNET_UNROLL
    for (uint32_t i = 0; i < width / 32; ++i) {
      // Piece 4 * i + lane % 4, as key_place() has it.
      const uint4* from = memory::keys() + own + i / 2 * 8 + (i % 2 == turn ? 0 : 4);
      uint32_t a[2][4];
      for (uint32_t h = 0; h < 2; ++h) fragment_of(q, 2 * i + h, a[h]);
      BITNET_UNROLL
      for (uint32_t n = 0; n < tiles; n += 4) {
        uint4 key[4];
        BITNET_UNROLL
        for (uint32_t t = 0; t < 4; ++t) key[t] = from[(n + t) * 8 * pieces];
        BITNET_UNROLL
        for (uint32_t h = 0; h < 2; ++h) {
          BITNET_UNROLL
          for (uint32_t t = 0; t < 4; ++t) {
            const uint2 pair = half_of(key[t], h);
            const uint32_t b[2] = {pair.x, pair.y};
            multiply_f16(scores[n + t], a[h], b);
          }
        }
      }
    }
  }
  __device__ void fragment_of(const uint32_t (&q)[kept][4], uint32_t i, uint32_t (&out)[4]) const {
    if (i < kept) {
      for (uint32_t w = 0; w < 4; ++w) out[w] = q[i][w];
      return;
    }
    const uint4 found = memory::left()[(i - kept) * threads + threadIdx.x];
    out[0] = found.x;
    out[1] = found.y;
    out[2] = found.z;
    out[3] = found.w;
  }

  // Bit 2 * n + e: the row sees the position of element e of tile n. A lane has the positions 8 * n
  // + 2 * (lane % 4) + e.
  __device__ uint32_t seen_by(uint32_t half, uint32_t first) const {
    const sight sees = memory::sees()[row_at(half)];
    uint32_t out = 0;
    BITNET_UNROLL
    for (uint32_t i = 0; i < 2 * tiles; ++i)
      out |= (sees.sees(first + i / 2 * 8 + token_of(i % 2)) ? 1u : 0u) << i;
    return out;
  }

  // Turns products into weights, and multiplies the earlier sums by the change of the highest
  // score.
  __device__ void weigh(uint32_t first, bool whole, float (&scores)[tiles][4], two_rows& state,
                        float (&sums)[pieces][4]) const {
    float before[2];
    BITNET_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t seen = whole ? ~0u : seen_by(half, first);
      float highest = state.highest[half];
      BITNET_UNROLL
      for (uint32_t i = 0; i < 2 * tiles; ++i) {
        float& x = scores[i / 2][2 * half + i % 2];
        x *= state.factor[half];
        if ((seen >> i & 1) != 0) highest = larger(highest, x);
      }
      for (uint32_t d = 1; d < 4; d *= 2) highest = larger(highest, shuffle_xor(highest, d));
      before[half] = highest == state.highest[half] ? 1.0f : exp2f(state.highest[half] - highest);
      float total = 0;
      BITNET_UNROLL
      for (uint32_t i = 0; i < 2 * tiles; ++i) {
        float& x = scores[i / 2][2 * half + i % 2];
        x = (seen >> i & 1) != 0 ? exp2f(x - highest) : 0.0f;
        total += x;
      }
      state.total[half] = state.total[half] * before[half] + total;
      state.highest[half] = highest;
    }
    if (lanes_with(before[0] != 1 || before[1] != 1) == 0) return;
    BITNET_UNROLL
    for (uint32_t i = 0; i < 4 * pieces; ++i) sums[i / 4][i % 4] *= before[i % 4 / 2];
  }

  __device__ void add_values(const float (&weights)[tiles][4], float (&sums)[pieces][4]) const {
    const uint32_t own = lane() % 16 * pieces, turned = lane() / 16 ^ lane() % 8;
    BITNET_UNROLL
    for (uint32_t i = 0; i < tiles / 2; ++i) {
      uint32_t a[4];
      for (uint32_t w = 0; w < 4; ++w)
        a[w] = two_f32_to_f16(weights[2 * i + w / 2][w % 2 * 2] * weight_power,
                              weights[2 * i + w / 2][w % 2 * 2 + 1] * weight_power);
      BITNET_UNROLL
      for (uint32_t n = 0; n < pieces; n += 2) {
        // Piece n + lane / 16 of position 16 * i + lane % 16, as value_place() has it.
        uint32_t columns[4];
        load_columns(memory::values() + own + i * 16 * pieces + n / 8 * 8 + (turned ^ n % 8),
                     columns);
        const uint32_t left[2] = {columns[0], columns[1]}, right[2] = {columns[2], columns[3]};
        multiply_f16(sums[n], a, left);
        multiply_f16(sums[n + 1], a, right);
      }
    }
  }

  // The same where not every row sees every position. A weight of 0 would make NaN of an infinite
  // value, so positions that have one are added by themselves, to the rows that see them.
  __device__ void add_seen_values(uint32_t first, const uint32_t* at,
                                  const float (&weights)[tiles][4],
                                  float (&sums)[pieces][4]) const {
    BITNET_NO_UNROLL
    for (uint32_t i = threadIdx.x; i < stage * pieces; i += threads) {
      const uint4 piece = memory::values()[i];
      const auto is_odd = [](uint32_t w) {
        return (w & 0x7c00u) == 0x7c00u || (w & 0x7c000000u) == 0x7c000000u;
      };
      if (is_odd(piece.x) || is_odd(piece.y) || is_odd(piece.z) || is_odd(piece.w))
        memory::odd()[i / pieces] = 1;
    }
    __syncthreads();
    const uint32_t lower = lanes_with(memory::odd()[lane()] != 0),
                   upper = stage > warp ? lanes_with(memory::odd()[stage - warp + lane()] != 0) : 0;
    if ((lower | upper) != 0) {
      for (uint32_t i = threadIdx.x; i < stage * pieces; i += threads)
        if (memory::odd()[i / pieces] != 0) memory::values()[i] = make_uint4(0, 0, 0, 0);
      __syncthreads();
    }
    add_values(weights, sums);
    BITNET_NO_UNROLL
    for (uint32_t j = 0; (lower | upper) != 0 && j < stage; ++j)
      if (((j < warp ? lower >> j : upper >> (j - warp)) & 1) != 0)
        add_position(first + j, j, at[j], weights, sums);
  }
  __device__ void add_position(uint32_t position, uint32_t j, uint32_t row,
                               const float (&weights)[tiles][4], float (&sums)[pieces][4]) const {
    const uint32_t* value = words(values) + uint64_t{row} * (head_dim() / 2) + lane() % 4;
    BITNET_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      uint32_t mine = 0;  // by its bits, or the compiler would index weights in memory
      BITNET_UNROLL
      for (uint32_t i = 0; i < 2 * tiles; ++i) {
        const bool is_it = i / 2 == j / 8 && i % 2 == j % 2;
        mine |= bits_of<uint32_t>(weights[i / 2][2 * half + i % 2]) & (is_it ? ~0u : 0u);
      }
      const float weight = bits_of<float>(shuffle(mine, lane() / 4 * 4 + j % 8 / 2)) * weight_power;
      if (!memory::sees()[row_at(half)].sees(position)) continue;
      BITNET_UNROLL
      for (uint32_t n = 0; n < pieces; ++n) {
        if (8 * n >= head_dim()) continue;
        const uint32_t two = value[4 * n];
        for (uint32_t e = 0; e < 2; ++e)
          sums[n][2 * half + e] =
              fmaf(weight, f16_to_f32(two >> 16 * e & 0xffffu), sums[n][2 * half + e]);
      }
    }
  }

  __device__ void finish(const two_rows& state, const float (&sums)[pieces][4]) const {
    BITNET_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      float total = state.total[half];
      for (uint32_t d = 1; d < 4; d *= 2) total += shuffle_xor(total, d);
      total *= weight_power;
      const uint32_t row = memory::row()[row_at(half)];
      if (row == no_row) continue;
      float* const to = memory_of<float>(l_, y) + uint64_t{row} * head_dim() + token_of(0);
      BITNET_UNROLL
      for (uint32_t n = 0; n < pieces; ++n) {
        if (8 * n >= head_dim()) continue;
        *reinterpret_cast<uint2*>(to + 8 * n) =
            make_uint2(bits_of<uint32_t>(sums[n][2 * half] / total),
                       bits_of<uint32_t>(sums[n][2 * half + 1] / total));
      }
    }
  }

  // Reads parameters of the launch where they are needed, from constant memory, to save registers.
  __device__ const uint32_t* words(uint32_t binding) const {
    return memory_of<const uint32_t>(l_, binding);
  }
  __device__ uint32_t head_dim() const { return l_.constants[4]; }
  __device__ gpu::attn_rounded_params params() const {
    return params_of<gpu::attn_rounded_params>(l_);
  }

  const launch& l_;
};

template <uint32_t width>
__device__ void attend(const launch& l) {
  const auto p = params_of<gpu::attn_rounded_params>(l);
  const auto* sequence_of = memory_of<const uint32_t>(l, sequences);
  const uint32_t of_kv = p.n_heads / p.n_kv_heads;
  const uint32_t most = rounded_rows / smaller(of_kv, rounded_rows);
  const uint32_t shares = gpu::attn_tile_shares(of_kv, rounded_rows), n_tokens = rows_of(l);
  each_y(n_tokens, [&](uint32_t t) {
    const uint32_t tokens = tokens_of_tile(sequence_of, t, n_tokens, most);
    if (tokens == 0) return;
    each_group(uint64_t{p.n_kv_heads} * shares, [&](uint32_t unit) {
      const uint32_t share = unit % shares, kv_head = unit / shares;
      const uint32_t left = of_kv - share * rounded_rows;
      rounded_prompt<width>(l).take({t, tokens, kv_head, kv_head * of_kv + share * rounded_rows,
                                     smaller(left, rounded_rows)});
    });
  });
}

}  // namespace

// Code of sm_75 for the widest heads would take more than the 255 registers that a thread can have,
// and spill: host code leaves that form out.
#define BITNET_ROUNDED_ATTENTION(width, groups)        \
  BITNET_KERNEL_OF(attn_prompt_f16_##width, groups) {  \
    if (width <= 128 || from_sm80()) attend<width>(l); \
  }
BITNET_ROUNDED_ATTENTION(64, 3)
BITNET_ROUNDED_ATTENTION(128, 2)
BITNET_ROUNDED_ATTENTION(256, 2)
