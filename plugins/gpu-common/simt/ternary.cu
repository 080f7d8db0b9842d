// Products of ternary rows and the int8 activations of one token. A warp takes rows of the matrix:
// each of its lanes reads 16 bytes of every one, which are half of a block of 128 codes, and the
// activations to them once for all rows.

#include "quantised_row.cuh"
#include "ternary.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

#ifndef BITNET_TERNARY_ROWS
#define BITNET_TERNARY_ROWS 4
#endif
constexpr uint32_t rows_each = BITNET_TERNARY_ROWS;  // rows of the matrix for each warp
constexpr uint32_t of_group = warps * rows_each;     // rows that a group takes

// The lowest bit of the codes of the first quarter of a block in their bytes, the highest place. On
// devices whose products treat the highest bit as a sign, codes are shifted one bit lower.
constexpr uint32_t top_place = takes_all_bits ? 6 : 5;

// The products of the rows: lane i gets that of row i * rows_each / warp. Codes are multiplied in
// place, with a sum for each place, because shifts would be a quarter of all instructions. A lane's
// sums are at most 192 * 128 for each of its k / 128 codes of a place, so they fit if the product
// itself does. `halves` is the number of half blocks in a row.
__device__ int dot_rows(const uint4* const (&row)[rows_each], const uint4* q, uint32_t halves) {
  int places[rows_each][4] = {}, sums[rows_each], sum_of_activations = 0;
  for (uint32_t i = lane(); i < halves; i += warp) {
    uint4 codes[rows_each];
    for (uint32_t r = 0; r < rows_each; ++r) codes[r] = row[r][i];
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      const uint4 values = q[i / 2 * 8 + quarter * 2 + i % 2];
      const uint32_t place = quarter == 0 ? top_place : 6 - 2 * quarter;
      const uint32_t mask = codes_mask << place;
      sum_of_activations = sum16(values, sum_of_activations);
      for (uint32_t r = 0; r < rows_each; ++r) {
        uint4 mine = codes[r];
        if (quarter == 0 && !takes_all_bits)
          mine = make_uint4(mine.x >> 1, mine.y >> 1, mine.z >> 1, mine.w >> 1);
        places[r][quarter] = dot16_in_place(mine, mask, values, places[r][quarter]);
      }
    }
  }
  for (uint32_t r = 0; r < rows_each; ++r)
    sums[r] = (places[r][0] >> top_place) + (places[r][1] >> 4) + (places[r][2] >> 2) +
              places[r][3] - sum_of_activations;
  return sum_of_lanes(sums);
}

// Rows from r on; places past the end repeat the last one, and nothing is stored for them.
__device__ void find_rows(const uint32_t* matrix, uint32_t row_words, uint32_t r, uint32_t n_rows,
                          const uint4* (&row)[rows_each]) {
  for (uint32_t i = 0; i < rows_each; ++i)
    row[i] =
        reinterpret_cast<const uint4*>(matrix + uint64_t{smaller(r + i, n_rows - 1)} * row_words);
}

__device__ void fetch_ahead_of_product(const launch& l, const group_of_launch& group) {
  fetch_rows_ahead<gpu::linear_ternary_params>(l, group, of_group);
}
// Also the weights of the norm (constant 2), which each group reads from beginning to end.
__device__ void fetch_ahead_of_bit_linear(const launch& l, const group_of_launch& group) {
  fetch_rows_ahead<gpu::bit_linear_params>(l, group, of_group);
  if (l.constants[2] == 0 || threadIdx.x != 0 || group.number != 0 || blockIdx.y != 0) return;
  const uint32_t k = params_of<gpu::bit_linear_params>(l).k;
  fetch_ahead(memory_of<const float>(l, 2), k / 4 * 16);
}

}  // namespace

