// Attention of a step of one token, with the norms, rotations and writes that precede it.
//
// run()    a group takes one part of one KV head, or half of its heads of queries
// take()   find_factors(): norms of the heads; write(): the token's key and value to the pool;
//          load(): rotated queries to shared memory; take_part(): scores, weights, sums of values
// merge()  the group that finishes the last part of a KV head adds up the results of all parts

#include "attention.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Row `row` of a pool whose rows have so many words. 32 bits are enough for the bytes of a row.
__device__ inline const uint32_t* row_at(const uint32_t* pool, uint32_t row, uint32_t words) {
  return static_cast<const uint32_t*>(address_of(pool, row, 4 * words));
}

// Rows of f16 that are aligned to loads of four words.
struct aligned_f16_row : f16_row {
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    for (uint32_t side = 0; side < 2; ++side) {
      const uint4 words = *reinterpret_cast<const uint4*>(row + 8 * p + 4 * side);
      const uint32_t each[4] = {words.x, words.y, words.z, words.w};
      for (uint32_t i = 0; i < 4; ++i) {
        float two[2];
        two_f16_to_f32(each[i], two);
        out[8 * side + 2 * i] = two[0];
        out[8 * side + 2 * i + 1] = two[1];
      }
    }
  }
};

// Columns 2 * pair and the next of a row of n; `column` is row_at() of the pool for f16, which
// begins at the pair's word.
template <class Value>
__device__ void two_columns(const uint32_t* column, uint32_t pair, uint32_t n, float (&out)[2]) {
  if constexpr (std::is_same_v<Value, f16_row>)
    two_f16_to_f32(*column, out);
  else
    two_of<Value>(column, pair, n, out);
}

// Loads N aligned floats, by four if N is a multiple of 4.
template <uint32_t N>
__device__ void load_all(const float* p, float (&out)[N]) {
  BITNET_UNROLL
  for (uint32_t i = 0; i < N; i += N % 4 == 0 ? 4 : 1) {
    if constexpr (N % 4 == 0) {
      float four[4];
      load_floats(p + i, four);
      BITNET_UNROLL
      for (uint32_t j = 0; j < 4; ++j) out[i + j] = four[j];
    } else {
      out[i] = p[i];
    }
  }
}

constexpr uint32_t merged_at_once = 32;  // parts

// Numbers of bindings: the order in kernels.hpp.
constexpr uint32_t of_keys = 2, of_values = 3, of_rotations = 4, of_positions = 5, of_sequences = 6,
                   of_slots = 7, of_block_tables = 8, of_weights_of_q = 9, of_weights_of_k = 10,
                   of_key_pool = 11, of_value_pool = 12, of_parts = 13, of_tickets = 14,
                   of_output = 15;

// The attention of one token. Queries and keys are normed, if they have norms, and rotated; the key
// and the value are written; the last group merges the results of the parts.
template <class Formats, uint32_t rows>
class attention_of_token : attention<Formats, rows> {
  using base = attention<Formats, rows>;
  using base::m_, base::out_, base::p_, base::q_;

 public:
  __device__ explicit attention_of_token(const launch& l)
      : base(l, {.positions = of_positions,
                 .sequences = of_sequences,
                 .block_tables = of_block_tables,
                 .keys = of_key_pool,
                 .values = of_value_pool,
                 .out = of(l).parts != 0 ? of_parts : of_output}),
        whole_(of(l)),
        key_type_(l.constants[1]),
        value_type_(l.constants[2]),
        k_(memory_of<const float>(l, of_keys)),
        v_(memory_of<const float>(l, of_values)),
        rotated_{memory_of<const float>(l, of_rotations), whole_.pairs, whole_.neox != 0},
        slots_(memory_of<const uint32_t>(l, of_slots)),
        q_weight_(whole_.norms != 0 ? memory_of<const float>(l, of_weights_of_q) : nullptr),
        k_weight_(whole_.norms != 0 ? memory_of<const float>(l, of_weights_of_k) : nullptr),
        keys_(memory_of<uint32_t>(l, of_key_pool)),
        values_(memory_of<uint32_t>(l, of_value_pool)),
        tickets_(memory_of<uint32_t>(l, of_tickets)),
        y_(memory_of<float>(l, of_output)),
        words_of_key_(static_cast<uint32_t>(this->key_words_)),
        words_of_value_(static_cast<uint32_t>(this->value_words_)) {
    static_assert(rows % 4 == 0, "m_.at is read by four words");
  }

