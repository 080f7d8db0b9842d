// linear_ternary with factors of groups for prompts on sm_90, bit for bit. Groups of activations,
// or of weights if each token has one scale, have 32, 64 or 128 elements; groups of weights are no
// shorter than those of activations.
//
// One warp group copies: the engine brings activations and codes, some stages ahead, and each of
// its threads the factors of one token. Eight warps, in two warp groups, each multiply signed codes
// in registers by activations, and add what they find for a group to the sums of floats. The
// tensor cores multiply for one warp group while the other one adds: the sums of 64 rows and 128
// tokens leave no registers for a second set of integers.

#include "warp_groups.cuh"

using namespace bitnet::kernels;

namespace {

using shape = warp_group_shape<1, 128>;
using integers = int[shape::sums];
using floats = float[shape::sums];
// Groups consist of whole quarters of a block, of 32 elements.
constexpr uint32_t quarters = stage_elements / 32, copying_warps = 4;
// Of a stage, one to a quarter: of each token, then of each row.
constexpr uint32_t factors_of_quarter = shape::tokens + shape::rows,
                   factors_of_stage = quarters * factors_of_quarter;
static_assert(copying_warps * warp == shape::tokens && shape::tokens == shape::rows);

// What a group has in its memory: stages, factors of each stage, and barriers.
struct group_memory {
  uint8_t* begin;
  uint32_t most_looks;  // launch::most_looks

  static constexpr uint32_t barriers_at =
      stages * (shape::stage + factors_of_stage * uint32_t{sizeof(float)});
  static constexpr uint32_t bytes = of_alignment + barriers_at + 2 * stages * sizeof(phase_barrier);

  __device__ explicit group_memory(const launch& l) : most_looks(l.most_looks) {
    auto* memory = static_cast<uint8_t*>(shared_memory());
    begin = memory + (of_alignment - shared_address(memory) % of_alignment) % of_alignment;
  }
  // In a register, which the warps that multiply do not have: else it is computed for each use.
  __device__ void keep_begin() {
    uint32_t zero = 0;
    forget(zero);
    begin += zero;
  }
  __device__ uint8_t* stage(uint32_t turn) const { return begin + turn % stages * shape::stage; }
  __device__ float* factors(uint32_t turn) const {
    return reinterpret_cast<float*>(begin + stages * shape::stage) +
           turn % stages * factors_of_stage;
  }
  __device__ phase_barrier* filled(uint32_t turn) const {
    return reinterpret_cast<phase_barrier*>(begin + barriers_at) + turn % stages;
  }
  __device__ phase_barrier* emptied(uint32_t turn) const { return filled(turn) + stages; }
  // False: it never was.
  __device__ bool wait_until_filled(uint32_t turn) const {
    return wait_for_phase(filled(turn), parity_of(turn), most_looks);
  }
  __device__ bool wait_until_emptied(uint32_t turn) const {
    return turn < stages || wait_for_phase(emptied(turn), parity_of(turn - stages), most_looks);
  }
  __device__ void begin_barriers() const {
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < stages; ++i) {
        begin_barrier(filled(i), 1 + copying_warps);
        begin_barrier(emptied(i), consumers);
      }
      show_barriers();
    }
    __syncthreads();
  }
};
static_assert(wide_factored.shared_bytes == group_memory::bytes &&
              wide_factored.rows == shape::rows && wide_factored.tokens == shape::tokens);

// Where the factor of a tile's token is: four that a lane needs lie together, those of its columns
// of 16.
__device__ uint32_t place_of(uint32_t token) {
  return token / 16 * 16 + token % 8 / 2 * 4 + token / 8 % 2 * 2 + token % 2;
}

// Factors of a row or a token for the quarters of a stage. Past the `count` that there are they are
// zeros. Each belongs to `each` quarters and is read at the last of these.
struct stage_factors {
  float of[quarters];

  __device__ void read(const float* from, uint32_t i, uint32_t each, uint32_t count) {
    const uint32_t first = i * quarters;
    if (each == 1 && first + quarters <= count) {
      BITNET_UNROLL
      for (uint32_t q = 0; q < quarters; ++q) of[q] = from[first + q];
    } else if (each == 4 && first / 4 + 2 <= count) {
      of[3] = from[first / 4];
      of[7] = from[first / 4 + 1];
    } else {
      uint32_t group = first / each, left = each - first % each;
      BITNET_UNROLL
      for (uint32_t q = 0; q < quarters; ++q) {
        of[q] = group < count ? from[group] : 0.0f;
        if (--left != 0) continue;
        ++group;
        left = each;
      }
    }
  }
  __device__ void store(float* to, uint32_t each) const {
    BITNET_UNROLL
    for (uint32_t q = 3; q < quarters; q += 4) to[q * factors_of_quarter] = of[q];
    if (each == 4) return;
    BITNET_UNROLL
    for (uint32_t q = 0; q < quarters; ++q)
      if (q % 4 != 3) to[q * factors_of_quarter] = of[q];
  }
};

