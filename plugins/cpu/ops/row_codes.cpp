#include "row_codes.hpp"

#include <algorithm>
#include <cmath>

namespace bitnet::cpu {
namespace {

constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds

// Every instruction set sums in this order.
struct sums16 {
  float parts[16] = {};
  float total() {
    for (int half = 8; half != 0; half /= 2)
      for (int j = 0; j < half; ++j) parts[j] += parts[j + half];
    return parts[0];
  }
};

// Codes in steps of `step`; |r| and |d q| are returned squared.
row_code code_i4(const float* w, uint64_t k, float step, int8_t* q) {
  const float inverse = 1.0f / step;
  sums16 ww, wq, qq;
  for (uint64_t i = 0; i < k; i += 16)
    for (uint64_t j = 0; j < 16; ++j) {
      const float v = w[i + j] * inverse;
      const float low = v > -7.0f ? v : -7.0f;  // also if v is NaN
      const float n = ((low < 7.0f ? low : 7.0f) + shift) - shift;
      q[i + j] = static_cast<int8_t>(n);
      ww.parts[j] += w[i + j] * w[i + j];
      wq.parts[j] += w[i + j] * n;
      qq.parts[j] += n * n;
    }
  const float sum_ww = ww.total(), sum_wq = wq.total(), sum_qq = qq.total();
  // r = w - d q is orthogonal to w, so an x along the row gets no error.
  if (!(sum_wq > 0)) return {0, sum_ww, 0};
  const float d = sum_ww / sum_wq;
  const float size = d * d * sum_qq;
  // |w - d q|^2 with w r = 0; if that cancels, the row's own size is used as a bound.
  return {d, std::max(size - sum_ww, 1e-6f * sum_ww), size};
}

// Elements of a block. The same place of all blocks has one sum; four places are a group.
constexpr uint64_t block = 64, groups = i6_groups;
using of_block = float[block];

// The sum over the places of a block, each times the square of its multiplier.
float weighted(const of_block& squares, const uint8_t* multipliers) {
  float sum = 0;
  for (uint64_t g = 0; g < groups; ++g) {
    const float* of_group = squares + 4 * g;
    const auto m = static_cast<float>(multipliers[g]);
    sum += m * m * ((of_group[0] + of_group[1]) + (of_group[2] + of_group[3]));
  }
  return sum;
}

// A row without codes: all of it is r. `none` is NaN if a weight is NaN or infinite, else 0.
row_code without_codes(const float* row, uint64_t k, float largest, int8_t* q,
                       uint8_t* multipliers) {
  std::fill_n(q, k, int8_t{0});
  std::fill_n(multipliers, groups, uint8_t{0});
  float none = 0;
  for (uint64_t i = 0; i < k; ++i) none += 0.0f * row[i];
  const float size = largest * std::sqrt(static_cast<float>(k)) + none;
  return {largest, size, 0};
}

}  // namespace

row_code i8_codes(const isa_form& isa, const float* row, uint64_t k, int8_t* q) {
  float s = 0, error = 0, size = 0;
  isa.rows.act_quant(row, k, q, &s);
  const float scale = 1.0f / s;
  isa.rows.quant_error(row, q, scale, k, &error, &size);
  return {scale, std::sqrt(error), std::sqrt(size)};
}

row_code i4_codes(const float* row, uint64_t k, int8_t* q) {
  float largest = 0;
  for (uint64_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(row[i]));
  row_code best;
  // Beyond these limits the inverse of a scale or a sum of squares could overflow f32.
  if (largest < 1e-30f || largest > 1e16f) {
    std::fill_n(q, k, int8_t{0});
    float size = 0;
    for (uint64_t i = 0; i < k; ++i) size += row[i] * row[i];
    return {0, std::sqrt(size), 0};
  }
  int8_t codes[max_i8_width];
  for (const float clipped : {1.0f, 0.8f, 0.65f}) {  // the last one suits normal weights
    const row_code now = code_i4(row, k, clipped * largest / 7.0f, codes);
    if (clipped != 1.0f && !(now.error < best.error)) continue;
    best = now;
    std::copy_n(codes, k, q);
  }
  return {best.scale, std::sqrt(best.error), std::sqrt(best.size)};
}

row_code i6_codes(const float* row, uint64_t k, int8_t* q, uint8_t* multipliers) {
  constexpr float top = 31.0f, finest = 255.0f;
  of_block largest = {};
  for (uint64_t i = 0; i < k; i += block)
    for (uint64_t j = 0; j < block; ++j) largest[j] = std::max(largest[j], std::fabs(row[i + j]));
  const float most = *std::max_element(largest, largest + block);
  // Beyond these limits the inverse of a scale or a bound could overflow f32.
  if (!(most >= 1e-30f && most <= 1e30f)) return without_codes(row, k, most, q, multipliers);
  const float scale = most / (top * finest);
  of_block inverse;
  for (uint64_t g = 0; g < groups; ++g) {
    const float of_group = *std::max_element(largest + 4 * g, largest + 4 * g + 4);
    const float m = std::clamp(std::ceil(of_group / (top * scale)), 1.0f, finest);
    multipliers[g] = static_cast<uint8_t>(m);
    std::fill_n(inverse + 4 * g, 4, 1.0f / (m * scale));
  }
  of_block rr = {}, qq = {};  // in units of the group's step
  for (uint64_t i = 0; i < k; i += block)
    for (uint64_t j = 0; j < block; ++j) {
      const float v = row[i + j] * inverse[j];
      const float low = v > -top ? v : -top;  // also if v is NaN
      const float n = ((low < top ? low : top) + shift) - shift;
      q[i + j] = static_cast<int8_t>(n);
      rr[j] += (v - n) * (v - n);
      qq[j] += n * n;
    }
  // v, at most 31, is rounded three times, so r may be larger by 31 * 3 * 2^-24 of a step.
  constexpr float rounding = top * 3 * 0x1p-24f * finest;
  const float lost = rounding * std::sqrt(static_cast<float>(k));
  return {scale, scale * (std::sqrt(weighted(rr, multipliers)) + lost),
          scale * std::sqrt(weighted(qq, multipliers))};
}

}  // namespace bitnet::cpu