  __device__ static void run(const launch& l) {
    const attention_of_token all(l);
    const sight sees = all.sight_of(0);
    const gpu::attn_tiles_params& p = all.p_;
    const uint32_t n = sees.parts(), split = p.parts ? p.parts : 1;
    const uint32_t heads = p.n_heads / p.n_kv_heads, shares = shares_of(p, heads, n);
    each_group(uint64_t{p.n_kv_heads} * split, [&](uint32_t unit) {
      const uint32_t kv_head = unit / split, turn = unit - kv_head * split;
      if (p.parts != 0 && turn >= n * shares) return;
      const tile whole = {0, 1, kv_head, kv_head * heads, heads};
      tile mine = whole;
      if (shares == 2) {
        const uint32_t half = (heads + 1) / 2;
        mine.first_head += turn % 2 * half;
        mine.heads = turn % 2 ? heads - half : half;
      }
      all.take(mine, sees, n, shares == 2 ? turn / 2 : turn);
      if (p.parts != 0 && n != 1 && is_last(all.tickets_ + kv_head, n * shares))
        all.merge(whole, sees, n);
      __syncthreads();
    });
  }

  // Takes part number `mine` of the n visible parts, or all of them if the context is not split.
  __device__ void take(const tile& one, const sight& sees, uint32_t n, uint32_t mine) const {
    const bool split = p_.parts != 0, writes = !split || mine == n - 1;
    if (whole_.norms != 0) find_factors(one, writes);
    if (writes) write(one);  // visible after the barriers of load()
    load(one, !split);
    if (split) {
      take_part(one, sees, sees.part_at(mine), n == 1 ? all_of_it : one_of_several);
      return;
    }
    for (uint32_t i = 0; i < n; ++i) take_part(one, sees, sees.part_at(i), in_turn);
    finish(one);
  }

 private:
  __device__ static gpu::attn_token_params of(const launch& l) {
    return params_of<gpu::attn_token_params>(l);
  }

  // How many groups share the heads of a KV head: two while at most half of the launched groups
  // have a part, and all that have one fit on the multiprocessors of a large device.
  __device__ static uint32_t shares_of(const gpu::attn_tiles_params& p, uint32_t heads,
                                       uint32_t n) {
    constexpr uint32_t most = 128;  // groups
    return heads > 1 && 2 * n <= p.parts && 2 * n * p.n_kv_heads <= most ? 2 : 1;
  }

  // Factors of norms, of each head of queries and then of the key, lie where scores will be.
  __device__ float& factor(uint32_t row) const { return m_.scores[row]; }
  // A warp takes a head, so that no head waits for another one.
  __device__ void find_factors(const tile& one, bool of_key) const {
    for (uint32_t r = warp_of_group(); r < one.heads + (of_key ? 1 : 0); r += warps) {
      const bool is_key = r == one.heads;
      const float* x = is_key ? k_ + uint64_t{one.kv_head} * p_.head_dim
                              : q_ + uint64_t{one.first_head + r} * p_.head_dim;
      const float found = factor_of(square_sum_of_warp(x, p_.head_dim), p_.head_dim,
                                    is_key ? whole_.eps_of_k : whole_.eps_of_q);
      if (lane() == 0) factor(r) = found;
    }
    __syncthreads();
  }

  // The row of the KV pool that has an offset in a block.
  __device__ uint32_t row_of(uint32_t block, uint32_t kv_head, uint32_t offset) const {
    return (block * p_.n_kv_heads + kv_head) * p_.block_tokens + offset;
  }

