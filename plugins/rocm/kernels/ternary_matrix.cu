// linear_ternary for several tokens, bit for bit, by matrix cores. A wave takes tiles of 16 rows of
// the matrix by 16 tokens. Codes become bytes of -1, 0 and 1, so that sums need no correction.

#include "gpu-common/simt/ternary.cuh"
#include "matrix.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

template <uint32_t N>
struct words_of {
  uint32_t at[N];

  __device__ void read(const uint32_t* p) {
    memcpy(at, __builtin_assume_aligned(p, N < 4 ? 4 * N : 16), sizeof at);
  }
  __device__ void clear_unless(bool kept) {
    BITNET_UNROLL
    for (uint32_t i = 0; i < N; ++i) at[i] = kept ? at[i] : 0;
  }
};

// A wave goes through `Blocks` blocks of a row at a time. Of their 8 words a lane has these: the
// codes of `words` words in each quarter, and the activations of each quarter that they belong to.
template <uint32_t Blocks>
struct lane_share {
  static constexpr uint32_t words = 8 * Blocks / matrix_parts;
  static_assert(words % matrix_words == 0 && words <= 8);
  uint32_t block = part_of_lane() * words / 8, word = part_of_lane() * words % 8;
};

// The weights whose codes lie `shift` bits up. The highest bit of each byte keeps a borrow from the
// next one.
__device__ uint32_t weights_at(uint32_t codes, uint32_t shift) {
  constexpr uint32_t highest = 0x80808080u;
  return (((codes >> shift & codes_mask) | highest) - ones) ^ highest;
}

// Adds the products of one quarter.
template <uint32_t Rows, uint32_t Tokens, uint32_t N>
__device__ void add_quarter(const words_of<N> (&codes)[Rows], const words_of<N> (&values)[Tokens],
                            uint32_t quarter, int (&sums)[Rows][Tokens][matrix_sums]) {
  BITNET_UNROLL
  for (uint32_t first = 0; first < N; first += matrix_words) {
    uint32_t row[Rows][matrix_words];
    BITNET_UNROLL
    for (uint32_t i = 0; i < Rows * matrix_words; ++i)
      row[i / matrix_words][i % matrix_words] =
          weights_at(codes[i / matrix_words].at[first + i % matrix_words], 6 - 2 * quarter);
    BITNET_UNROLL
    for (uint32_t t = 0; t < Tokens; ++t) {
      uint32_t token[matrix_words];
      BITNET_UNROLL
      for (uint32_t i = 0; i < matrix_words; ++i) token[i] = values[t].at[first + i];
      BITNET_UNROLL
      for (uint32_t n = 0; n < Rows; ++n) multiply_tile(sums[n][t], token, row[n]);
    }
  }
}

template <uint32_t Rows>
__device__ void find_rows(const ternary_product& product, uint32_t r,
                          const uint32_t* (&row)[Rows]) {
  BITNET_UNROLL
  for (uint32_t n = 0; n < Rows; ++n) row[n] = product.row(r + matrix_tile * n + place_of_lane());
}
template <uint32_t Tokens>
__device__ void find_tokens(const ternary_product& product, uint64_t first,
                            const uint32_t* (&q)[Tokens]) {
  BITNET_UNROLL
  for (uint32_t t = 0; t < Tokens; ++t)
    q[t] = product.activations_of(first + matrix_tile * t + place_of_lane());
}

