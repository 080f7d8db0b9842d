// Products of ternary rows and int8 activations. A warp takes rows of the matrix: each of its lanes
// reads 16 bytes of every one, which are half of a block of 128 codes, and the activations to them
// once for all rows.
//
// Codes are 0, 1 and 2 for -1, 0 and 1: what they give too much is the sum of the activations,
// which is the same for all rows.

#include "group.cuh"

using namespace bitnet::cuda;
namespace gpu = bitnet::gpu;

namespace {

constexpr uint32_t rows_each = 4;  // of the matrix that a warp takes together
constexpr uint32_t codes_mask = 0x03030303u;
constexpr int ones = 0x01010101;

__device__ int dot16(const uint4& codes, uint32_t shift, const uint4& q, int sum) {
  sum = __dp4a(static_cast<int>(codes.x >> shift & codes_mask), static_cast<int>(q.x), sum);
  sum = __dp4a(static_cast<int>(codes.y >> shift & codes_mask), static_cast<int>(q.y), sum);
  sum = __dp4a(static_cast<int>(codes.z >> shift & codes_mask), static_cast<int>(q.z), sum);
  return __dp4a(static_cast<int>(codes.w >> shift & codes_mask), static_cast<int>(q.w), sum);
}
// The same for codes that stay where they are in their bytes: what comes out is shifted, too.
__device__ int dot16_in_place(const uint4& codes, uint32_t mask, const uint4& q, int sum) {
  sum = dot4_of_unsigned(codes.x & mask, q.x, sum);
  sum = dot4_of_unsigned(codes.y & mask, q.y, sum);
  sum = dot4_of_unsigned(codes.z & mask, q.z, sum);
  return dot4_of_unsigned(codes.w & mask, q.w, sum);
}
__device__ int sum16(const uint4& q, int sum) {
  sum = __dp4a(ones, static_cast<int>(q.x), sum);
  sum = __dp4a(ones, static_cast<int>(q.y), sum);
  sum = __dp4a(ones, static_cast<int>(q.z), sum);
  return __dp4a(ones, static_cast<int>(q.w), sum);
}

// The product of one row and one token: lane i gets that of row i * N / warp / Tokens and token
// i * N / warp % Tokens, where N is rows_each * Tokens. `halves`: of blocks, in a row.
template <uint32_t Tokens>
__device__ int dot_rows(const uint4* const (&row)[rows_each], const uint4* const (&q)[Tokens],
                        uint32_t halves) {
  int sums[rows_each * Tokens] = {}, too_much[Tokens] = {};
  for (uint32_t i = lane(); i < halves; i += warp) {
    uint4 codes[rows_each];
    for (uint32_t r = 0; r < rows_each; ++r) codes[r] = row[r][i];
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      for (uint32_t j = 0; j < Tokens; ++j) {
        const uint4 values = q[j][i / 2 * 8 + quarter * 2 + i % 2];
        too_much[j] = sum16(values, too_much[j]);
        for (uint32_t r = 0; r < rows_each; ++r)
          sums[r * Tokens + j] = dot16(codes[r], 6 - 2 * quarter, values, sums[r * Tokens + j]);
      }
    }
  }
  for (uint32_t i = 0; i < rows_each * Tokens; ++i) sums[i] -= too_much[i % Tokens];
  return sum_of_lanes(sums);
}

// For one token the shifts would be a quarter of all instructions, so codes stay where they are,
// with a sum for each place. A lane's sums are at most 192 * 128 for each of its k / 128 codes of a
// place: they fit as long as the product itself does.
template <>
__device__ int dot_rows<1>(const uint4* const (&row)[rows_each], const uint4* const (&q)[1],
                           uint32_t halves) {
  int places[rows_each][4] = {}, sums[rows_each], too_much = 0;
  for (uint32_t i = lane(); i < halves; i += warp) {
    uint4 codes[rows_each];
    for (uint32_t r = 0; r < rows_each; ++r) codes[r] = row[r][i];
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      const uint4 values = q[0][i / 2 * 8 + quarter * 2 + i % 2];
      const uint32_t mask = codes_mask << (6 - 2 * quarter);
      too_much = sum16(values, too_much);
      for (uint32_t r = 0; r < rows_each; ++r)
        places[r][quarter] = dot16_in_place(codes[r], mask, values, places[r][quarter]);
    }
  }
  for (uint32_t r = 0; r < rows_each; ++r)
    sums[r] =
        (places[r][0] >> 6) + (places[r][1] >> 4) + (places[r][2] >> 2) + places[r][3] - too_much;
  return sum_of_lanes(sums);
}