  // The token's key and value of a KV head. Groups that share it store the same words, so it does
  // not matter which of them is read.
  __device__ void write(const tile& one) const {
    const uint32_t slot = slots_[0], block = slot / p_.block_tokens;
    const uint32_t to = row_of(block, one.kv_head, slot - block * p_.block_tokens);
    const uint32_t from = one.kv_head * p_.head_dim;
    const normed_head key = {k_ + from, k_weight_, k_weight_ ? factor(one.heads) : 1};
    const uint32_t of_k = units_of(key_type_, p_.head_dim);
    const uint32_t of_v = units_of(value_type_, p_.head_dim);
    for (uint32_t unit = threadIdx.x; unit < of_k + of_v; unit += threads) {
      if (unit < of_k)
        put(key_type_, key, p_.head_dim, unit, keys_ + uint64_t{to} * words_of_key_, rotated_);
      else
        put(value_type_, v_ + from, p_.head_dim, unit - of_k,
            values_ + uint64_t{to} * words_of_value_, {nullptr, 0, false});
    }
  }

  // A thread loads a column of all rows, so it computes their rotation once. `sums`: also clears
  // the sums.
  __device__ void load(const tile& one, bool sums) const {
    if (threadIdx.x < rows) m_.merged[threadIdx.x] = {-INFINITY, 0, 0, 0};
    for (uint32_t i = threadIdx.x; sums && i < rows * p_.head_dim; i += threads) m_.sums[i] = 0;
    BITNET_NO_UNROLL
    for (uint32_t d = threadIdx.x; d < m_.width; d += threads) {
      const bool inside = d < p_.head_dim;
      const auto turn = rotated_.of(inside ? d : 0);
      const bool norms = whole_.norms != 0 && inside;
      const float by = norms ? q_weight_[d] : 0, by_other = norms ? q_weight_[turn.other] : 0;
      const float* head = q_ + one.first_head * p_.head_dim;
      float* to = m_.q + d / 4 * 4 * rows + d % 4;
      BITNET_UNROLL
      for (uint32_t r = 0; r < rows; ++r) {
        float x = 0;
        if (inside && r < one.heads) {
          x = norms ? head[d] * factor(r) * by : head[d];
          if (turn.some) {
            const float y = norms ? head[turn.other] * factor(r) * by_other : head[turn.other];
            x = x * turn.cosine + y * turn.sine;
          }
        }
        to[4 * r] = x;
        head += p_.head_dim;
      }
    }
    __syncthreads();
  }

  // The row of the KV pool that has position j of part i, if the token sees it.
  __device__ uint32_t find(const tile& one, const sight& sees, uint32_t i, uint32_t j) const {
    const uint32_t position = i * part + j;
    if (!sees.sees(position)) return no_row;
    uint32_t block = i, offset = j;
    if (p_.block_tokens != part) {
      block = position / p_.block_tokens;
      offset = position - block * p_.block_tokens;
    }
    const uint32_t* table = this->block_tables_ + uint64_t{this->sequences_[0]} * p_.max_blocks;
    return row_of(table[block], one.kv_head, offset);
  }

  // Whether this group takes all parts in turn, leaves the result of one of several parts to be
  // merged, or takes the only one.
  enum parts_are : uint32_t { in_turn, one_of_several, all_of_it };

  __device__ void take_part(const tile& one, const sight& sees, uint32_t i, parts_are what) const {
    const uint32_t first = i * part, row = find(one, sees, i, threadIdx.x % part);
    if (threadIdx.x < part) m_.at[threadIdx.x] = row == no_row ? 0 : row;
    const uint32_t* key = row == no_row ? nullptr : row_at(keys_, row, words_of_key_);
    const bool aligned = reinterpret_cast<uint64_t>(keys_) % 16 == 0 && words_of_key_ % 4 == 0;
    this->formats_.with_key([&](auto format) {
      using type = decltype(format);
      if (std::is_same_v<type, f16_row> && aligned)
        multiply_key<aligned_f16_row>(m_, key, p_.head_dim, one.heads);
      else
        multiply_key<type>(m_, key, p_.head_dim, one.heads);
    });
    __syncthreads();
    const auto same = [&](uint32_t) -> const sight& { return sees; };
    weigh(m_, first, p_.scale, one.heads, same, [&](uint32_t r, float highest, float total) {
      if (what != one_of_several) {
        m_.merged[r].add(highest, total);
      } else if (r < one.heads) {
        float* written = left_of(one, r, i) + p_.head_dim;
        written[0] = highest;
        written[1] = total;
      }
    });
    __syncthreads();
    this->formats_.with_value([&](auto format) {
      if (p_.head_dim <= threads / 2)
        sum_part<decltype(format), rows / 4>(one, sees, i, what);
      else
        sum_part<decltype(format), rows / 2>(one, sees, i, what);
    });
    __syncthreads();
  }

