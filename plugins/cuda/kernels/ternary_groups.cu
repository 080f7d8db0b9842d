// linear_ternary with factors of groups for several tokens, bit for bit, on tensor cores. The
// shorter groups have 32, 64 or 128 elements: whole tiles, and none that two blocks share.

#include "fragments.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Two words of a block of each of a lane's rows in `Tiles` tiles.
template <uint32_t Tiles>
struct block_codes {
  code_words of[Tiles];

  __device__ void read(const uint32_t* const (&row)[2 * Tiles], uint32_t block, uint32_t blocks) {
    if (block >= blocks) return;
    for (uint32_t n = 0; n < Tiles; ++n) {
      const uint2 upper = reinterpret_cast<const uint2*>(row[2 * n])[block * 4 + lane() % 4];
      const uint2 lower = reinterpret_cast<const uint2*>(row[2 * n + 1])[block * 4 + lane() % 4];
      of[n] = {{upper.x, upper.y}, {lower.x, lower.y}};
    }
  }
};

// Calls each(i, sums) for the shorter groups i of a block, which are `quarters` quarters long.
template <uint32_t RowTiles, uint32_t Tiles, class Each>
__device__ void each_sum(const block_codes<RowTiles>& codes, const uint32_t* const (&q)[Tiles],
                         uint32_t block, uint32_t quarters, Each each) {
  constexpr uint32_t all_less[4] = {minus_ones, minus_ones, minus_ones, minus_ones};
  int sums[RowTiles][Tiles][4] = {}, less[Tiles][4] = {};
  uint32_t group = 0;
  BITNET_UNROLL
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    uint32_t b[Tiles][2];
    for (uint32_t t = 0; t < Tiles; ++t) {
      const auto* of_token = reinterpret_cast<const uint2*>(q[t]);
      const uint2 pair = of_token[block * 16 + quarter * 4 + lane() % 4];
      b[t][0] = pair.x;
      b[t][1] = pair.y;
      multiply_fragments(less[t], all_less, b[t]);
    }
    for (uint32_t n = 0; n < RowTiles; ++n) {
      uint32_t a[4];
      codes_at(6 - 2 * quarter, codes.of[n], a);
      for (uint32_t t = 0; t < Tiles; ++t) multiply_fragments(sums[n][t], a, b[t]);
    }
    if (((quarter + 1) & (quarters - 1)) != 0) continue;
    for (uint32_t n = 0; n < RowTiles; ++n)
      for (uint32_t t = 0; t < Tiles; ++t)
        for (uint32_t e = 0; e < 4; ++e) sums[n][t][e] += less[t][e];
    each(group++, sums);
    memset(sums, 0, sizeof sums);
    memset(less, 0, sizeof less);
  }
}

// A thread's sums of its element of a tile, while the warps proceed along a row.
struct element_sum {
  float inner, sum;
  uint32_t left;           // elements of the longer group
  const float* of_longer;  // the factor of that

  __device__ void add(float product, const factor_groups& f) {
    inner += product;
    if (f.longer == 0) return;
    left -= f.shorter;
    if (left != 0) return;
    sum += inner * *of_longer++;
    inner = 0;
    left = f.longer;
  }
};

// Stores the products of a block of 16 rows and 8 tokens, by group and element.
__device__ void store_products(const ternary_product& product, const factor_groups& f,
                               const block_codes<1>& codes, const uint32_t* const (&q)[1],
                               const float* const (&factors)[2], uint32_t block, float* to) {
  const uint32_t quarters = f.shorter / 32, first = block * (4 / quarters);
  each_sum<1, 1>(codes, q, block, quarters, [&](uint32_t i, const int(&sums)[1][1][4]) {
    if (first + i >= product.p.k / f.shorter) return;
    const float each[2] = {factors[0][first + i], factors[1][first + i]};
    BITNET_UNROLL
    for (uint32_t e = 0; e < 4; ++e)
      to[i * threads + lane() * 4 + e] =
          static_cast<float>(sums[0][0][e]) * (f.rows_first ? each[e / 2] : each[e % 2]);
  });
}

