// Built with +dotprod+i8mm: kernels only, nothing that runs before dispatch, no shared inline
// functions.
//
// One instruction multiplies 8 elements of two rows by 8 of two tokens. Rows and tokens outside
// whole tiles, including a single token, use the dot products.
#include <arm_neon.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t tile_rows = 8, tile_tokens = 4;

// 8 elements of each of two rows or tokens: those from 0 on, those from 8 on.
struct pair {
  int8x16_t low, high;
};

inline pair zip(int8x16_t first, int8x16_t second) {
  const int64x2_t a = vreinterpretq_s64_s8(first), b = vreinterpretq_s64_s8(second);
  return {vreinterpretq_s8_s64(vzip1q_s64(a, b)), vreinterpretq_s8_s64(vzip2q_s64(a, b))};
}

inline int8x16_t plane(int8x16_t& codes) {
  const uint8x16_t c = vreinterpretq_u8_s8(codes);
  codes = vreinterpretq_s8_u8(vshrq_n_u8(c, 2));
  return vreinterpretq_s8_u8(vandq_u8(c, vdupq_n_u8(3)));
}

// One group of 128 elements. sums[i][j] has rows 2i, 2i + 1 by tokens 2j, 2j + 1.
inline void add_group(const uint8_t* w, uint64_t stride, const int8_t* const* q,
                      int32x4_t (&sums)[tile_rows / 2][tile_tokens / 2]) {
  for (uint64_t h = 0; h < 32; h += 16) {
    pair codes[tile_rows / 2];
    for (uint64_t i = 0; i < tile_rows / 2; ++i)
      codes[i] = zip(vreinterpretq_s8_u8(vld1q_u8(w + 2 * i * stride + h)),
                     vreinterpretq_s8_u8(vld1q_u8(w + (2 * i + 1) * stride + h)));
    for (uint64_t p = 4; p-- > 0;) {
      pair x[tile_tokens / 2];
      for (uint64_t j = 0; j < tile_tokens / 2; ++j)
        x[j] = zip(vld1q_s8(q[2 * j] + 32 * p + h), vld1q_s8(q[2 * j + 1] + 32 * p + h));
      for (uint64_t i = 0; i < tile_rows / 2; ++i) {
        const int8x16_t low = plane(codes[i].low), high = plane(codes[i].high);
        for (uint64_t j = 0; j < tile_tokens / 2; ++j)
          sums[i][j] = vmmlaq_s32(vmmlaq_s32(sums[i][j], low, x[j].low), high, x[j].high);
      }
    }
  }
}

struct prepared {
  const int8_t* q[tile_tokens];
  int8_t tail[tile_tokens][128];  // the rest of a token after whole groups, then zeros
  int32_t sum[tile_tokens];
};

void tile(const ternary_tile& a, const prepared& x, uint64_t r, uint64_t t) {
  int32x4_t sums[tile_rows / 2][tile_tokens / 2] = {};
  const uint8_t* w = a.w + r * a.w_stride;
  const int8_t* q[tile_tokens];
  for (uint64_t j = 0; j < tile_tokens; ++j) q[j] = x.q[j];
  for (uint64_t g = 0; g < a.k / 128; ++g, w += 32) {
    add_group(w, a.w_stride, q, sums);
    for (uint64_t j = 0; j < tile_tokens; ++j) q[j] += 128;
  }
  if (a.k % 128 != 0) {
    for (uint64_t j = 0; j < tile_tokens; ++j) q[j] = x.tail[j];
    add_group(w, a.w_stride, q, sums);
  }
  for (uint64_t i = 0; i < tile_rows; ++i)
    for (uint64_t j = 0; j < tile_tokens; ++j)
      a.sums[(t + j) * a.sums_stride + r + i] = sums[i / 2][j / 2][2 * (i % 2) + j % 2] - x.sum[j];
}

}  // namespace

void linear_ternary_neon_i8mm(const ternary_tile& a) {
  const uint64_t rows = a.rows / tile_rows * tile_rows;
  const uint64_t tokens = a.tokens / tile_tokens * tile_tokens;
  for (uint64_t t = 0; rows != 0 && t < tokens; t += tile_tokens) {
    prepared x;
    for (uint64_t j = 0; j < tile_tokens; ++j) {
      const int8_t* q = a.q + (t + j) * a.q_stride;
      const uint64_t whole = a.k / 128 * 128;
      x.q[j] = q;
      std::memset(x.tail[j], 0, sizeof x.tail[j]);
      std::memcpy(x.tail[j], q + whole, a.k - whole);
      x.sum[j] = 0;
      for (uint64_t i = 0; i < a.k; ++i) x.sum[j] += q[i];
    }
    for (uint64_t r = 0; r < rows; r += tile_rows) tile(a, x, r, t);
  }
  ternary_tile rest = a;
  if (rows != a.rows && tokens != 0) {  // the last rows of the tokens above
    rest.w += rows * a.w_stride;
    rest.sums += rows;
    rest.rows = a.rows - rows;
    rest.tokens = tokens;
    linear_ternary_neon_dotprod(rest);
  }
  if (tokens != a.tokens) {
    rest = a;
    rest.q += tokens * a.q_stride;
    rest.sums += tokens * a.sums_stride;
    rest.tokens = a.tokens - tokens;
    linear_ternary_neon_dotprod(rest);
  }
}

}  // namespace bitnet::cpu
