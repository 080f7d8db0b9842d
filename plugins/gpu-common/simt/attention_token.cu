// Attention of a step of one token, with the norms, rotations and writes that precede it.

#include "attention.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// The attention of one token. Queries and keys are normed, if they have norms, and rotated; the key
// and the value are written; the last group merges the results of the parts.
template <class Formats, uint32_t rows>
class attention_of_token : attention<Formats, rows> {
  using base = attention<Formats, rows>;
  using base::m_, base::out_, base::p_, base::q_;

 public:
  __device__ explicit attention_of_token(const launch& l)
      : base(l, {5, 6, 8, 11, 12, of(l).parts != 0 ? 13u : 15u}),
        whole_(of(l)),
        key_type_(l.constants[1]),
        value_type_(l.constants[2]),
        k_(memory_of<const float>(l, 2)),
        v_(memory_of<const float>(l, 3)),
        rotated_{memory_of<const float>(l, 4), whole_.pairs, whole_.neox != 0},
        slots_(memory_of<const uint32_t>(l, 7)),
        q_weight_(whole_.norms != 0 ? memory_of<const float>(l, 9) : nullptr),
        k_weight_(whole_.norms != 0 ? memory_of<const float>(l, 10) : nullptr),
        keys_(memory_of<uint32_t>(l, 11)),
        values_(memory_of<uint32_t>(l, 12)),
        tickets_(memory_of<uint32_t>(l, 14)),
        y_(memory_of<float>(l, 15)) {}

  __device__ void run() const {
    const sight sees = base::sight_of(0);
    const uint32_t n = sees.parts(), split = p_.parts ? p_.parts : 1;
    const uint32_t heads = p_.n_heads / p_.n_kv_heads;
    each_group(uint64_t{p_.n_kv_heads} * split, [&](uint32_t unit) {
      const uint32_t mine = unit % split, kv_head = unit / split;
      if (p_.parts != 0 && mine >= n) return;
      const tile one = {0, 1, kv_head, kv_head * heads, heads};
      const bool writes = p_.parts == 0 || mine == n - 1;
      if (whole_.norms != 0) find_factors(one, writes);
      if (writes) write(one);  // visible after the barriers of load()
      base::load(one, [&](const float* q, uint32_t r, uint32_t d) {
        return rotated_(normed_head{q, q_weight_, q_weight_ ? factor(r) : 1}, d);
      });
      for (uint32_t i = p_.parts ? mine : 0; i < (p_.parts ? mine + 1 : n); ++i)
        base::take_part(one, sees.part_at(i), sees.end);
      if (p_.parts == 0)
        base::finish();
      else if (is_last(tickets_ + kv_head, n))
        merge(one, sees, n);
      __syncthreads();
    });
  }

