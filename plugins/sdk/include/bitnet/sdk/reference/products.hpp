// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Products of a matrix with rows of activations, for the output columns [first, last): y (rows, m).
//
// A piece of a weight row is decoded once for a tile of tokens. The result of a token does not
// depend on its tile, so every cut gives the same bits.

#include <algorithm>
#include <cstdint>

#include "bitnet/sdk/compute/weight.hpp"
#include "bitnet/sdk/formats.hpp"

namespace bitnet::sdk::reference {

inline constexpr uint64_t tile_tokens = 16;
inline constexpr uint64_t piece = 1024;  // elements; a multiple of every format's block

// Elements [first, first + piece) of a TERNARY2 row as -1, 0 and 1, in whole groups of 128.
inline void expand_ternary(const uint8_t* row, uint64_t first, uint64_t n, int8_t* out) noexcept {
  for (uint64_t group = 0; group < n; group += 128) {
    const uint8_t* bytes = row + (first + group) / 4;
    for (uint64_t p = 0; p < 32; ++p)
      for (uint64_t plane = 0; plane < 4; ++plane)
        out[group + 32 * plane + p] = static_cast<int8_t>((bytes[p] >> (6 - 2 * plane) & 3) - 1);
  }
}

inline int32_t dot(const int8_t* a, const int8_t* b, uint64_t n) noexcept {
  int32_t sum = 0;  // exact, whatever the order
  for (uint64_t i = 0; i < n; ++i) sum += int32_t{a[i]} * int32_t{b[i]};
  return sum;
}

// q (rows, k) and s (rows) are codes and scales of ACT_QUANT_I8.
inline void linear_ternary(const weight& w, const int8_t* q, const float* s, uint64_t rows,
                           uint64_t first, uint64_t last, float* y) noexcept {
  const bool grouped = w.scale_group != 0;
  const uint64_t group = grouped ? w.scale_group : w.k;
  int8_t codes[piece];
  for (uint64_t t0 = 0; t0 < rows; t0 += tile_tokens) {
    const uint64_t tokens = std::min(tile_tokens, rows - t0);
    for (uint64_t m = first; m < last; ++m) {
      int32_t sum[tile_tokens] = {};
      float scaled[tile_tokens] = {};
      for (uint64_t k = 0; k < w.k;) {
        const uint64_t in_piece = k % piece;
        if (in_piece == 0) expand_ternary(w.row(m), k, std::min(piece, w.k - k), codes);
        const uint64_t end = std::min({k - in_piece + piece, (k / group + 1) * group, w.k});
        for (uint64_t t = 0; t < tokens; ++t)
          sum[t] += dot(codes + in_piece, q + (t0 + t) * w.k + k, end - k);
        k = end;
        if (!grouped || k % group != 0) continue;
        const float scale = w.scales[(m * w.k + k - 1) / group];
        for (uint64_t t = 0; t < tokens; ++t) {
          scaled[t] += static_cast<float>(sum[t]) * scale;
          sum[t] = 0;
        }
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        const float act = s[t0 + t];
        y[(t0 + t) * w.m + m] =
            grouped ? scaled[t] / act : static_cast<float>(sum[t]) / act * w.scales[0];
      }
    }
  }
}

// q (rows, k) and d (rows, groups) are codes and factors of ACT_QUANT_I8_GROUPED.
inline void linear_ternary_grouped(const weight& w, const int8_t* q, const float* d,
                                   uint64_t groups, uint64_t rows, uint64_t first, uint64_t last,
                                   float* y) noexcept {
  const uint64_t own = w.scale_group == 0 ? w.k : w.scale_group, given = w.k / groups;
  const uint64_t shorter = std::min(own, given), longer = std::max(own, given);
  int8_t codes[piece];
  for (uint64_t m = first; m < last; ++m) {
    const auto scale = [&](uint64_t at) {
      return w.scales[w.scale_group == 0 ? 0 : (m * w.k + at) / own];
    };
    for (uint64_t t0 = 0; t0 < rows; t0 += tile_tokens) {
      const uint64_t tokens = std::min(tile_tokens, rows - t0);
      int32_t sum[tile_tokens] = {};
      float inner[tile_tokens] = {}, outer[tile_tokens] = {};
      for (uint64_t k = 0; k < w.k;) {
        const uint64_t in_piece = k % piece;
        if (in_piece == 0) expand_ternary(w.row(m), k, std::min(piece, w.k - k), codes);
        const uint64_t end = std::min({k - in_piece + piece, (k / shorter + 1) * shorter, w.k});
        for (uint64_t t = 0; t < tokens; ++t)
          sum[t] += dot(codes + in_piece, q + (t0 + t) * w.k + k, end - k);
        k = end;
        if (k % shorter != 0) continue;
        for (uint64_t t = 0; t < tokens; ++t) {
          const float factor = d[(t0 + t) * groups + (k - 1) / given];
          inner[t] += static_cast<float>(sum[t]) * (given <= own ? factor : scale(k - 1));
          sum[t] = 0;
          if (k % longer != 0) continue;
          outer[t] += inner[t] * (given <= own ? scale(k - 1) : factor);
          inner[t] = 0;
        }
      }
      for (uint64_t t = 0; t < tokens; ++t) y[(t0 + t) * w.m + m] = outer[t];
    }
  }
}

// x (rows, k). Sixteen independent sums, so that a compiler can use vectors.
inline void linear_dense(const weight& w, const float* x, uint64_t rows, uint64_t first,
                         uint64_t last, float* y) noexcept {
  constexpr uint64_t lanes = 16;
  float values[piece];
  for (uint64_t t0 = 0; t0 < rows; t0 += tile_tokens) {
    const uint64_t tokens = std::min(tile_tokens, rows - t0);
    for (uint64_t m = first; m < last; ++m) {
      float sums[tile_tokens][lanes] = {};
      for (uint64_t k = 0; k < w.k; k += piece) {
        const uint64_t n = std::min(piece, w.k - k);
        decode(w.format, w.row(m), k, n, values);
        for (uint64_t t = 0; t < tokens; ++t) {
          const float* in = x + (t0 + t) * w.k + k;
          float* sum = sums[t];
          const uint64_t whole = n / lanes * lanes;
          for (uint64_t i = 0; i < whole; i += lanes)
            for (uint64_t lane = 0; lane < lanes; ++lane)
              sum[lane] += values[i + lane] * in[i + lane];
          for (uint64_t i = whole; i < n; ++i) sum[i - whole] += values[i] * in[i];
        }
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        float total = 0;
        for (const float lane : sums[t]) total += lane;
        y[(t0 + t) * w.m + m] = total;
      }
    }
  }
}

}  // namespace bitnet::sdk::reference