// Matrices with one scale: tiles from row r and token `first` on.
template <uint32_t Rows, uint32_t Tokens>
__device__ void multiply_plain(const ternary_product& product, uint32_t r, uint64_t first) {
  constexpr uint32_t of_turn = matrix_parts == 4 ? 2 : 1;  // blocks
  const lane_share<of_turn> mine;
  constexpr uint32_t words = lane_share<of_turn>::words;
  const uint32_t *row[Rows], *q[Tokens];
  find_rows(product, r, row);
  find_tokens(product, first, q);
  int sums[Rows][Tokens][matrix_sums] = {};
  const uint32_t blocks = product.p.row_words / 8;
  // Lanes that bring whole rows have no registers for codes that are read ahead.
  constexpr bool ahead = matrix_parts != 1;
  words_of<words> next[Rows];
  // Past the end lanes read the last block, whose activations they take for zeros.
  const auto read_codes = [&](uint32_t block) {
    BITNET_UNROLL
    for (uint32_t n = 0; n < Rows; ++n)
      next[n].read(row[n] + 8 * smaller(block, blocks - 1) + mine.word);
  };
  if (ahead) read_codes(mine.block);
  for (uint32_t turn = 0; turn < blocks; turn += of_turn) {
    const uint32_t block = turn + mine.block;
    if (!ahead) read_codes(block);
    words_of<words> codes[Rows];
    BITNET_UNROLL
    for (uint32_t n = 0; n < Rows; ++n) codes[n] = next[n];
    if (ahead) read_codes(block + of_turn);
    BITNET_UNROLL
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      words_of<words> values[Tokens];
      BITNET_UNROLL
      for (uint32_t t = 0; t < Tokens; ++t) {
        values[t].read(q[t] + 32 * smaller(block, blocks - 1) + 8 * quarter + mine.word);
        if (of_turn != 1) values[t].clear_unless(block < blocks);
      }
      add_quarter(codes, values, quarter, sums);
    }
  }
  BITNET_UNROLL
  for (uint32_t i = 0; i < Rows * Tokens * matrix_sums; ++i) {
    const uint32_t n = i / (Tokens * matrix_sums), t = i / matrix_sums % Tokens;
    product.put_sum(first + matrix_tile * t + token_of_sum(i % matrix_sums),
                    r + matrix_tile * n + place_of_lane(), sums[n][t][i % matrix_sums]);
  }
}

// Calls f(r, first) for what this wave takes: from which row and which token on.
template <class F>
__device__ void each_unit(const ternary_product& product, const matrix_form& form, F f) {
  const uint32_t of_group = warps * form.rows;
  each_group((uint64_t{product.p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
    const uint32_t r = unit * of_group + warp_of_group() * form.rows;
    if (r >= product.p.n_rows) return;  // all of a wave
    for (uint64_t first = uint64_t{blockIdx.y} * form.tokens; first < product.tokens;
         first += uint64_t{gridDim.y} * form.tokens)
      f(r, first);
  });
}

}  // namespace

BITNET_KERNEL(linear_ternary_matrix_few) {
  const ternary_product product = ternary_product_of(l);
  constexpr matrix_form form = matrix_few(warp);
  each_unit(product, form, [&](uint32_t r, uint64_t first) {
    multiply_plain<form.rows / matrix_tile, form.tokens / matrix_tile>(product, r, first);
  });
}

BITNET_KERNEL(linear_ternary_matrix_many) {
  const ternary_product product = ternary_product_of(l);
  constexpr matrix_form form = matrix_many(warp);
  each_unit(product, form, [&](uint32_t r, uint64_t first) {
    multiply_plain<form.rows / matrix_tile, form.tokens / matrix_tile>(product, r, first);
  });
}

