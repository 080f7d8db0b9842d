#include "top_head.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "tuning.hpp"

namespace bitnet::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float rounded_up = 1.001f;  // norms and bounds are sums of rounded terms
constexpr int32_t top_code = 16256;   // 127 * 128

// Elements of a row with those that fill it up, which are zero.
uint64_t padded(const sdk::weight& w, head_bits bits) {
  const uint64_t unit = bits == head_bits::four ? 128 : 64;
  return (w.k + unit - 1) / unit * unit;
}
uint64_t stride_of(const sdk::weight& w, head_bits bits) {
  return bits == head_bits::four ? padded(w, bits) / 2 : padded(w, bits);
}

// Sums in this order by every instruction set.
struct sums16 {
  float parts[16] = {};
  float total() {
    for (int half = 8; half != 0; half /= 2)
      for (int j = 0; j < half; ++j) parts[j] += parts[j + half];
    return parts[0];
  }
};

struct row_code {
  float d = 0, error = 0, size = 0;  // d, |r|^2, |d q|^2
};

// A row of k elements, a multiple of 16, in steps of `step`; q gets the codes.
row_code code_i4(const float* w, uint64_t k, float step, int8_t* q) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds
  const float inverse = 1.0f / step;
  sums16 ww, wq, qq;
  for (uint64_t i = 0; i < k; i += 16)
    for (uint64_t j = 0; j < 16; ++j) {
      const float v = w[i + j] * inverse;
      const float low = v > -7.0f ? v : -7.0f;  // also where v is not a number
      const float n = ((low < 7.0f ? low : 7.0f) + shift) - shift;
      q[i + j] = static_cast<int8_t>(n);
      ww.parts[j] += w[i + j] * w[i + j];
      wq.parts[j] += w[i + j] * n;
      qq.parts[j] += n * n;
    }
  const float sum_ww = ww.total(), sum_wq = wq.total(), sum_qq = qq.total();
  // r = w - d q is orthogonal to w: a state along the row is not misjudged.
  if (!(sum_wq > 0)) return {0, sum_ww, 0};
  const float d = sum_ww / sum_wq;
  const float size = d * d * sum_qq;
  // |w - d q|^2 with w r = 0; where that cancels, the row's own size is a bound.
  return {d, std::max(size - sum_ww, 1e-6f * sum_ww), size};
}

row_code best_i4(const float* w, uint64_t k, int8_t* q) {
  float largest = 0;
  for (uint64_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(w[i]));
  row_code best;
  if (largest < 1e-30f || largest > 1e16f) {
    std::fill_n(q, k, int8_t{0});
    float size = 0;
    for (uint64_t i = 0; i < k; ++i) size += w[i] * w[i];
    return {0, size, 0};
  }
  int8_t codes[max_i8_width];
  for (const float clipped : {1.0f, 0.8f, 0.65f}) {  // the last suits normal weights
    const row_code now = code_i4(w, k, clipped * largest / 7.0f, codes);
    if (clipped != 1.0f && !(now.error < best.error)) continue;
    best = now;
    std::copy_n(codes, k, q);
  }
  return best;
}

constexpr uint64_t most_rows = 256;                                   // of a tile
constexpr uint64_t most_sums = uint64_t{64} * top_head::max_outputs;  // 16 KB on the stack

// How many rows all outputs take before the next: what they read again stays in the second cache.
uint64_t tile_for(uint64_t outputs, uint64_t stride) {
  if (outputs == 1) return most_rows;
  constexpr uint64_t bytes = 131072, unit = 8;
  const uint64_t most = std::min(most_rows, most_sums / outputs / unit * unit);
  return std::clamp(bytes / stride / unit * unit, unit, most);
}

// Keeps the `top` largest values seen, as a heap whose front is the least of them.
void keep(float* largest, uint32_t top, float value) {
  std::pop_heap(largest, largest + top, std::greater<>());
  largest[top - 1] = value;
  std::push_heap(largest, largest + top, std::greater<>());
}

}  // namespace

bool top_head::fits(const sdk::weight& w) {
  // Q8_0 is as small as the copy and as fast; smaller formats take longer to decode than the copy
  // takes to read.
  const bool gains = w.format != BITNET_FORMAT_Q8_0 && w.format != BITNET_FORMAT_TERNARY2;
  return gains && w.k <= max_i8_width && w.m >= 1024;  // what is smaller stays in the caches
}

uint64_t top_head::packed_bytes(const sdk::weight& w, head_bits bits) {
  return fits(w) ? (stride_of(w, bits) + 3 * sizeof(float)) * w.m : 0;
}

uint64_t top_head::row_bytes(const sdk::weight& w, head_bits bits) {
  return stride_of(w, bits);
}

top_head::copied_rows top_head::rows_of(const sdk::weight& w, head_bits bits) {
  const uint8_t* data = w.packed->data.load(std::memory_order_acquire);
  const uint64_t stride = stride_of(w, bits);
  const auto* scales = reinterpret_cast<const float*>(data + stride * w.m);
  const uint8_t* copied = w.packed->copy ? w.packed->copy->data() : nullptr;
  return {copied ? copied : data, stride, scales, scales + w.m, scales + 2 * w.m};
}