// Rows from r on; those past the end are the last one, and nothing is stored of them.
__device__ void find_rows(const uint32_t* matrix, uint32_t row_words, uint32_t r, uint32_t n_rows,
                          const uint4* (&row)[rows_each]) {
  for (uint32_t i = 0; i < rows_each; ++i)
    row[i] =
        reinterpret_cast<const uint4*>(matrix + uint64_t{smaller(r + i, n_rows - 1)} * row_words);
}

template <uint32_t Tokens>
__device__ void linear(const launch& l) {
  const auto p = params_of<gpu::linear_ternary_params>(l);
  const auto* q = memory_of<const uint32_t>(l, 1);
  const auto* s = memory_of<const float>(l, 2);
  const auto* matrix = memory_of<const uint32_t>(l, 3);
  const auto* scales = memory_of<const float>(l, 4);
  const auto* residual = memory_of<const float>(l, 5);
  auto* y = memory_of<float>(l, 6);
  const uint32_t rows = rows_of(l);
  const uint64_t stride = gpu::i8_row_words(p.k);
  constexpr uint32_t of_group = warps * rows_each;
  each_group((uint64_t{p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
    const uint32_t r = unit * of_group + warp_of_group() * rows_each;
    if (r >= p.n_rows) return;  // all of a warp
    const uint4* row[rows_each];
    find_rows(matrix, p.row_words, r, p.n_rows, row);
    for (uint64_t first = uint64_t{blockIdx.y} * Tokens; first < rows;
         first += uint64_t{gridDim.y} * Tokens) {
      const uint4* of_token[Tokens];
      for (uint32_t j = 0; j < Tokens; ++j)
        of_token[j] =
            reinterpret_cast<const uint4*>(q + (first + j < rows ? first + j : rows - 1) * stride);
      const int sum = dot_rows<Tokens>(row, of_token, p.row_words / 4);
      constexpr uint32_t lanes_each = warp / (rows_each * Tokens);
      const uint32_t mine = lane() / lanes_each;
      const uint64_t i = mine / Tokens, t = first + mine % Tokens;
      if (lane() % lanes_each != 0 || r + i >= p.n_rows || t >= rows) continue;
      const uint64_t at = t * p.m + p.first_row + r + i;
      float value = static_cast<float>(sum) / s[t] * scales[0];
      if (p.add) value += residual[at];
      y[at] = value;
    }
  });
}

}  // namespace

BITNET_KERNEL(linear_ternary_1) {
  linear<1>(l);
}
BITNET_KERNEL(linear_ternary_2) {
  linear<2>(l);
}
BITNET_KERNEL(linear_ternary_4) {
  linear<4>(l);
}

namespace {

// Tiles of a warp for many tokens.
constexpr uint32_t row_tiles = 8, token_tiles = 2;  // of 8 rows, of 16 tokens

// Adds a block of 128 codes of all rows, times the activations of all tokens. The words of a block
// are as the fragments want them: a lane's two words have its share of four quarters.
__device__ void add_block(const uint32_t* const (&row)[row_tiles],
                          const uint32_t* const (&q)[2 * token_tiles], uint32_t block,
                          int (&sums)[token_tiles][row_tiles][4], int (&too_much)[token_tiles][4]) {
  const uint32_t word = lane() % 4;
  uint32_t codes[row_tiles][2];
  for (uint32_t n = 0; n < row_tiles; ++n) {
    codes[n][0] = row[n][block * 8 + word];
    codes[n][1] = row[n][block * 8 + word + 4];
  }
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    const uint32_t at = block * 32 + quarter * 8 + word, shift = 6 - 2 * quarter;
    uint32_t values[token_tiles][4];
    for (uint32_t t = 0; t < token_tiles; ++t) {
      for (uint32_t i = 0; i < 4; ++i) values[t][i] = q[2 * t + i % 2][at + i / 2 * 4];
      constexpr uint32_t one[2] = {ones, ones};
      multiply_fragments(too_much[t], values[t], one);
    }
    for (uint32_t n = 0; n < row_tiles; ++n) {
      const uint32_t each[2] = {codes[n][0] >> shift & codes_mask,
                                codes[n][1] >> shift & codes_mask};
      for (uint32_t t = 0; t < token_tiles; ++t) multiply_fragments(sums[t][n], values[t], each);
    }
  }
}

}  // namespace