namespace {

constexpr uint32_t factored_rows = matrix_factored(warp).rows / matrix_tile;
static_assert(matrix_factored(warp).tokens == matrix_tile);

struct factored_sums {
  float inner[factored_rows][matrix_sums], sum[factored_rows][matrix_sums];
};
// The factors of a lane's rows, and of the tokens of its sums.
struct lane_factors {
  const float *row[factored_rows], *token[matrix_sums];
};

// Calls f(n, e, factor) for all sums of a lane: the i-th factor of its row or its token.
template <class F>
__device__ void each_sum(const lane_factors& factors, bool of_rows, uint32_t i, F f) {
  float of_row[factored_rows], of_token[matrix_sums];
  BITNET_UNROLL
  for (uint32_t n = 0; n < factored_rows; ++n) of_row[n] = of_rows ? factors.row[n][i] : 0.0f;
  BITNET_UNROLL
  for (uint32_t e = 0; e < matrix_sums; ++e) of_token[e] = of_rows ? 0.0f : factors.token[e][i];
  BITNET_UNROLL
  for (uint32_t j = 0; j < factored_rows * matrix_sums; ++j) {
    const uint32_t n = j / matrix_sums, e = j % matrix_sums;
    f(n, e, of_rows ? of_row[n] : of_token[e]);
  }
}

// A tile of tokens from `first` on. Groups of either side are added in ascending order.
__device__ void multiply_factored(const ternary_product& product, const factor_groups& f,
                                  uint32_t r, uint64_t first, factored_sums& sums) {
  const lane_share<1> mine;
  constexpr uint32_t words = lane_share<1>::words;
  const uint32_t *row[factored_rows], *q[1];
  find_rows(product, r, row);
  find_tokens(product, first, q);
  lane_factors factors;
  BITNET_UNROLL
  for (uint32_t n = 0; n < factored_rows; ++n)
    factors.row[n] = f.row(product, r + matrix_tile * n + place_of_lane());
  BITNET_UNROLL
  for (uint32_t e = 0; e < matrix_sums; ++e)
    factors.token[e] = f.token(product, first + token_of_sum(e));
  const uint32_t blocks = product.p.row_words / 8, groups = product.p.k / f.shorter;
  uint32_t done = 0, held = 0, left = f.longer, longer = 0;
  int found[factored_rows][1][matrix_sums] = {};
  const auto end_group = [&] {  // of the shorter ones
    each_sum(factors, f.rows_first, done++, [&](uint32_t n, uint32_t e, float factor) {
      sums.inner[n][e] += static_cast<float>(found[n][0][e]) * factor;
      found[n][0][e] = 0;
    });
    if (f.longer == 0) return;
    left -= f.shorter;
    if (left != 0) return;
    each_sum(factors, !f.rows_first, longer++, [&](uint32_t n, uint32_t e, float factor) {
      sums.sum[n][e] += sums.inner[n][e] * factor;
      sums.inner[n][e] = 0;
    });
    left = f.longer;
  };
  for (uint32_t block = 0; block < blocks; ++block) {
    words_of<words> codes[factored_rows];
    BITNET_UNROLL
    for (uint32_t n = 0; n < factored_rows; ++n) codes[n].read(row[n] + 8 * block + mine.word);
    BITNET_NO_UNROLL
    for (uint32_t quarter = 0; quarter < 4 && done != groups; ++quarter) {
      words_of<words> values[1];
      values[0].read(q[0] + 32 * block + 8 * quarter + mine.word);
      add_quarter(codes, values, quarter, found);
      held += 32;
      if (held != f.shorter) continue;
      held = 0;
      end_group();
    }
  }
}

}  // namespace

// Matrices with a factor to so many elements, or activations with a factor to constant 4 of them:
// the shorter groups are a multiple of 32.
BITNET_KERNEL(linear_ternary_matrix_factored) {
  const ternary_product product = ternary_product_of(l);
  const uint32_t given = l.constants[4];
  const factor_groups f = factor_groups_of(product, given);
  each_unit(product, matrix_factored(warp), [&](uint32_t r, uint64_t first) {
    factored_sums sums = {};
    multiply_factored(product, f, r, first, sums);
    BITNET_UNROLL
    for (uint32_t i = 0; i < factored_rows * matrix_sums; ++i) {
      const uint32_t n = i / matrix_sums, e = i % matrix_sums;
      const uint64_t t = first + token_of_sum(e);
      const float value = f.longer == 0 ? sums.inner[n][e] : sums.sum[n][e];
      product.put(t, r + matrix_tile * n + place_of_lane(),
                  given == 0 ? value / product.s[product.token(t)] : value);
    }
  });
}