void top_head::pack(const sdk::weight& w, head_bits bits, const isa_form& isa, uint64_t first,
                    uint64_t last, uint8_t* out) {
  const uint64_t stride = stride_of(w, bits);
  auto* scales = reinterpret_cast<float*>(out + stride * w.m);
  float row[max_i8_width] = {};
  int8_t q[max_i8_width] = {};
  for (uint64_t r = first; r < last; ++r) {
    decode_row(isa, w, r, row);
    if (bits == head_bits::four) {
      const row_code c = best_i4(row, padded(w, bits), q);
      uint8_t* codes = out + r * stride;
      for (uint64_t i = 0; i < stride; ++i) {
        const int8_t* near = q + i / 64 * 128 + i % 64;
        codes[i] = static_cast<uint8_t>((near[0] + 8) | (near[64] + 8) << 4);
      }
      scales[r] = c.d;
      scales[w.m + r] = rounded_up * std::sqrt(c.error);
      scales[2 * w.m + r] = rounded_up * std::sqrt(c.size) + scales[w.m + r];
      continue;
    }
    float s = 0;
    isa.rows.act_quant(row, w.k, q, &s);
    uint8_t* codes = out + r * stride;
    for (uint64_t i = 0; i < stride; ++i)
      codes[i] = static_cast<uint8_t>(static_cast<uint8_t>(q[i]) ^ 0x80u);
    const float d = 1.0f / s;
    float error = 0, size = 0;
    isa.rows.quant_error(row, q, d, w.k, &error, &size);
    scales[r] = d;
    scales[w.m + r] = rounded_up * std::sqrt(error);
    scales[2 * w.m + r] = rounded_up * std::sqrt(size) + scales[w.m + r];
  }
}

top_head::top_head(const sdk::weight& w, head_bits bits, uint32_t workers)
    : w_(w),
      bits_(bits),
      certainty_(bits == head_bits::four ? 6.0f / std::sqrt(static_cast<float>(w.k)) : rounded_up),
      largest_(new float[uint64_t{workers} * max_outputs * max_top]),
      z_(max_outputs * padded(w, bits)),
      high_(z_.size()),
      low_(z_.size()) {}

void top_head::take(uint64_t output, const float* x) {
  state& s = states_[output];
  float largest = 0;
  double size = 0;
  for (uint64_t i = 0; i < w_.k; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    size += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  s.finite = std::isfinite(size) && size < 1e60;
  if (!s.finite) return;
  s.scale = std::max(static_cast<double>(largest), 1e-30) / top_code;
  double error = 0;
  int64_t sum = 0;
  const uint64_t at = output * padded(w_, bits_);
  for (uint64_t i = 0; i < w_.k; ++i) {
    const double exact = static_cast<double>(x[i]);
    const auto z = static_cast<int32_t>(std::lround(exact / s.scale));
    const int32_t high = (z + 64) >> 7;
    z_[at + i] = static_cast<int16_t>(z);
    high_[at + i] = static_cast<int8_t>(high);
    low_[at + i] = static_cast<int8_t>(z - 128 * high);
    sum += z;
    error += (exact - z * s.scale) * (exact - z * s.scale);
  }
  sums_[output] = sum;
  s.size = rounded_up * static_cast<float>(std::sqrt(size));
  s.error = rounded_up * static_cast<float>(std::sqrt(error)) +
            (static_cast<float>(w_.k) / 16.0f + 16.0f) * 0x1p-24f * s.size;
}

void top_head::approximate(const isa_form& isa, uint32_t worker, uint64_t outputs, uint32_t top,
                           uint64_t first, uint64_t last, float* y, bool streams) {
  if (outputs == 0) return;  // a prompt's step, but for its last
  const copied_rows rows = rows_of(w_, bits_);
  const auto kernel = bits_ == head_bits::four ? isa.linear_i4 : isa.linear_i8;
  const uint64_t k = padded(w_, bits_), ahead = current_tuning().ahead;
  const uint64_t tile = tile_for(outputs, rows.stride);
  int64_t sums[most_sums];
  for (uint64_t o = 0; o < outputs; ++o) std::fill_n(largest(worker, o), top, -infinity);
  sdk::row_copy* const copy = streams ? w_.packed->copy.get() : nullptr;
  for (uint64_t r = first; r < last; r += tile) {
    const uint64_t n = std::min(tile, last - r);
    if (copy && !copy->data()) copy->add(rows.codes, r, r + n);
    // Those of an output that is not finite are those of an earlier one, and are not used.
    kernel({rows.codes + r * rows.stride, rows.stride, z_.data(), high_.data(), low_.data(), k,
            sums_, sums, tile, k, n, outputs, ahead});
    for (uint64_t o = 0; o < outputs; ++o) {
      const state& s = states_[o];
      if (!s.finite) continue;
      float lower[most_rows];
      float* out = y + o * w_.m + r;
      for (uint64_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(sums[o * tile + i]) * s.scale *
                                    static_cast<double>(rows.scales[r + i]));
        lower[i] = out[i] - bound(rows, s, r + i);
      }
      float* heap = largest(worker, o);
      for (uint64_t i = 0; i < n; ++i)
        if (lower[i] > heap[0]) keep(heap, top, lower[i]);
    }
  }
}

uint64_t top_head::refine(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top,
                          const float* x, uint64_t first, uint64_t last, float* y) const {
  const copied_rows rows = rows_of(w_, bits_);
  uint64_t exact = 0;
  for (uint64_t o = 0; o < outputs; ++o) {
    const state& s = states_[o];
    float least[max_top];
    std::fill_n(least, top, -infinity);
    for (uint32_t w = 0; w < workers; ++w) {
      const float* theirs = largest_.get() + (uint64_t{w} * max_outputs + o) * max_top;
      for (uint32_t i = 0; i < top; ++i)
        if (theirs[i] > least[0]) keep(least, top, theirs[i]);
    }
    float* out = y + o * w_.m;
    for (uint64_t r = first; r < last; ++r) {
      if (s.finite && out[r] + bound(rows, s, r) < least[0]) {
        out[r] = -infinity;
        continue;
      }
      linear_dense(isa, w_, x + o * w_.k, 1, r, r + 1, out);
      ++exact;
    }
  }
  return exact;
}

}  // namespace bitnet::cpu
