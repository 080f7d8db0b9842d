// The two-stage head: plugins/gpu-common/kernels.hpp has what is computed, and why it is right.

#include "dense.cuh"
#include "head.cuh"

#include "bitnet/abi/program.h"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// A piece of a row of k elements, with zeros past its end.
template <class Row>
__device__ void padded_piece(const uint32_t* row, uint32_t i, uint32_t k, float (&out)[16]) {
  if (16 * i + 16 <= k)
    Row::piece(row, i, out);
  else
    ending<Row>(row, i, 16 * i < k ? k - 16 * i : 0, out);
}

// A warp takes a row of the matrix.
template <class Row>
__device__ void copy_rows(const launch& l) {
  const auto p = params_of<gpu::head_copy_params>(l);
  const auto* matrix = memory_of<const uint32_t>(l, 1);
  auto* codes = memory_of<uint32_t>(l, 2);
  auto* norms = memory_of<float>(l, 3);
  const auto words = static_cast<uint32_t>(gpu::i8_row_words(p.k));
  each_group((uint64_t{p.m} + warps - 1) / warps, [&](uint32_t group) {
    const uint32_t r = group * warps + warp_of_group();
    if (r >= p.m) return;  // all of a warp
    const uint32_t* row = matrix + uint64_t{r} * p.row_words;
    float w[16], largest = 0;
    for (uint32_t i = lane(); 4 * i < words; i += warp) {
      padded_piece<Row>(row, i, p.k, w);
      for (uint32_t j = 0; j < 16; ++j) largest = larger(largest, fabsf(w[j]));
    }
    for (uint32_t d = warp / 2; d != 0; d /= 2) largest = larger(largest, shuffle_xor(largest, d));
    const bool coded = largest > 1e-30f && largest < 1e30f;  // else all of the row is r
    const float d = coded ? largest / 127.0f : 0.0f, inverse = coded ? 127.0f / largest : 0.0f;
    double error = 0, size = 0;
    for (uint32_t i = lane(); 4 * i < words; i += warp) {
      padded_piece<Row>(row, i, p.k, w);
      for (uint32_t j = 0; j < 4; ++j) {
        int q[4];
        for (uint32_t e = 0; e < 4; ++e) {
          const float weight = w[4 * j + e];
          q[e] = coded ? within(rintf(weight * inverse), 127.0f) : 0;
          const double near = static_cast<double>(d) * q[e], off = weight - near;
          error += off * off;
          size += near * near;
        }
        codes[uint64_t{r} * words + 4 * i + j] = packed4(q[0], q[1], q[2], q[3]);
      }
    }
    const float error_norm = norm_of(sum_in_warp(error)), size_norm = norm_of(sum_in_warp(size));
    if (lane() != 0) return;
    norms[r] = d;
    norms[uint64_t{p.m} + r] = error_norm;
    norms[2 * uint64_t{p.m} + r] = rounded_up * (size_norm + error_norm);
  });
}