  // As sum_values(), for rows that see the same positions: a batch of positions that the token sees
  // whole is added without comparisons.
  template <class Value, uint32_t each>
  __device__ void sum_part(const tile& one, const sight& sees, uint32_t i, parts_are what) const {
    constexpr uint32_t width = threads / (rows / each), at_once = each <= 4 ? 8 : 4;
    constexpr bool halves = std::is_same_v<Value, f16_row>;
    const uint32_t r = threadIdx.x / width * each, pairs = (p_.head_dim + 1) / 2;
    const uint32_t first = i * part, n = smaller(part, sees.end - first);
    BITNET_NO_UNROLL
    for (uint32_t pair = threadIdx.x % width; r < one.heads && pair < pairs; pair += width) {
      const uint32_t* from = halves ? values_ + pair : values_;
      float sums[each][2] = {};
      BITNET_NO_UNROLL
      for (uint32_t j = 0; j < n; j += at_once) {
        float v[at_once][2];
        BITNET_UNROLL
        for (uint32_t four = 0; four < at_once; four += 4) {
          const uint4 at = *reinterpret_cast<const uint4*>(m_.at + j + four);
          const uint32_t of[4] = {at.x, at.y, at.z, at.w};
          BITNET_UNROLL
          for (uint32_t k = 0; k < 4; ++k)
            two_columns<Value>(row_at(from, of[k], words_of_value_), pair, p_.head_dim,
                               v[four + k]);
        }
        const uint32_t begin = first + j;
        if (begin >= sees.begin && begin + at_once <= sees.end)
          add_values<each, at_once, true>(r, j, v, sums);
        else
          add_values<each, at_once, false>(r, j, v, sums);
      }
      BITNET_UNROLL
      for (uint32_t k = 0; k < each; ++k)
        if (r + k < one.heads) put_sums(one, r + k, 2 * pair, i, what, sums[k]);
    }
  }

  template <uint32_t each, uint32_t at_once, bool seen>
  __device__ void add_values(uint32_t r, uint32_t j, const float (&v)[at_once][2],
                             float (&sums)[each][2]) const {
    BITNET_UNROLL
    for (uint32_t k = 0; k < each; ++k) {
      float w[at_once];
      load_all(m_.scores + (r + k) * part + j, w);
      BITNET_UNROLL
      for (uint32_t at = 0; at < at_once; ++at) {
        if (!seen && w[at] < 0) continue;
        sums[k][0] = fmaf(w[at], v[at][0], sums[k][0]);
        sums[k][1] = fmaf(w[at], v[at][1], sums[k][1]);
      }
    }
  }

  // Columns d and d + 1 of a part.
  __device__ void put_sums(const tile& one, uint32_t r, uint32_t d, uint32_t i, parts_are what,
                           const float (&sums)[2]) const {
    const merging& state = m_.merged[r];
    const bool both = d + 1 < p_.head_dim;
    if (what == one_of_several) {
      float* to = left_of(one, r, i) + d;
      to[0] = sums[0];
      if (both) to[1] = sums[1];
    } else if (what == all_of_it) {  // the sum before is 0, and its factor may be NaN
      float* to = y_of(one, r) + d;
      const float before = 0.0f * state.before;
      to[0] = (before + sums[0] * state.of_part) / state.total;
      if (both) to[1] = (before + sums[1] * state.of_part) / state.total;
    } else {
      float* all = m_.sums + r * p_.head_dim + d;
      all[0] = all[0] * state.before + sums[0] * state.of_part;
      if (both) all[1] = all[1] * state.before + sums[1] * state.of_part;
    }
  }