// The copying warps: each thread has a token and a row. `turn` counts stages from the first of this
// group's first tile on; `given` as in factor_groups_of().
__device__ void produce(const launch& l, group_memory m, const ternary_product& product,
                        const factor_groups& f, uint32_t given, uint32_t r, uint64_t first,
                        uint32_t turn) {
  m.keep_begin();
  const uint32_t n = stages_of_row(product), own = threadIdx.x - consumers * warp;
  const float* const of_token = f.token(product, first + own);
  const float* const of_row = f.row(product, r + own);
  const uint32_t rows_each = (f.of_row == 0 ? product.p.k : product.p.scale_group) / 32;
  for (uint32_t i = 0; i < n; ++i, ++turn) {
    stage_factors by_token = {}, by_row = {};  // read before the stage is empty
    if (given != 0) by_token.read(of_token, i, given / 32, f.of_token);
    by_row.read(of_row, i, rows_each, f.of_row == 0 ? 1 : f.of_row);
    if (!m.wait_until_emptied(turn)) return;
    if (own == 0) copy_stage<shape>(l, m.stage(turn), i, r, first, m.filled(turn));
    float* const to = m.factors(turn);
    if (given != 0) by_token.store(to + place_of(own), given / 32);
    by_row.store(to + shape::tokens + own, rows_each);
    arrive_together(m.filled(turn));
  }
}

// Codes of a quarter of a block, which lie `shift` bits up, as numbers from -1 to 1.
__device__ void signed_codes_at(uint32_t shift, const stage_codes<shape>& codes, uint32_t (&a)[4]) {
  codes_at(shift, codes.of[0], a);
  for (uint32_t& four : a) four = (four + 0x7f7f7f7fu) ^ 0x80808080u;  // nothing is carried
}

// The first of this lane's rows in a tile, and the other one is 8 further.
__device__ uint32_t first_row() {
  return warp_of_group() / 4 * shape::rows_of_group + warp_of_group() % 4 * 16 + row_of(0);
}

// Calls f(i, factor) for all elements of a lane, by factors of tokens or of rows of a quarter.
template <class F>
__device__ void each_by_token(const float* of_quarter, F f) {
  BITNET_UNROLL
  for (uint32_t n = 0; n < shape::tokens / 16; ++n) {
    const uint4 four = reinterpret_cast<const uint4*>(of_quarter)[n * 4 + lane() % 4];
    float each[4];
    memcpy(each, &four, sizeof each);
    BITNET_UNROLL
    for (uint32_t j = 0; j < 8; ++j) f(n * 8 + j, each[j / 4 * 2 + j % 2]);
  }
}
template <class F>
__device__ void each_by_row(const float* of_quarter, F f) {
  const float* const at = of_quarter + shape::tokens + first_row();
  const float each[2] = {at[0], at[8]};
  BITNET_UNROLL
  for (uint32_t i = 0; i < shape::sums; ++i) f(i, each[i % 4 / 2]);
}

// Kinds of groups; lengths are quarters of a block, so that 4 is a block.
struct of_rows {  // no longer groups
  static constexpr bool by_rows = true, fixed = false;
};
struct of_tokens {
  static constexpr bool by_rows = false, fixed = false;
};
struct of_tokens_and_blocks {  // 32 activations, and 128 weights
  static constexpr bool by_rows = false, fixed = true;
};

// Of a lane: sums of a tile as they grow.
template <class Kind>
struct tile_sums {
  integers found = {};  // of the shorter group
  floats inner = {}, sum = {};
  uint32_t shorter, longer;
  uint32_t left;  // of the longer group

  __device__ explicit tile_sums(const factor_groups& f)
      : shorter(Kind::fixed ? 1 : f.shorter / 32),
        longer(Kind::fixed ? 4 : f.longer / 32),
        left(longer) {}

  // One product of a quarter of a block, and meanwhile what comes next, such as making the next
  // fragments.
  template <class Next>
  __device__ void multiply(uint32_t (&a)[4], uint64_t columns, uint32_t quarter, Next next) {
    keep_before(a);
    begin_batch();
    if constexpr (Kind::fixed)
      multiply_warp_group_anew(found, a, columns);
    else
      multiply_warp_group_into(found, a, columns, (quarter & (shorter - 1)) != 0);
    end_batch();
    next();
    wait_for_batches<0>();
    keep_behind(found);
  }
  // Behind the product.
  __device__ void add(uint32_t quarter, const float* of_quarter) {
    if (((quarter + 1) & (shorter - 1)) != 0) return;
    if constexpr (Kind::by_rows)
      each_by_row(of_quarter, [&](uint32_t i, float factor) {
        inner[i] += static_cast<float>(found[i]) * factor;
      });
    else
      add_by_token(quarter, of_quarter);
  }

 private:
  __device__ void add_by_token(uint32_t quarter, const float* of_quarter) {
    // 0 + x is x but for -0, which changes no sum that began with 0.
    if (Kind::fixed && quarter == 0)
      each_by_token(of_quarter, [&](uint32_t i, float factor) {
        inner[i] = static_cast<float>(found[i]) * factor;
      });
    else
      each_by_token(of_quarter, [&](uint32_t i, float factor) {
        inner[i] += static_cast<float>(found[i]) * factor;
      });
    if (Kind::fixed ? quarter != 3 : (left -= shorter) != 0) return;
    each_by_row(of_quarter, [&](uint32_t i, float factor) {
      sum[i] += inner[i] * factor;
      if constexpr (!Kind::fixed) inner[i] = 0;
    });
    left = longer;
  }
};