// Each warp of a group takes every fourth block of 16 rows. Each thread adds up, in order, the
// products for one element of a tile.
__device__ void few(const ternary_product& product, const factor_groups& f, uint32_t given,
                    uint32_t r, uint64_t first, uint32_t& turn) {
  const uint32_t upper = r + row_of(0), lower = r + row_of(2), blocks = product.p.row_words / 8;
  const uint32_t* const row[2] = {product.row(upper), product.row(lower)};
  const uint32_t* const q[1] = {product.activations_of(first + lane() / 4)};
  const float* const factors[2] = {
      f.rows_first ? f.row(product, upper) : f.token(product, first + token_of(0)),
      f.rows_first ? f.row(product, lower) : f.token(product, first + token_of(1))};
  const uint32_t mine = r + row_of_stored(threadIdx.x);
  const uint64_t token = first + token_of_stored(threadIdx.x);
  element_sum sum = {0, 0, f.longer, f.rows_first ? f.token(product, token) : f.row(product, mine)};
  const uint32_t of_block = 128 / f.shorter, groups = product.p.k / f.shorter;
  block_codes<1> next = {};
  next.read(row, warp_of_group(), blocks);
  meet_lanes();  // lanes stored different parts of the tokens before
  for (uint32_t at = 0; at < blocks; at += warps, turn ^= 1) {
    const uint32_t block = at + warp_of_group();
    auto* products = static_cast<float*>(shared_memory()) + turn * (4 * warps * threads);
    const block_codes<1> codes = next;
    next.read(row, block + warps, blocks);
    if (block < blocks)  // all of a warp
      store_products(product, f, codes, q, factors, block,
                     products + warp_of_group() * 4 * threads);
    __syncthreads();  // also: all have read the products of two turns ago
    uint32_t left = smaller(of_block * warps, groups - at * of_block);
    for (uint32_t w = 0; left != 0; ++w) {
      const uint32_t of_warp = smaller(of_block, left);
      for (uint32_t i = 0; i < of_warp; ++i)
        sum.add(products[(4 * w + i) * threads + threadIdx.x], f);
      left -= of_warp;
    }
  }
  const float value = f.longer == 0 ? sum.inner : sum.sum;
  product.put(token, mine, given == 0 ? value / product.s[product.token(token)] : value);
}

}  // namespace

// A group takes 16 rows of the matrix and 8 tokens.
BITNET_KERNEL(linear_ternary_factored_few) {
  const ternary_product product = ternary_product_of(l);
  const uint32_t given = l.constants[4];
  const factor_groups f = factor_groups_of(product, given);
  constexpr tile_form form = few_factored;
  static_assert(form.rows * form.tokens == threads);
  static_assert(form.shared_bytes == 2 * 4 * warps * threads * sizeof(float));
  uint32_t turn = 0;
  each_group((uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
    for (uint64_t first = uint64_t{blockIdx.y} * form.tokens; first < product.tokens;
         first += uint64_t{gridDim.y} * form.tokens)
      few(product, f, given, unit * form.rows, first, turn);
  });
}