// As linear_ternary, bit for bit, on tensor cores: a warp takes 64 rows of the matrix and 32
// tokens.
BITNET_KERNEL_OF(linear_ternary_many, 2) {
  const auto p = params_of<gpu::linear_ternary_params>(l);
  const auto* q = memory_of<const uint32_t>(l, 1);
  const auto* s = memory_of<const float>(l, 2);
  const auto* matrix = memory_of<const uint32_t>(l, 3);
  const auto* scales = memory_of<const float>(l, 4);
  const auto* residual = memory_of<const float>(l, 5);
  auto* y = memory_of<float>(l, 6);
  const uint32_t rows = rows_of(l), group = lane() / 4;
  const uint64_t stride = gpu::i8_row_words(p.k);
  constexpr uint32_t of_warp = 8 * row_tiles, tokens = 16 * token_tiles;
  each_group((uint64_t{p.n_rows} + warps * of_warp - 1) / (warps * of_warp), [&](uint32_t unit) {
    const uint32_t r = (unit * warps + warp_of_group()) * of_warp;
    if (r >= p.n_rows) return;  // all of a warp
    const uint32_t* row[row_tiles];
    for (uint32_t n = 0; n < row_tiles; ++n)
      row[n] = matrix + uint64_t{smaller(r + 8 * n + group, p.n_rows - 1)} * p.row_words;
    for (uint64_t first = uint64_t{blockIdx.y} * tokens; first < rows;
         first += uint64_t{gridDim.y} * tokens) {
      const uint32_t* of_token[2 * token_tiles];
      for (uint32_t t = 0; t < 2 * token_tiles; ++t) {
        const uint64_t token = first + 8 * t + group;
        of_token[t] = q + (token < rows ? token : rows - 1) * stride;
      }
      int sums[token_tiles][row_tiles][4] = {}, too_much[token_tiles][4] = {};
      __syncwarp();  // lanes stored different parts of the tokens before
      for (uint32_t block = 0; block < p.row_words / 8; ++block)
        add_block(row, of_token, block, sums, too_much);
      BITNET_UNROLL
      for (uint32_t i = 0; i < token_tiles * row_tiles * 4; ++i) {
        const uint32_t tile = i / (row_tiles * 4), n = i / 4 % row_tiles, e = i % 4;
        const uint64_t t = first + 16 * tile + group + e / 2 * 8;
        const uint32_t column = r + 8 * n + lane() % 4 * 2 + e % 2;
        if (t >= rows || column >= p.n_rows) continue;
        const uint64_t at = t * p.m + p.first_row + column;
        const int sum = sums[tile][n][e] - too_much[tile][e];
        float value = static_cast<float>(sum) / s[t] * scales[0];
        if (p.add) value += residual[at];
        y[at] = value;
      }
    }
  });
}

