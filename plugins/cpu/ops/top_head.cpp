#include "top_head.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "row_codes.hpp"
#include "tuning.hpp"

namespace bitnet::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
// Norms and bounds are sums of at most 8192 terms, each rounded by at most 2^-24 of the sum, which
// is less than a thousandth.
constexpr float rounded_up = 1.001f;
constexpr int32_t top_code = 16256;  // 127 * 128

// Elements of a row with its zero padding.
uint64_t padded(const sdk::weight& w, top_head_bits bits) {
  const uint64_t unit = bits == top_head_bits::four  ? 128
                        : bits == top_head_bits::six ? i6_block
                                                     : 64;
  return (w.k + unit - 1) / unit * unit;
}
uint64_t stride_of(const sdk::weight& w, top_head_bits bits) {
  const uint64_t k = padded(w, bits);
  return bits == top_head_bits::four  ? k / 2
         : bits == top_head_bits::six ? k / i6_block * i6_block_bytes
                                      : k;
}
uint64_t multiplier_bytes(top_head_bits bits) {
  return bits == top_head_bits::six ? i6_groups : 0;
}

void write_i8(const int8_t* q, uint64_t stride, uint8_t* out) {
  for (uint64_t i = 0; i < stride; ++i)
    out[i] = static_cast<uint8_t>(static_cast<uint8_t>(q[i]) ^ 0x80u);
}

void write_i4(const int8_t* q, uint64_t stride, uint8_t* out) {
  for (uint64_t i = 0; i < stride; ++i) {
    const int8_t* near = q + i / 64 * 128 + i % 64;
    out[i] = static_cast<uint8_t>((near[0] + 8) | (near[64] + 8) << 4);
  }
}

// Packs a row of k elements; its blocks are `step` bytes apart.
void write_i6(const int8_t* q, uint64_t k, uint64_t step, uint8_t* out) {
  constexpr uint64_t part = 64;
  uint8_t codes[i6_block];
  for (uint64_t at = 0; at < k; at += i6_block, out += step) {
    for (uint64_t i = 0; i < i6_block; ++i) codes[i] = static_cast<uint8_t>(q[at + i] + 32);
    for (uint64_t p = 0; p < 3; ++p)
      for (uint64_t i = 0; i < part; ++i) {
        const auto bits = static_cast<uint8_t>(codes[3 * part + i] >> (2 * p));
        out[part * p + i] = static_cast<uint8_t>(codes[part * p + i] | bits << 6);
      }
  }
}

constexpr uint64_t most_rows = 256;  // of a tile, whose values take 1 KiB of the stack
constexpr uint64_t most_sums = uint64_t{64} * top_head::max_outputs;  // 16 KB on the stack

// Rows of a tile. All outputs read them in turn, so they stay in the second-level cache.
uint64_t tile_for(uint64_t outputs, uint64_t stride) {
  if (outputs == 1) return most_rows;
  constexpr uint64_t bytes = 131072;  // 128 KiB, a part of that cache
  constexpr uint64_t unit = 8;        // rows; tiles have whole units
  const uint64_t most = std::min(most_rows, most_sums / outputs / unit * unit);
  return std::clamp(bytes / stride / unit * unit, unit, most);
}

// Keeps the `top` largest candidates, as a heap with the least one in front.
template <class Candidate>
void keep(Candidate* largest, uint32_t top, const Candidate& one) {
  const auto above = [](const Candidate& a, const Candidate& b) { return a.value > b.value; };
  std::pop_heap(largest, largest + top, above);
  largest[top - 1] = one;
  std::push_heap(largest, largest + top, above);
}

// Recomputed rows lie far apart, so each is prefetched while another is computed.
void ask_for_row(const sdk::weight& w, uint64_t row) {
  for (uint64_t at = 0; at < w.row_bytes; at += 64) __builtin_prefetch(w.row(row) + at, 0, 2);
}

