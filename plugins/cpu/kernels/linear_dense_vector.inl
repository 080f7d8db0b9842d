// linear_dense.hpp for a machine whose registers hold four floats: the shared text of the forms.
// Kernels only, no shared inline functions; multiply and add are not fused, as the order in
// linear_dense.hpp requires.
//
// Expects  BITNET_ISA, the suffix of the names; BITNET_CONVERSIONS, the file with from_bytes() and
//          from_halves(); BITNET_ROWS_AT_ONCE, BITNET_TOKENS_AT_ONCE and BITNET_HEADS_AT_ONCE,
//          tiles: each pair of row and token, and each head, takes four registers.
// Gives    `linear_dense` and `weighted_sum` with that suffix.
// Used by  linear_dense_neon.cpp, linear_dense_sse41.cpp.
#include <cstring>

#include "bitnet/abi/tensor.h"
#include "linear_dense.hpp"

// BITNET_JOIN(weighted_sum, BITNET_ISA) is weighted_sum_neon where BITNET_ISA is neon. The helper
// expands BITNET_ISA before ## joins the words.
#define BITNET_JOIN_(a, b) a##_##b
#define BITNET_JOIN(a, b) BITNET_JOIN_(a, b)

namespace bitnet::cpu {
namespace {

#define BITNET_LANES 4
#include "elements.inl"
#include "format_sizes.inl"

// Adds up the partials: p[4 v + i] is element i of vector v.
inline float total(const floats (&p)[4]) {
  const floats by4 = (p[0] + p[2]) + (p[1] + p[3]);
  return (by4[0] + by4[2]) + (by4[1] + by4[3]);
}

#include "prefetch_rows.inl"

// A tile of Rows rows by Tokens tokens: each weight is decoded once for all the tokens.
template <uint32_t Format, int Rows, int Tokens>
void dot(const dense_tile& a, uint64_t r, uint64_t t) {
  floats sums[Rows][Tokens][4];
  const auto kept = [&](int i, int j) {
    return a.partials +
           ((t + static_cast<uint64_t>(j)) * a.rows + r + static_cast<uint64_t>(i)) * 16;
  };
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j)
      for (int v = 0; v < 4; ++v)
        sums[i][j][v] = a.partials ? load<floats>(kept(i, j) + 4 * v) : floats{};
  const float* x = a.x + t * a.x_stride;
  const uint8_t* w = a.w + r * a.w_stride;
  const uint64_t whole = a.k / 16 * 16;
  const bool later = a.later != nullptr && t == 0;
  for (uint64_t k = 0; k < whole; k += 16) {
    if (later) prefetch_later(a.later, a.later_row_bytes, r, Rows, k / 16, a.k / 16);
    for (uint64_t v = 0; v < 4; ++v)
      for (int i = 0; i < Rows; ++i) {
        const floats d = decode<Format>(w + static_cast<uint64_t>(i) * a.w_stride, k + 4 * v);
        for (int j = 0; j < Tokens; ++j)
          sums[i][j][v] += d * load<floats>(x + static_cast<uint64_t>(j) * a.x_stride + k + 4 * v);
      }
  }
  if constexpr (!in_blocks(Format)) {
    if (whole != a.k) {  // zeros after the end: a partial is never -0, so adding +0 changes nothing
      for (int i = 0; i < Rows; ++i) {
        uint8_t rest[64] = {};
        std::memcpy(rest, w + static_cast<uint64_t>(i) * a.w_stride + whole * element_bytes(Format),
                    (a.k - whole) * element_bytes(Format));
        for (int j = 0; j < Tokens; ++j) {
          float x_rest[16] = {};
          std::memcpy(x_rest, x + static_cast<uint64_t>(j) * a.x_stride + whole,
                      (a.k - whole) * sizeof(float));
          for (uint64_t v = 0; v < 4; ++v)
            sums[i][j][v] += decode<Format>(rest, 4 * v) * load<floats>(x_rest + 4 * v);
        }
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) {
      if (a.partials != nullptr)
        std::memcpy(kept(i, j), sums[i][j], sizeof sums[i][j]);
      else
        a.y[(t + static_cast<uint64_t>(j)) * a.y_stride + r + static_cast<uint64_t>(i)] =
            total(sums[i][j]);
    }
}

template <uint32_t Format, int Rows>
void row_tile(const dense_tile& a, uint64_t r) {
  constexpr int together = BITNET_TOKENS_AT_ONCE;
  uint64_t t = 0;
  for (; t + together <= a.tokens; t += together) dot<Format, Rows, together>(a, r, t);
  for (; t < a.tokens; ++t) dot<Format, Rows, 1>(a, r, t);
}

template <uint32_t Format>
void run(const dense_tile& a) {
  constexpr int together = BITNET_ROWS_AT_ONCE;
  uint64_t r = 0;
  for (; r + together <= a.rows; r += together) {
    if (a.next != nullptr) prefetch(a.w, a.next, a.rows, r + rows_ahead, together, a.w_stride);
    row_tile<Format, together>(a, r);
  }
  for (; r < a.rows; ++r) row_tile<Format, 1>(a, r);
}

// Vectors * 4 columns from column d of Heads heads from h, all rows.
template <uint32_t Format, int Vectors, int Heads>
void columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  floats sums[Heads][Vectors];
  float* y = a.y + h * a.y_stride + d;
  const float* p = a.p + h * a.p_stride;
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i) sums[g][i] = load<floats>(y + g * a.y_stride + 4 * i);
  for (uint64_t j = 0; j < a.rows; ++j) {
    if (d == 0 && a.next != nullptr) prefetch(a.v, a.next, a.rows, j + rows_ahead, 1, a.v_stride);
    for (uint64_t i = 0; i < Vectors; ++i) {
      const floats v = decode<Format>(a.v + j * a.v_stride, d + 4 * i);
      for (uint64_t g = 0; g < Heads; ++g) sums[g][i] += p[g * a.p_stride + j] * v;
    }
  }
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i)
      std::memcpy(y + g * a.y_stride + 4 * i, &sums[g][i], sizeof(floats));
}