// All of a row. Where the copies do not come, of what did.
template <class Kind>
__device__ void consume(const group_memory& m, uint32_t n, uint32_t turn, tile_sums<Kind>& sums) {
  stage_codes<shape> codes;
  uint32_t even[4], odd[4];
  if (!m.wait_until_filled(turn)) return;
  uint32_t place = codes.place();
  codes.read(m.stage(turn) + shape::codes, place, 0);
  signed_codes_at(6, codes, even);
  const uint32_t end = turn + n;
  while (turn != end) {
    forget(place);  // what follows from it takes no registers meanwhile
    const uint8_t* const stage = m.stage(turn);
    const float* const factors = m.factors(turn);
    phase_barrier* const emptied = m.emptied(turn);
    const auto take_block = [&](uint32_t half, auto read_next) {
      const uint64_t columns = columns_at(stage + half * shape::box);
      const auto take = [&](uint32_t quarter, auto& a, auto next) {
        sums.multiply(a, next_columns(columns, quarter * 32), quarter, next);
        sums.add(quarter, factors + (half * 4 + quarter) * factors_of_quarter);
      };
      take(0, even, [&] { signed_codes_at(4, codes, odd); });
      take(1, odd, [&] { signed_codes_at(2, codes, even); });
      take(2, even, [&] { signed_codes_at(0, codes, odd); });
      take(3, odd, [&] {
        read_next();
        signed_codes_at(6, codes, even);
      });
    };
    take_block(0, [&] { codes.read(stage + shape::codes, place, 1); });
    take_block(1, [&] {
      if (++turn == end) return;
      if (m.wait_until_filled(turn))
        codes.read(m.stage(turn) + shape::codes, place, 0);
      else
        turn = end;
    });
    arrive_together(emptied);
  }
}

template <class Kind, bool Adds>
__device__ void put_sums(const ternary_product& product, uint32_t r, uint64_t first,
                         const tile_sums<Kind>& sums) {
  forget(r);  // where sums go is computed behind them
  r += first_row();
  first += token_of(0);
  const uint32_t left = first < product.tokens ? static_cast<uint32_t>(product.tokens - first) : 0;
  const bool is_row[2] = {r < product.p.n_rows, r + 8 < product.p.n_rows};
  const uint64_t at = first * product.p.m + product.p.first_row + r;
  float* y = product.y + at;
  const float* more = product.residual + at;
  BITNET_UNROLL
  for (uint32_t i = 0; i < shape::sums / 2; ++i) {  // a token
    const uint32_t token = i / 2 * 8 + i % 2, step = i % 2 == 0 ? 1 : 7;
    BITNET_UNROLL
    for (uint32_t row = 0; row < 2; ++row) {
      if (token >= left || !is_row[row]) continue;
      const uint32_t e = i / 2 * 4 + row * 2 + i % 2;
      float value = Kind::by_rows ? sums.inner[e] / product.s[first + token] : sums.sum[e];
      if constexpr (Adds) value += more[row * 8];
      y[row * 8] = value;
    }
    y += uint64_t{step} * product.p.m;
    if constexpr (Adds) more += uint64_t{step} * product.p.m;
  }
}

template <class Kind>
__device__ void multiply_tiles(const ternary_product& product, const factor_groups& f,
                               const group_memory& m) {
  const uint32_t n = stages_of_row(product);
  each_tile<shape>(product, [&](uint32_t r, uint64_t first, uint32_t tile) {
    tile_sums<Kind> sums(f);
    consume(m, n, tile * n, sums);
    if (product.p.add)
      put_sums<Kind, true>(product, r, first, sums);
    else
      put_sums<Kind, false>(product, r, first, sums);
  });
}

}  // namespace

// A group takes 128 rows of the matrix and 128 tokens.
BITNET_KERNEL_BY(linear_ternary_factored_wide, wide_factored.threads, 1) {
  const ternary_product product = ternary_product_of(l);
  const uint32_t given = l.constants[4];
  const factor_groups f = factor_groups_of(product, given);
  const group_memory m(l);
  m.begin_barriers();
  // The same for all lanes, as the compiler can see.
  if (shuffle(warp_of_group(), 0) >= consumers) {
    give_registers_back<40>();
    each_tile<shape>(product, [&](uint32_t r, uint64_t first, uint32_t tile) {
      produce(l, m, product, f, given, r, first, tile * stages_of_row(product));
    });
    return;
  }
  take_registers<232>();
  if (given == 0)
    multiply_tiles<of_rows>(product, f, m);
  else if (f.shorter == 32 && f.longer == 128)
    multiply_tiles<of_tokens_and_blocks>(product, f, m);
  else
    multiply_tiles<of_tokens>(product, f, m);
}