// Floats in the order of their size as whole numbers.
__device__ uint32_t head_order(float x) {
  const auto bits = bits_of<uint32_t>(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float of_order(uint32_t order) {
  return bits_of<float>(order >> 31 ? order ^ 0x80000000u : ~order);
}

constexpr uint32_t none = 0xffffffffu;

// Each lane has `count` things, or `Each` adjacent lanes have them together. Returns the first lane
// of those that have the n-th thing, counted from the last lane down, and the number of things in
// higher lanes; none if all lanes together have fewer than n.
struct found_lane {
  uint32_t lane, above;
};
template <uint32_t Each>
__device__ found_lane lane_of(uint32_t count, uint32_t n) {
  uint32_t from_here = count;  // things of this lane and of higher ones
  for (uint32_t d = Each; d < warp; d *= 2) {
    const uint32_t other = shuffle(from_here, (lane() + d) % warp);
    if (lane() + d < warp) from_here += other;
  }
  const uint32_t above = from_here - count;
  const lane_set holders = lanes_with(above < n && n <= from_here);
  if (holders == 0) return {none, 0};
  uint32_t first = 0;
  while ((holders >> first & 1u) == 0) first += Each;
  return {first, shuffle(above, first)};
}

// Returns the bin of the n-th largest counted value, and the number of values in higher bins; none
// if there are fewer than n. Each warp computes it in two steps: it finds a run, of four bins for
// each lane, and then the bin in the run.
struct found_bin {
  uint32_t bin, above;
};
__device__ found_bin bin_of(const uint32_t* counts, uint32_t n) {
  constexpr uint32_t runs = gpu::head_bins / (4 * warp), lanes_each = warp / runs;
  const auto four = [&](uint32_t run, uint32_t i) { return load4(counts + 4 * (run * warp + i)); };
  const auto sum = [](const uint4& bins) { return bins.x + bins.y + bins.z + bins.w; };
  constexpr uint32_t at_once = 4;  // loads: more would take registers of other groups
  static_assert(runs % at_once == 0);
  uint32_t count = 0;
  BITNET_NO_UNROLL
  for (uint32_t turn = 0; turn < runs; turn += at_once)
    for (uint32_t i = 0; i < at_once; ++i)
      count += sum(four(lane() / lanes_each, (turn + i) * lanes_each + lane() % lanes_each));
  for (uint32_t d = 1; d < lanes_each; d *= 2) count += shuffle_xor(count, d);
  const found_lane of_run = lane_of<lanes_each>(count, n);
  if (of_run.lane == none) return {none, 0};
  const uint32_t run = of_run.lane / lanes_each;
  const found_lane of_bins = lane_of<1>(sum(four(run, lane())), n - of_run.above);
  const uint4 bins = four(run, of_bins.lane);
  const uint32_t from_here[] = {bins.w, bins.w + bins.z, bins.w + bins.z + bins.y};
  const uint32_t above = of_run.above + of_bins.above;
  found_bin out{4 * (run * warp + of_bins.lane) + 3, above};
  for (const uint32_t passed : from_here)
    if (above + passed < n) out = {out.bin - 1, above + passed};
  return out;
}

__device__ uint32_t top_of(const launch& l) {
  return memory_of<const uint32_t>(l, 0)[4];
}

// Returns a threshold: no value below it is among the n largest. NaN if none is known, because no
// value compares below NaN.
__device__ float threshold_of(const uint32_t* counts, uint32_t n) {
  const found_bin first = bin_of(counts, n);
  if (first.bin == none) return of_order(0);
  const found_bin second = bin_of(counts + gpu::head_bins, n - first.above);
  return of_order(second.bin == none ? 0 : first.bin << 22 | second.bin << 12);
}

}  // namespace

// One group computes an output row.
BITNET_KERNEL(head_state) {
  const auto p = params_of<gpu::head_state_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* states = memory_of<uint32_t>(l, 2);
  auto* counts = memory_of<uint32_t>(l, 3);
  const auto words = static_cast<uint32_t>(gpu::i8_row_words(p.k));
  each_row(rows_of(l), [&](uint64_t r) {
    const float* in = x + r * p.k;
    uint32_t* state = states + r * gpu::head_state_words(p.k);
    for (uint32_t i = threadIdx.x; i < gpu::head_count_words; i += threads)
      counts[r * gpu::head_count_words + i] = 0;
    float v[4], largest = 0;
    double sizes[4] = {}, errors[4] = {};  // independent, so that their additions overlap
    for (uint32_t w = threadIdx.x; 4 * w < p.k; w += threads) {
      four_of(in, w, p.k, v);
      for (uint32_t e = 0; e < 4; ++e) {
        largest = larger(largest, fabsf(v[e]));
        sizes[e] += double_square(v[e]);
      }
    }
    const float scale = state_scale(group_max(largest));
    const double size = group_sum<threads>((sizes[0] + sizes[1]) + (sizes[2] + sizes[3]));
    const uint32_t known = is_lost(size) ? 0 : p.k;  // elements
    for (uint32_t w = threadIdx.x; w < words; w += threads) {
      state_code code[4];
      four_of(in, w, known, v);
      for (uint32_t e = 0; e < 4; ++e) {
        code[e] = state_code_of(v[e], scale);
        errors[e] += code[e].error;
      }
      state[w] = packed4(code[0].high, code[1].high, code[2].high, code[3].high);
      state[words + w] = packed4(code[0].low, code[1].low, code[2].low, code[3].low);
    }
    const double error = group_sum<threads>((errors[0] + errors[1]) + (errors[2] + errors[3]));
    if (threadIdx.x == 0) put_state_end(state + 2 * words, p.k, scale, size, error);
  });
}

namespace {

// Bounds of a logit.
struct interval {
  float lower, upper;
};
__device__ interval interval_of(const uint32_t* state, uint32_t words, const float* norms,
                                uint32_t k, uint32_t m, uint32_t r, int64_t product) {
  const uint32_t* about = state + 2 * words;
  const double scale = bits_of<float>(about[0]), x = bits_of<float>(about[1]);
  const double error = bits_of<float>(about[2]);
  const double d = norms[r], w_error = norms[uint64_t{m} + r], w = norms[2 * uint64_t{m} + r];
  const double near = static_cast<double>(product) * scale * d;
  const double off = 1.001 * (w_error * x + w * error) + k * least;
  // Both are so much smaller than the largest f32 that no sum of the full head overflows.
  if (about[3] == 0 || !(w * x < 1e38) || !(off < 1e38))
    return {bits_of<float>(0xff800000u), bits_of<float>(0x7f800000u)};
  return {static_cast<float>(near - off), static_cast<float>(near + off)};
}

// Products of sixteen bytes, added to c.
__device__ int dot16(const uint4& a, const uint4& b, int c) {
  c = dot4(static_cast<int>(a.x), static_cast<int>(b.x), c);
  c = dot4(static_cast<int>(a.y), static_cast<int>(b.y), c);
  c = dot4(static_cast<int>(a.z), static_cast<int>(b.z), c);
  return dot4(static_cast<int>(a.w), static_cast<int>(b.w), c);
}

// A warp takes four rows of the copy and `Outputs` rows of the step together.
template <uint32_t Outputs>
__device__ void approximate(const launch& l) {
  const auto p = params_of<gpu::head_approximate_params>(l);
  const auto* codes = memory_of<const uint4>(l, 1);
  const auto* norms = memory_of<const float>(l, 2);
  const auto* states = memory_of<const uint32_t>(l, 3);
  auto* counts = memory_of<uint32_t>(l, 4);
  auto* bounds = memory_of<float>(l, 5);
  auto* bins = static_cast<uint32_t*>(shared_memory());  // (Outputs, head_bins)
  constexpr uint32_t rows = 4, values = rows * Outputs, lanes_each = warp / values;
  const auto words = static_cast<uint32_t>(gpu::i8_row_words(p.k));
  const uint32_t pieces = words / 4, outputs = rows_of(l);
  const uint64_t state_words = gpu::head_state_words(p.k);
  for (uint64_t first = uint64_t{blockIdx.y} * Outputs; first < outputs;
       first += uint64_t{gridDim.y} * Outputs) {
    for (uint32_t i = threadIdx.x; i < Outputs * gpu::head_bins; i += threads) bins[i] = 0;
    __syncthreads();
    each_group((uint64_t{p.m} + warps * rows - 1) / (warps * rows), [&](uint32_t group) {
      const uint32_t r = (group * warps + warp_of_group()) * rows;
      if (r >= p.m) return;  // all of a warp
      int high[values] = {}, low[values] = {};
      for (uint32_t i = lane(); i < pieces; i += warp) {
        uint4 q[rows];
        for (uint32_t j = 0; j < rows; ++j)
          q[j] = codes[uint64_t{smaller(r + j, p.m - 1)} * pieces + i];
        for (uint32_t o = 0; o < Outputs; ++o) {
          const uint64_t t = first + o < outputs ? first + o : outputs - 1;
          const auto* z = reinterpret_cast<const uint4*>(states + t * state_words);
          const uint4 a = z[i], b = z[pieces + i];
          for (uint32_t j = 0; j < rows; ++j) {
            high[Outputs * j + o] = dot16(q[j], a, high[Outputs * j + o]);
            low[Outputs * j + o] = dot16(q[j], b, low[Outputs * j + o]);
          }
        }
      }
      const int64_t product = int64_t{128} * sum_of_lanes(high) + sum_of_lanes(low);
      const uint32_t value = lane() / lanes_each, o = value % Outputs, mine = r + value / Outputs;
      if (lane() % lanes_each != 0 || mine >= p.m || first + o >= outputs) return;
      const uint64_t t = first + o;
      const interval known =
          interval_of(states + t * state_words, words, norms, p.k, p.m, mine, product);
      float* out = bounds + t * 2 * p.m;
      out[mine] = known.lower;
      out[uint64_t{p.m} + mine] = known.upper;
      atomicAdd(bins + o * gpu::head_bins + (head_order(known.lower) >> 22), 1u);
    });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < Outputs * gpu::head_bins; i += threads) {
      const uint64_t t = first + i / gpu::head_bins;
      if (bins[i] != 0 && t < outputs)
        atomicAdd(counts + t * gpu::head_count_words + i % gpu::head_bins, bins[i]);
    }
    __syncthreads();
  }
}

}  // namespace