// Workers append concurrently. An output row with more logits than there is room for is not listed.
void list(bitnet_largest& row, int32_t id, float logit) {
  const uint32_t at = std::atomic_ref(row.count).fetch_add(1, std::memory_order_relaxed);
  if (at >= BITNET_MOST_LARGEST) return;
  row.ids[at] = id;
  row.logits[at] = logit;
}

}  // namespace

bool top_head::fits(const sdk::weight& w) {
  // Q8_0 is as small as the copy and as fast; decoding smaller formats takes longer than reading
  // the copy.
  const bool gains = w.format != BITNET_FORMAT_Q8_0 && w.format != BITNET_FORMAT_TERNARY2;
  return gains && w.k <= max_i8_width && w.m >= 1024;  // smaller heads stay in the caches
}

uint64_t top_head::packed_bytes(const sdk::weight& w, top_head_bits bits) {
  return fits(w) ? (stride_of(w, bits) + multiplier_bytes(bits) + 3 * sizeof(float)) * w.m : 0;
}

uint64_t top_head::row_bytes(const sdk::weight& w, top_head_bits bits) {
  return stride_of(w, bits);
}

top_head::copied_rows top_head::rows_of(const sdk::weight& w, top_head_bits bits) {
  const uint8_t* data = w.packed->data.load(std::memory_order_acquire);
  const uint64_t stride = stride_of(w, bits);
  const uint8_t* multipliers = data + stride * w.m;
  const auto* scales = reinterpret_cast<const float*>(multipliers + multiplier_bytes(bits) * w.m);
  const uint8_t* copied = w.packed->copy ? w.packed->copy->data() : nullptr;
  return {copied ? copied : data, stride, multipliers, scales, scales + w.m, scales + 2 * w.m};
}

void top_head::pack(const sdk::weight& w, top_head_bits bits, const isa_form& isa, uint64_t first,
                    uint64_t last, uint8_t* out) {
  const uint64_t stride = stride_of(w, bits), k = padded(w, bits);
  uint8_t* multipliers = out + stride * w.m;
  auto* scales = reinterpret_cast<float*>(multipliers + multiplier_bytes(bits) * w.m);
  float row[max_i8_width] = {};
  int8_t q[max_i8_width] = {};
  for (uint64_t r = first; r < last; ++r) {
    decode_row(isa, w, r, row);
    uint8_t* codes = out + r * stride;
    row_code c;
    if (bits == top_head_bits::eight) {
      c = i8_codes(isa, row, w.k, q);
      write_i8(q, stride, codes);
    } else if (bits == top_head_bits::four) {
      c = i4_codes(row, k, q);
      write_i4(q, stride, codes);
    } else {
      c = i6_codes(row, k, q, multipliers + r * i6_groups);
      const bool paired = (r ^ 1) < w.m;
      if (r % 2 != 0) codes = codes - stride + i6_block_bytes;
      write_i6(q, k, paired ? 2 * i6_block_bytes : i6_block_bytes, codes);
    }
    scales[r] = c.scale;
    scales[w.m + r] = rounded_up * c.error;
    scales[2 * w.m + r] = rounded_up * c.size + scales[w.m + r];
  }
}

top_head::top_head(const sdk::weight& w, top_head_bits bits, uint32_t workers)
    : w_(w),
      bits_(bits),
      certainty_(bits == top_head_bits::four ? 6.0f / std::sqrt(static_cast<float>(w.k))
                                             : rounded_up),
      largest_(new candidate[uint64_t{workers} * max_outputs * max_top]),
      settled_(bits == top_head_bits::six ? new float[uint64_t{max_outputs} * max_top] : nullptr),
      z_(max_outputs * padded(w, bits) * sizeof(int16_t)),
      high_(max_outputs * padded(w, bits)),
      low_(high_.size()) {}