 private:
  __device__ static gpu::attn_token_params of(const launch& l) {
    return params_of<gpu::attn_token_params>(l);
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

  // The token's key and value of a KV head.
  __device__ void write(const tile& one) const {
    const uint32_t slot = slots_[0];
    const uint64_t to =
        (uint64_t{slot / p_.block_tokens} * p_.n_kv_heads + one.kv_head) * p_.block_tokens +
        slot % p_.block_tokens;
    const uint64_t from = uint64_t{one.kv_head} * p_.head_dim;
    const normed_head key = {k_ + from, k_weight_, k_weight_ ? factor(one.heads) : 1};
    const uint32_t of_k = units_of(key_type_, p_.head_dim);
    const uint32_t of_v = units_of(value_type_, p_.head_dim);
    for (uint32_t unit = threadIdx.x; unit < of_k + of_v; unit += threads) {
      if (unit < of_k)
        put(key_type_, key, p_.head_dim, unit, keys_ + to * this->key_words_, rotated_);
      else
        put(value_type_, v_ + from, p_.head_dim, unit - of_k, values_ + to * this->value_words_,
            {nullptr, 0, false});
    }
  }

  // True if all other groups have stored the results of their parts.
  __device__ static bool is_last(uint32_t* tickets, uint32_t n) {
    __threadfence();  // makes this thread's results visible to the group that takes a later ticket
    if (turn_of_group(tickets) + 1 != n) return false;
    if (threadIdx.x == 0) *tickets = 0;
    __threadfence();
    return true;
  }

  // Parts that are merged together; results of merging::add() for them use memory of the scores.
  static constexpr uint32_t at_once = 32, of_thread = rows * at_once / threads;
  static_assert(rows * at_once % threads == 0 && 4 * rows * at_once == 2 * rows * part);
  struct factors {
    float *highest, *total, *before, *of_part;  // each (rows, at_once)
  };

  // For parts [first, first + count) of the `n` visible ones. For the rows whose parts this thread
  // takes, `so_far` has the largest scores of the earlier parts, and afterwards of all parts.
  __device__ void prepare(const factors& f, const tile& one, uint32_t count,
                          float (&so_far)[of_thread]) const {
    BITNET_UNROLL
    for (uint32_t i = 0; i < of_thread; ++i) {
      const uint32_t at = threadIdx.x + i * threads, r = at / at_once, j = at % at_once;
      if (r >= one.heads || j >= count) continue;
      const float* found = base::left_of(r, m_.at[j]) + p_.head_dim;
      f.highest[at] = found[0];
      f.total[at] = found[1];
    }
    __syncthreads();
    BITNET_UNROLL
    for (uint32_t i = 0; i < of_thread; ++i) {
      const uint32_t at = threadIdx.x + i * threads, r = at / at_once, j = at % at_once;
      if (r >= one.heads) continue;
      float ahead = so_far[i];
      for (uint32_t k = 0; k < count; ++k) {
        if (k == j) ahead = so_far[i];
        so_far[i] = larger(so_far[i], f.highest[r * at_once + k]);
      }
      if (j >= count) continue;
      const float now = larger(ahead, f.highest[at]);
      f.before[at] = expf(ahead - now);
      f.of_part[at] = expf(f.highest[at] - now);
    }
    __syncthreads();
  }

  // In the order of attn_merge. A thread has a column of each head, and loads of several parts are
  // under way together.
  __device__ void merge(const tile& one, const sight& sees, uint32_t n) const {
    constexpr uint32_t ahead = 32 / rows;
    constexpr uint32_t each = rows * at_once;
    const factors f = {m_.scores, m_.scores + each, m_.scores + 2 * each, m_.scores + 3 * each};
    for (uint32_t from = 0; from < p_.head_dim; from += threads) {
      const uint32_t d = from + threadIdx.x;
      float so_far[of_thread], total[rows] = {}, sum[rows] = {};
      for (float& highest : so_far) highest = -INFINITY;
      for (uint32_t first = 0; first < n; first += at_once) {
        const uint32_t count = smaller(at_once, n - first);
        __syncthreads();  // no thread reads the scores, or earlier factors, any more
        if (threadIdx.x < count) m_.at[threadIdx.x] = sees.part_at(first + threadIdx.x);
        __syncthreads();
        prepare(f, one, count, so_far);
        for (uint32_t j = 0; d < p_.head_dim && j < count; j += ahead) {
          BITNET_UNROLL
          for (uint32_t r = 0; r < rows; ++r) {
            if (r >= one.heads) continue;
            float x[ahead];
            BITNET_UNROLL
            for (uint32_t i = 0; i < ahead; ++i)
              x[i] = j + i < count ? base::left_of(r, m_.at[j + i])[d] : 0.0f;
            BITNET_UNROLL
            for (uint32_t i = 0; i < ahead; ++i) {
              const uint32_t at = r * at_once + j + i;
              if (j + i >= count) continue;
              total[r] = total[r] * f.before[at] + f.total[at] * f.of_part[at];
              sum[r] = sum[r] * f.before[at] + x[i] * f.of_part[at];
            }
          }
        }
      }
      BITNET_UNROLL
      for (uint32_t r = 0; r < rows; ++r)
        if (r < one.heads && d < p_.head_dim)
          y_[uint64_t{m_.row[r]} * p_.head_dim + d] = sum[r] / total[r];
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
};

}  // namespace

// Tiles of more rows keep more in registers. There is a kernel for each format that keys and values
// share, and one for pairs of formats, which are rare.
#define BITNET_ATTENTION_OF_TOKEN(name, formats, rows)                                             \
  BITNET_KERNEL_OF(attn_token_##name##rows, (rows) > 4 ? 2 : 3) {                                  \
    each_y(smaller(rows_of(l), 1), [&](uint32_t) { attention_of_token<formats, rows>(l).run(); }); \
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