// The columns from d on, fewer than 4, of one head.
template <uint32_t Format>
void last_columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  const uint64_t n = a.width - d;
  float y[4] = {};
  std::memcpy(y, a.y + h * a.y_stride + d, n * sizeof(float));
  for (uint64_t j = 0; j < a.rows; ++j) {
    uint8_t rest[16] = {};
    std::memcpy(rest, a.v + j * a.v_stride + d * element_bytes(Format), n * element_bytes(Format));
    columns<Format, 1, 1>({a.format, rest, 0, a.p + h * a.p_stride + j, 0, y, 0, 1, 4, 1, rest}, 0,
                          0);
  }
  std::memcpy(a.y + h * a.y_stride + d, y, n * sizeof(float));
}

template <uint32_t Format, int Heads>
void sum(const weighted_rows& a, uint64_t h) {
  uint64_t d = 0;
  for (; d + 16 <= a.width; d += 16) columns<Format, 4, Heads>(a, d, h);
  for (; d + 4 <= a.width; d += 4) columns<Format, 1, Heads>(a, d, h);
  if constexpr (!in_blocks(Format))
    if (d != a.width)
      for (uint64_t g = 0; g < Heads; ++g) last_columns<Format>(a, d, h + g);
}

template <uint32_t Format>
void sum(const weighted_rows& a) {
  constexpr int together = BITNET_HEADS_AT_ONCE;
  uint64_t h = 0;
  for (; h + together <= a.heads; h += together) sum<Format, together>(a, h);
  for (; h < a.heads; ++h) sum<Format, 1>(a, h);
}

}  // namespace

void BITNET_JOIN(linear_dense, BITNET_ISA)(const dense_tile& a) {
  switch (a.format) {
    case BITNET_FORMAT_F32:
      return run<BITNET_FORMAT_F32>(a);
    case BITNET_FORMAT_F16:
      return run<BITNET_FORMAT_F16>(a);
    case BITNET_FORMAT_BF16:
      return run<BITNET_FORMAT_BF16>(a);
    case BITNET_FORMAT_Q8_0:
      return run<BITNET_FORMAT_Q8_0>(a);
    case BITNET_FORMAT_Q4_0:
      return run<BITNET_FORMAT_Q4_0>(a);
    default:
      return;
  }
}

void BITNET_JOIN(weighted_sum, BITNET_ISA)(const weighted_rows& a) {
  switch (a.format) {
// A case for each row of kv_formats.hpp: kv_format::q8_0 runs sum<BITNET_FORMAT_Q8_0>.
#define BITNET_SUM_OF(name, NAME) \
  case kv_format::name:           \
    return sum<BITNET_FORMAT_##NAME>(a);
    BITNET_CPU_KV_FORMATS(BITNET_SUM_OF)
#undef BITNET_SUM_OF
    case kv_format::none:
      return;
  }
}

}  // namespace bitnet::cpu