BITNET_KERNEL_OF(head_approximate_1, 3) {
  approximate<1>(l);
}
BITNET_KERNEL_OF(head_approximate_4, 3) {
  approximate<4>(l);
}

// Counts the lower bounds in the bin of the n-th largest one, by their next bits.
BITNET_KERNEL(head_count) {
  const auto p = params_of<gpu::head_count_params>(l);
  const auto* bounds = memory_of<const float>(l, 1);
  auto* counts = memory_of<uint32_t>(l, 2);
  each_y(rows_of(l), [&](uint32_t t) {
    uint32_t* mine = counts + uint64_t{t} * gpu::head_count_words;
    const found_bin first = bin_of(mine, top_of(l));
    if (first.bin == none) return;
    each_x(p.m, [&](uint32_t r) {
      const uint32_t order = head_order(bounds[uint64_t{t} * 2 * p.m + r]);
      if (order >> 22 == first.bin)
        atomicAdd(mine + gpu::head_bins + (order >> 12 & (gpu::head_bins - 1)), 1u);
    });
  });
}

namespace {

// The list of an output row: its logits so far, and their number.
struct listing {
  uint2* found;
  uint32_t* tally;  // two words: logits found, groups that are done

  __device__ void add(uint32_t row, float logit) const {
    found[atomicAdd(tally, 1u)] = {row, bits_of<uint32_t>(logit)};
    __threadfence();  // the last group reads it
  }
};

// The last group writes the list, when all others are done. If the list is too long, it writes the
// row in its place.
__device__ void write_list(const listing& from, bitnet_largest& to, float* y, uint32_t m) {
  if (turn_of_group(from.tally + 1) + 1 != gridDim.x) return;
  __threadfence();
  const uint32_t n = atomicAdd(from.tally, 0u);
  if (n <= BITNET_MOST_LARGEST) {
    for (uint32_t i = threadIdx.x; i < n; i += threads) {
      to.ids[i] = static_cast<int32_t>(from.found[i].x);
      to.logits[i] = bits_of<float>(from.found[i].y);
    }
    if (threadIdx.x == 0) to.count = n;
    return;
  }
  for (uint32_t r = threadIdx.x; r < m; r += threads) y[r] = bits_of<float>(0xff800000u);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += threads)
    y[from.found[i].x] = bits_of<float>(from.found[i].y);
}