void top_head::take(uint64_t output, const float* x) {
  state& s = states_[output];
  float largest = 0;
  double size = 0;
  for (uint64_t i = 0; i < w_.k; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    size += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  s.usual = size > 1e-60 && size < 1e60;
  if (!s.usual) return;
  s.scale = static_cast<double>(largest) / top_code;
  double error = 0;
  int32_t sums[i6_groups] = {};
  const uint64_t at = output * padded(w_, bits_);
  auto* z_of = reinterpret_cast<int16_t*>(z_.data()) + at;
  auto* high_of = reinterpret_cast<int8_t*>(high_.data()) + at;
  auto* low_of = reinterpret_cast<int8_t*>(low_.data()) + at;
  for (uint64_t i = 0; i < w_.k; ++i) {
    const double exact = static_cast<double>(x[i]);
    const auto z = static_cast<int32_t>(std::lround(exact / s.scale));
    const int32_t high = (z + 64) >> 7;
    z_of[i] = static_cast<int16_t>(z);
    high_of[i] = static_cast<int8_t>(high);
    low_of[i] = static_cast<int8_t>(z - 128 * high);
    sums[i / 4 % i6_groups] += z;
    error += (exact - z * s.scale) * (exact - z * s.scale);
  }
  sums_[output] = 0;
  for (uint64_t g = 0; g < i6_groups; ++g) {
    sums_[output] += sums[g];
    starts_[output * i6_groups + g] = -32 * sums[g];
  }
  const auto k = static_cast<float>(w_.k);
  s.size = rounded_up * static_cast<float>(std::sqrt(size));
  s.error =
      rounded_up * static_cast<float>(std::sqrt(error)) + (k / 16.0f + 16.0f) * 0x1p-24f * s.size;
  // The square of a residual below 2^-75 may underflow, and so may a product below 2^-150.
  s.lost = std::sqrt(k) * 0x1p-74f * s.size + k * 0x1p-149f;
  if (bits_ == top_head_bits::six) set_apart(x, size, s);
}

// An element above twice the square root of 3 times the deviation adds less to a bound by itself:
// |r| is about that root of k, of half steps.
void top_head::set_apart(const float* x, double squares, state& s) const {
  double apart = 0;
  for (int pass = 0; pass < 4; ++pass) {
    const double limit = std::sqrt(12 * squares / static_cast<double>(w_.k));
    double rest = 0;
    apart = 0;
    for (uint64_t i = 0; i < w_.k; ++i) {
      const double size = std::fabs(static_cast<double>(x[i]));
      if (size > limit)
        apart += size;
      else
        rest += size * size;
    }
    const bool same = rest == squares;
    squares = rest;
    if (same) break;
  }
  s.size = rounded_up * static_cast<float>(std::sqrt(squares)) + 1e-6f * s.size;  // stays above 0
  s.apart = rounded_up * 127.5f * static_cast<float>(apart);
}

// Multiplies rows [first, first + n) by all outputs, into sums (outputs, tile).
void top_head::multiply(const isa_form& isa, const copied_rows& rows, uint64_t first, uint64_t n,
                        uint64_t outputs, uint64_t tile, int64_t* sums) const {
  const uint64_t k = padded(w_, bits_), ahead = current_tuning().ahead;
  const uint8_t* codes = rows.codes + first * rows.stride;
  if (bits_ == top_head_bits::six) {
    isa.linear_i6({codes, rows.multipliers + first * i6_groups, high(), low(), k, starts_, sums,
                   tile, k, n, outputs, ahead});
    return;
  }
  const auto& kernel = bits_ == top_head_bits::four ? isa.linear_i4 : isa.linear_i8;
  kernel({codes, rows.stride, z(), high(), low(), k, sums_, sums, tile, k, n, outputs, ahead});
}

void top_head::approximate(const isa_form& isa, uint32_t worker, uint64_t outputs, uint32_t top,
                           uint64_t first, uint64_t last, float* y, bool streams) {
  if (outputs == 0) return;  // a step of a prompt, except its last
  const copied_rows rows = rows_of(w_, bits_);
  const uint64_t tile = tile_for(outputs, rows.stride);
  int64_t sums[most_sums];
  for (uint64_t o = 0; o < outputs; ++o)
    std::fill_n(largest(worker, o), top, candidate{-infinity, 0});
  sdk::row_copy* const copy = streams ? w_.packed->copy.get() : nullptr;
  for (uint64_t r = first; r < last; r += tile) {
    const uint64_t n = std::min(tile, last - r);
    if (copy && !copy->data()) copy->add(rows.codes, r, r + n);
    // The sums of an output that is not usual are stale, and are not used.
    multiply(isa, rows, r, n, outputs, tile, sums);
    for (uint64_t o = 0; o < outputs; ++o) {
      const state& s = states_[o];
      if (!s.usual) continue;
      float value[most_rows];
      float* out = y + o * w_.m + r;
      for (uint64_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(sums[o * tile + i]) * s.scale *
                                    static_cast<double>(rows.scales[r + i]));
        value[i] = settles() ? out[i] : out[i] - bound(rows, s, r + i);
      }
      candidate* heap = largest(worker, o);
      for (uint64_t i = 0; i < n; ++i)
        if (value[i] > heap[0].value)
          keep(heap, top, candidate{value[i], static_cast<uint32_t>(r + i)});
    }
  }
}