  // Where the result of part i of a head lies, and the head's output.
  __device__ float* left_of(const tile& one, uint32_t r, uint32_t i) const {
    const uint32_t left = (one.first_head + r) * p_.parts + i;
    return out_ + uint64_t{left} * (p_.head_dim + 2);
  }
  __device__ float* y_of(const tile& one, uint32_t r) const {
    return y_ + (one.first_head + r) * p_.head_dim;
  }

  __device__ void finish(const tile& one) const {
    for (uint32_t d = threadIdx.x; d < p_.head_dim; d += threads)
      for (uint32_t r = 0; r < one.heads; ++r)
        y_of(one, r)[d] = m_.sums[r * p_.head_dim + d] / m_.merged[r].total;
  }

  // True if all other groups have stored the results of their parts.
  __device__ static bool is_last(uint32_t* tickets, uint32_t n) {
    __threadfence();  // makes this thread's results visible to the group that takes a later ticket
    if (turn_of_group(tickets) + 1 != n) return false;
    if (threadIdx.x == 0) *tickets = 0;
    __threadfence();
    return true;
  }

  // Results of merging::add() for merged_at_once parts. They use memory of the scores.
  struct factors {
    float *before, *of_part, *added;  // each (rows, merged_at_once); what a part adds to the total
  };

  // For parts [first, first + count) of the visible ones. For the rows whose parts this thread
  // takes, `so_far` has the largest scores of the earlier parts, and afterwards of all parts.
  // Neighbouring lanes have the parts of a row, so few exchanges find the largest score before each
  // part. Factors behind the last part change no sum: -0 is added, which keeps a sum of -0 as well.
  template <uint32_t of_thread>
  __device__ void prepare(const factors& f, const tile& one, const sight& sees, uint32_t first,
                          uint32_t count, float (&so_far)[of_thread]) const {
    BITNET_UNROLL
    for (uint32_t i = 0; i < of_thread; ++i) {
      const uint32_t at = threadIdx.x + i * threads, r = at / merged_at_once,
                     j = at % merged_at_once;
      const bool some = r < one.heads && j < count;
      const uint32_t offset = some ? sees.part_at(first + j) * (p_.head_dim + 2) : 0;
      float highest = -INFINITY, total = 0;
      if (some) {
        const float* found = left_of(one, r, 0) + offset + p_.head_dim;
        highest = found[0];
        total = found[1];
      }
      if (r == 0) m_.at[j] = offset;
      float before = -INFINITY, all = larger(-INFINITY, highest);  // without NaNs
      BITNET_UNROLL
      for (uint32_t d = 1; d < merged_at_once; d *= 2) {
        const float other = shuffle_xor(all, d);
        if (j & d) before = larger(before, other);
        all = larger(all, other);
      }
      before = larger(so_far[i], before);
      so_far[i] = larger(so_far[i], all);
      const float now = larger(before, highest), of_part = expf(highest - now);
      f.before[at] = some ? expf(before - now) : 1.0f;
      f.of_part[at] = some ? of_part : -0.0f;
      f.added[at] = some ? total * of_part : -0.0f;
    }
    __syncthreads();
  }

  // Adds prepared parts [j, j + ahead). `left`: the thread's column of the row's results. Without
  // `inside` some of these parts do not exist.
  template <uint32_t ahead, bool inside>
  __device__ void add_parts(const factors& f, const float* left, uint32_t at, uint32_t j,
                            uint32_t count, float& total, float& sum) const {
    float x[ahead], before[ahead], of_part[ahead], added[ahead];
    BITNET_UNROLL
    for (uint32_t i = 0; i < ahead; ++i) x[i] = inside || j + i < count ? left[m_.at[j + i]] : 0.0f;
    load_all(f.before + at + j, before);
    load_all(f.of_part + at + j, of_part);
    load_all(f.added + at + j, added);
    BITNET_UNROLL
    for (uint32_t i = 0; i < ahead; ++i) {
      total = total * before[i] + added[i];
      sum = sum * before[i] + x[i] * of_part[i];
    }
  }