BITNET_KERNEL_JOINED(linear_ternary_1, 4, fetch_ahead_of_product) {
  const ternary_product product = ternary_product_of(l);
  constexpr uint32_t lanes_each = warp / rows_each;
  each_group(group, (uint64_t{product.p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
    const uint32_t r = unit * of_group + warp_of_group() * rows_each;
    if (r >= product.p.n_rows) return;  // all of a warp
    const uint4* row[rows_each];
    find_rows(product.matrix, product.p.row_words, r, product.p.n_rows, row);
    each_y(product.tokens, [&](uint32_t t) {
      const auto* q = reinterpret_cast<const uint4*>(product.activations_of(t));
      const int sum = dot_rows(row, q, product.p.row_words / 4);
      if (lane() % lanes_each == 0) product.put_sum(t, r + lane() / lanes_each, sum);
    });
  });
}

namespace {

// The product of `n` elements from `from` on, both multiples of 4.
__device__ int dot_part(const uint32_t* row, const uint32_t* q, uint32_t from, uint32_t n) {
  int sum = 0, sum_of_activations = 0;
  for (uint32_t word = from / 4; word < (from + n) / 4; ++word) {
    const uint32_t codes = row[word / 32 * 8 + word % 8] >> (6 - 2 * (word % 32 / 8)) & codes_mask;
    sum = dot4(static_cast<int>(codes), static_cast<int>(q[word]), sum);
    sum_of_activations =
        dot4(static_cast<int>(ones), static_cast<int>(q[word]), sum_of_activations);
  }
  return sum - sum_of_activations;
}

// The lanes of a warp take adjacent shorter groups; their results are added in ascending order.
__device__ float factored(const uint32_t* row, const uint32_t* q, uint32_t k,
                          const factor_groups& f, const float* of_shorter, const float* of_longer) {
  float inner = 0, sum = 0;
  const uint32_t groups = k / f.shorter;
  uint32_t left = f.longer;  // elements of the longer group
  for (uint32_t first = 0; first < groups; first += warp) {
    const uint32_t mine = first + lane();
    float product = 0;
    if (mine < groups)
      product =
          static_cast<float>(dot_part(row, q, mine * f.shorter, f.shorter)) * of_shorter[mine];
    for (uint32_t i = 0; i < smaller(warp, groups - first); ++i) {
      inner += shuffle(product, i);
      if (f.longer == 0) continue;
      left -= f.shorter;
      if (left != 0) continue;
      sum += inner * *of_longer++;
      inner = 0;
      left = f.longer;
    }
  }
  return f.longer == 0 ? inner : sum;
}

}  // namespace

// Matrices with a factor for each group of elements, or activations with a factor for each constant
// 4 elements; groups have any length. A warp takes a row and a token.
BITNET_KERNEL(linear_ternary_factored) {
  const ternary_product product = ternary_product_of(l);
  const uint32_t given = l.constants[4];
  const factor_groups f = factor_groups_of(product, given);
  each_group((uint64_t{product.p.n_rows} + warps - 1) / warps, [&](uint32_t unit) {
    const uint32_t r = unit * warps + warp_of_group();
    if (r >= product.p.n_rows) return;  // all of a warp
    each_y(product.tokens, [&](uint32_t t) {
      const float *of_row = f.row(product, r), *of_token = f.token(product, t);
      float value = factored(product.row(r), product.activations_of(t), product.p.k, f,
                             f.rows_first ? of_row : of_token, f.rows_first ? of_token : of_row);
      if (given == 0) value /= product.s[t];
      if (lane() == 0) product.put(t, r, value);
    });
  });
}

// The bits of [rms_norm] (constant 2), act_quant, linear_ternary, [add], for steps of one row. Each
// group quantises its own copy of the row.
BITNET_KERNEL_JOINED(bit_linear, 4, fetch_ahead_of_bit_linear) {
  const auto p = params_of<gpu::bit_linear_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  const auto* matrix = memory_of<const uint32_t>(l, 3);
  const auto* scales = memory_of<const float>(l, 4);
  const auto* residual = memory_of<const float>(l, 5);
  auto* y = memory_of<float>(l, 6);
  auto* q = static_cast<uint32_t*>(shared_memory());
  each_y(rows_of(l), [&](uint32_t t) {
    const float* in = x + uint64_t{t} * p.k;
    __syncthreads();  // no thread reads the previous row any more
    const float s = quantise_normed(in, l.constants[2] != 0, weight, p.k, p.eps, q);
    __syncthreads();
    each_group(group, (uint64_t{p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
      const uint32_t r = unit * of_group + warp_of_group() * rows_each;
      if (r >= p.n_rows) return;  // all of a warp
      const uint4* row[rows_each];
      find_rows(matrix, p.row_words, r, p.n_rows, row);
      const int sum = dot_rows(row, reinterpret_cast<const uint4*>(q), p.row_words / 4);
      constexpr uint32_t lanes_each = warp / rows_each;
      const uint64_t i = lane() / lanes_each;
      if (lane() % lanes_each != 0 || r + i >= p.n_rows) return;
      const uint64_t at = uint64_t{t} * p.m + p.first_row + r + i;
      float value = static_cast<float>(sum) / s * scales[0];
      if (p.add) value += residual[at];
      y[at] = value;
    });
  });
}