namespace {

// The product of `n` elements from `from` on, both multiples of 4.
__device__ int dot_part(const uint32_t* row, const uint32_t* q, uint32_t from, uint32_t n) {
  int sum = 0, too_much = 0;
  for (uint32_t word = from / 4; word < (from + n) / 4; ++word) {
    const uint32_t codes = row[word / 32 * 8 + word % 8] >> (6 - 2 * (word % 32 / 8)) & codes_mask;
    sum = __dp4a(static_cast<int>(codes), static_cast<int>(q[word]), sum);
    too_much = __dp4a(ones, static_cast<int>(q[word]), too_much);
  }
  return sum - too_much;
}

// Sums of groups of elements, each with its factor, and of what they add up to in longer groups,
// with factors of their own. The lanes of a warp take groups side by side; what they found is added
// in ascending order.
struct factors {
  const float* of_short;
  uint32_t shorter;
  const float* of_long;  // nullptr: there are no longer groups
  uint32_t longer;
};
__device__ float factored(const uint32_t* row, const uint32_t* q, uint32_t k, const factors& f) {
  float inner = 0, sum = 0;
  const uint32_t groups = k / f.shorter;
  for (uint32_t first = 0; first < groups; first += warp) {
    const uint32_t mine = first + lane();
    float product = 0;
    if (mine < groups)
      product =
          static_cast<float>(dot_part(row, q, mine * f.shorter, f.shorter)) * f.of_short[mine];
    for (uint32_t i = 0; i < smaller(warp, groups - first); ++i) {
      inner += __shfl_sync(every_lane, product, i);
      const uint32_t end = (first + i + 1) * f.shorter;
      if (!f.of_long || end % f.longer != 0) continue;
      sum += inner * f.of_long[end / f.longer - 1];
      inner = 0;
    }
  }
  return f.of_long ? sum : inner;
}

}  // namespace

// Matrices with a factor to so many elements, or activations with a factor to constant 4 of them. A
// warp takes a row and a token.
BITNET_KERNEL(linear_ternary_factored) {
  const auto p = params_of<gpu::linear_ternary_params>(l);
  const auto* q = memory_of<const uint32_t>(l, 1);
  const auto* s = memory_of<const float>(l, 2);
  const auto* matrix = memory_of<const uint32_t>(l, 3);
  const auto* scales = memory_of<const float>(l, 4);
  const auto* residual = memory_of<const float>(l, 5);
  auto* y = memory_of<float>(l, 6);
  const uint32_t given = l.constants[4];  // elements to a factor of the activations, or 0
  const uint32_t own = p.scale_group == 0 ? p.k : p.scale_group;
  const uint64_t stride = gpu::i8_row_words(p.k);
  each_group((uint64_t{p.n_rows} + warps - 1) / warps, [&](uint32_t unit) {
    const uint32_t r = unit * warps + warp_of_group();
    if (r >= p.n_rows) return;  // all of a warp
    const uint32_t* row = matrix + uint64_t{r} * p.row_words;
    const float* scale =
        scales + (p.scale_group == 0 ? 0 : (uint64_t{p.first_row} + r) * (p.k / own));
    each_y(rows_of(l), [&](uint32_t t) {
      const uint32_t* of_token = q + t * stride;
      float value;
      if (given == 0) {
        value = factored(row, of_token, p.k, {scale, own, nullptr, 0}) / s[t];
      } else {
        const float* of_s = s + uint64_t{t} * (p.k / given);
        value = given <= own ? factored(row, of_token, p.k, {of_s, given, scale, own})
                             : factored(row, of_token, p.k, {scale, own, of_s, given});
      }
      const uint64_t at = uint64_t{t} * p.m + p.first_row + r;
      if (p.add && lane() == 0) value += residual[at];
      if (lane() == 0) y[at] = value;
    });
  });
}

// The bits of [rms_norm] (constant 2), act_quant, linear_ternary, [add], for steps of one row. Each
// group quantises the row for itself.
BITNET_KERNEL(bit_linear) {
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
    __syncthreads();  // the row before is done with
    float s;
    if (l.constants[2] != 0) {
      const float factor = norm_factor(in, p.k, p.eps);
      s = quantise_row([&](uint32_t i) { return in[i] * factor * weight[i]; }, p.k, q);
    } else {
      s = quantise_row([&](uint32_t i) { return in[i]; }, p.k, q);
    }
    __syncthreads();
    constexpr uint32_t of_group = warps * rows_each;
    each_group((uint64_t{p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
      const uint32_t r = unit * of_group + warp_of_group() * rows_each;
      if (r >= p.n_rows) return;  // all of a warp
      const uint4* row[rows_each];
      find_rows(matrix, p.row_words, r, p.n_rows, row);
      const uint4* const of_token[1] = {reinterpret_cast<const uint4*>(q)};
      const int sum = dot_rows<1>(row, of_token, p.row_words / 4);
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