  // In the order of attn_merge. A thread has a column of each head, and loads of several parts are
  // under way together.
  __device__ void merge(const tile& one, const sight& sees, uint32_t n) const {
    constexpr uint32_t ahead = 32 / rows, each = rows * merged_at_once, of_thread = each / threads;
    static_assert(each % threads == 0 && 3 * each <= 2 * rows * part && merged_at_once <= part);
    static_assert(warp % merged_at_once == 0);
    const factors f = {m_.scores, m_.scores + each, m_.scores + 2 * each};
    for (uint32_t from = 0; from < p_.head_dim; from += threads) {
      const uint32_t d = from + threadIdx.x;
      float so_far[of_thread], total[rows] = {}, sum[rows] = {};
      for (float& highest : so_far) highest = -INFINITY;
      for (uint32_t first = 0; first < n; first += merged_at_once) {
        const uint32_t count = smaller(merged_at_once, n - first);
        __syncthreads();  // no thread reads the scores, or earlier factors, any more
        prepare(f, one, sees, first, count, so_far);
        BITNET_NO_UNROLL
        for (uint32_t j = 0; d < p_.head_dim && j < count; j += ahead) {
          const bool inside = j + ahead <= count;
          BITNET_UNROLL
          for (uint32_t r = 0; r < rows; ++r) {
            if (r >= one.heads) continue;
            const float* left = left_of(one, r, 0) + d;
            if (inside)
              add_parts<ahead, true>(f, left, r * merged_at_once, j, count, total[r], sum[r]);
            else
              add_parts<ahead, false>(f, left, r * merged_at_once, j, count, total[r], sum[r]);
          }
        }
      }
      BITNET_UNROLL
      for (uint32_t r = 0; r < rows; ++r)
        if (r < one.heads && d < p_.head_dim) y_of(one, r)[d] = sum[r] / total[r];
    }
  }

  const gpu::attn_token_params whole_;
  const uint32_t key_type_, value_type_;
  const float *k_, *v_;
  const rotation rotated_;
  const uint32_t* slots_;
  const float *q_weight_, *k_weight_;  // of the norms; nullptr without
  uint32_t *keys_, *values_, *tickets_;
  float* y_;
  const uint32_t words_of_key_, words_of_value_;
};

}  // namespace

// Tiles of more rows keep more in registers. There is a kernel for each format that keys and values
// share, and one for pairs of formats, which are rare.
#define BITNET_ATTENTION_OF_TOKEN(name, formats, rows)                                            \
  BITNET_KERNEL_OF(attn_token_##name##rows, (rows) > 4 ? 2 : 3) {                                 \
    each_y(smaller(rows_of(l), 1), [&](uint32_t) { attention_of_token<formats, rows>::run(l); }); \
  }
BITNET_ATTENTION_OF_TOKEN(, given_formats, 4)
BITNET_ATTENTION_OF_TOKEN(, given_formats, 8)
#ifndef BITNET_ATTENTION_OF_GIVEN_FORMATS
BITNET_ATTENTION_OF_TOKEN(, given_formats, 16)
#define BITNET_ATTENTION_OF_PAIR(type)                       \
  using two_##type = fixed_formats<type##_row, type##_row>;  \
  BITNET_ATTENTION_OF_TOKEN(type##_##type##_, two_##type, 4) \
  BITNET_ATTENTION_OF_TOKEN(type##_##type##_, two_##type, 8) \
  BITNET_ATTENTION_OF_TOKEN(type##_##type##_, two_##type, 16)
BITNET_ATTENTION_OF_PAIR(f32)
BITNET_ATTENTION_OF_PAIR(f16)
BITNET_ATTENTION_OF_PAIR(q8_0)
BITNET_ATTENTION_OF_PAIR(q4_0)
#endif