// A group takes 32 rows; its warps divide the logits to compute among them.
template <class Row>
__device__ void exact(const launch& l) {
  const auto p = params_of<gpu::head_exact_params>(l);
  const auto* x = memory_of<const uint32_t>(l, 1);
  const auto* matrix = memory_of<const uint32_t>(l, 2);
  const auto* bounds = memory_of<const float>(l, 3);
  auto* counts = memory_of<uint32_t>(l, 4);
  auto* y = memory_of<float>(l, 5);
  const bool lists = memory_of<const uint32_t>(l, 0)[5] != 0;
  const uint32_t outputs = rows_of(l);
  each_y(outputs, [&](uint32_t t) {
    uint32_t* mine = counts + uint64_t{t} * gpu::head_count_words;
    const float threshold = threshold_of(mine, top_of(l));
    const float* upper = bounds + (uint64_t{t} * 2 + 1) * p.m;
    float* out = y + uint64_t{t} * p.m;
    const listing list{memory_of<uint2>(l, 6) + uint64_t{t} * p.m, mine + 2 * gpu::head_bins};
    each_group((uint64_t{p.m} + warp - 1) / warp, [&](uint32_t group) {
      const uint32_t first = group * warp, r = first + lane();
      const bool below = r < p.m && upper[r] < threshold;
      if (below && !lists && warp_of_group() == 0) out[r] = bits_of<float>(0xff800000u);
      const lane_set left = lanes_with(r < p.m && !below);
      uint32_t turn = 0;
      for (uint32_t i = 0; i < warp; ++i) {
        if ((left >> i & 1u) == 0 || turn++ % warps != warp_of_group()) continue;
        const uint32_t* row = matrix + uint64_t{first + i} * p.row_words;
        const float sum = row_products<Row, 1>(row, x, p.k, t, outputs);
        if (lane() != 0) continue;
        if (lists)
          list.add(first + i, sum);
        else
          out[first + i] = sum;
      }
    });
    if (lists) write_list(list, memory_of<bitnet_largest>(l, 7)[t], out, p.m);
  });
}

}  // namespace

#define BITNET_HEAD(format)            \
  BITNET_KERNEL(head_copy_##format) {  \
    copy_rows<format##_row>(l);        \
  }                                    \
  BITNET_KERNEL(head_exact_##format) { \
    exact<format##_row>(l);            \
  }
BITNET_HEAD(f32)
BITNET_HEAD(f16)
BITNET_HEAD(bf16)