void top_head::gather(uint32_t workers, uint64_t output, uint32_t top, candidate* all) const {
  std::fill_n(all, top, candidate{-infinity, 0});
  for (uint32_t w = 0; w < workers; ++w) {
    const candidate* theirs = largest(w, output);
    for (uint32_t i = 0; i < top; ++i)
      if (theirs[i].value > all[0].value) keep(all, top, theirs[i]);
  }
}

void top_head::settle(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top,
                      const float* x, uint64_t first, uint64_t last, float* y, void* room) {
  if (!settles()) return;
  for (uint64_t o = 0; o < outputs; ++o) {
    if (!states_[o].usual) continue;
    // Every worker gets the same candidates, and computes those among its rows.
    candidate* const all = candidates_in(room);
    gather(workers, o, top, all);
    float *out = y + o * w_.m, *settled = settled_.get() + o * max_top;
    for (uint32_t i = 0; i < top; ++i) {
      const uint64_t r = all[i].row;
      if (r < first || r >= last) continue;
      settled[i] = -infinity;  // if rows are fewer than requested, or the logit is NaN
      if (all[i].value == -infinity) continue;
      linear_dense(isa, w_, x + o * w_.k, {.tokens = 1, .first = r, .last = r + 1, .y = out}, room);
      if (out[r] > settled[i]) settled[i] = out[r];
    }
  }
}

float top_head::least(uint32_t workers, uint64_t output, uint32_t top, void* room) const {
  if (settles()) {
    const float* settled = settled_.get() + output * max_top;
    return *std::min_element(settled, settled + top);
  }
  candidate* const all = candidates_in(room);
  gather(workers, output, top, all);
  return all[0].value;
}

uint64_t top_head::refine(const isa_form& isa, uint32_t workers, uint64_t outputs, uint32_t top,
                          const float* x, uint64_t first, uint64_t last, float* y, void* room,
                          bitnet_largest* largest) const {
  const copied_rows rows = rows_of(w_, bits_);
  uint64_t exact = 0;
  for (uint64_t o = 0; o < outputs; ++o) {
    const state& s = states_[o];
    const float below = s.usual ? least(workers, o, top, room) : -infinity;
    float* out = y + o * w_.m;
    const auto compute = [&](uint64_t r) {
      linear_dense(isa, w_, x + o * w_.k, {.tokens = 1, .first = r, .last = r + 1, .y = out}, room);
      if (largest) list(largest[o], static_cast<int32_t>(r), out[r]);
    };
    uint64_t asked = last;  // the row to compute after the next one is prefetched
    for (uint64_t r = first; r < last; ++r) {
      if (s.usual && out[r] + bound(rows, s, r) < below) {
        out[r] = -infinity;
        continue;
      }
      ask_for_row(w_, r);
      if (asked != last) compute(asked);
      asked = r;
      ++exact;
    }
    if (asked != last) compute(asked);
  }
  return exact;
}

}  // namespace bitnet::cpu