namespace {

// Tiles of a warp, of 16 rows and 8 tokens.
constexpr uint32_t row_tiles = 2, token_tiles = many_factored.tokens / 8;
static_assert(many_factored.rows == warps * row_tiles * 16);

struct many_sums {
  float inner[row_tiles][token_tiles][4], sum[row_tiles][token_tiles][4];
};
// The factors of a lane's rows and tokens.
struct many_factors {
  const float *row[2 * row_tiles], *token[2 * token_tiles];
};

// Calls f(n, t, e, factor) for all elements of a lane: the i-th factor of its row or its token.
template <class F>
__device__ void each_element(const many_factors& factors, bool of_rows, uint32_t i, F f) {
  static_assert(row_tiles == token_tiles);  // so that there are as many factors of either
  float each[2 * row_tiles];
  for (uint32_t j = 0; j < 2 * row_tiles; ++j)
    each[j] = of_rows ? factors.row[j][i] : factors.token[j][i];
  BITNET_UNROLL
  for (uint32_t j = 0; j < row_tiles * token_tiles * 4; ++j) {
    const uint32_t n = j / (token_tiles * 4), t = j / 4 % token_tiles, e = j % 4;
    f(n, t, e, of_rows ? each[2 * n + e / 2] : each[2 * t + e % 2]);
  }
}

__device__ void many(const ternary_product& product, const factor_groups& f, uint32_t r,
                     uint64_t first, many_sums& sums) {
  const uint32_t* row[2 * row_tiles];
  const uint32_t* q[token_tiles];
  many_factors factors;
  for (uint32_t n = 0; n < 2 * row_tiles; ++n) {
    row[n] = product.row(r + 8 * n + lane() / 4);
    factors.row[n] = f.row(product, r + 8 * n + lane() / 4);
  }
  for (uint32_t t = 0; t < token_tiles; ++t) {
    q[t] = product.activations_of(first + 8 * t + lane() / 4);
    for (uint32_t e = 0; e < 2; ++e)
      factors.token[2 * t + e] = f.token(product, first + 8 * t + token_of(e));
  }
  const uint32_t quarters = f.shorter / 32, blocks = product.p.row_words / 8;
  uint32_t done = 0, left = f.longer, longer = 0;
  block_codes<row_tiles> next = {};
  next.read(row, 0, blocks);
  for (uint32_t block = 0; block < blocks; ++block) {
    const block_codes<row_tiles> codes = next;
    next.read(row, block + 1, blocks);
    const auto add = [&](uint32_t, const int(&found)[row_tiles][token_tiles][4]) {
      if (done == product.p.k / f.shorter) return;
      each_element(factors, f.rows_first, done++, [&](auto n, auto t, auto e, float factor) {
        sums.inner[n][t][e] += static_cast<float>(found[n][t][e]) * factor;
      });
      if (f.longer == 0) return;
      left -= f.shorter;
      if (left != 0) return;
      each_element(factors, !f.rows_first, longer++, [&](auto n, auto t, auto e, float factor) {
        sums.sum[n][t][e] += sums.inner[n][t][e] * factor;
        sums.inner[n][t][e] = 0;
      });
      left = f.longer;
    };
    each_sum<row_tiles, token_tiles>(codes, q, block, quarters, add);
  }
}

}  // namespace

// A group takes 128 rows of the matrix and 16 tokens.
BITNET_KERNEL_OF(linear_ternary_factored_many, 3) {
  const ternary_product product = ternary_product_of(l);
  const uint32_t given = l.constants[4];
  const factor_groups f = factor_groups_of(product, given);
  constexpr tile_form form = many_factored;
  each_group((uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
    const uint32_t r = unit * form.rows + warp_of_group() * row_tiles * 16;
    if (r >= product.p.n_rows) return;  // all of a warp
    for (uint64_t first = uint64_t{blockIdx.y} * form.tokens; first < product.tokens;
         first += uint64_t{gridDim.y} * form.tokens) {
      many_sums sums = {};
      meet_lanes();  // lanes stored different parts of the tokens before
      many(product, f, r, first, sums);
      BITNET_UNROLL
      for (uint32_t i = 0; i < row_tiles * token_tiles * 4; ++i) {
        const uint32_t n = i / (token_tiles * 4), t = i / 4 % token_tiles, e = i % 4;
        const uint64_t token = first + 8 * t + token_of(e);
        const float value = f.longer == 0 ? sums.inner[n][t][e] : sums.sum[n][t][e];
        product.put(token, r + 16 * n + row_of(e),
                    given == 0 ? value / product.s[product.token(token)] : value);
      }
    }
  });
}
