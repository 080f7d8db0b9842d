// Kernels of layers that keep a state. They take tokens [first, last) of the step by runs, which
// are what stands together of one sequence; positions ascend, so that a run whose state counts as
// zeros is one that begins at 0.

#include "group.cuh"

using namespace bitnet::cuda;
namespace gpu = bitnet::gpu;

namespace {

// Calls f(begin, after) for every run that is this group's: those of one y take every so many-th.
template <class F>
__device__ void each_run(const uint32_t* sequences, uint32_t first, uint32_t end, F f) {
  uint32_t nth = 0;
  for (uint32_t begin = first; begin < end; ++nth) {
    uint32_t after = begin + 1;
    while (after < end && sequences[after] == sequences[begin]) ++after;
    if (nth % gridDim.y == blockIdx.y) f(begin, after);
    begin = after;
  }
}

}  // namespace

// Constant 1: rows that a sum is over. A thread has its columns for itself, in the state, too.
BITNET_KERNEL(short_conv) {
  const auto p = params_of<gpu::short_conv_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  const auto* positions = memory_of<const uint32_t>(l, 3);
  const auto* sequences = memory_of<const uint32_t>(l, 4);
  const auto* states = memory_of<const uint32_t>(l, 5);
  auto* state = memory_of<float>(l, 6);
  auto* y = memory_of<float>(l, 7);
  const uint32_t n = l.constants[1], past = n - 1;
  const uint32_t end = smaller(rows_of(l), p.last);
  each_run(sequences, p.first, end, [&](uint32_t begin, uint32_t after) {
    const bool fresh = positions[begin] == 0;
    float* kept = state + uint64_t{states[sequences[begin]]} * p.state_words + p.element;
    each_x(p.k, [&](uint32_t c) {
      // Row i of what the run sees: the rows kept, then its own.
      const auto seen = [&](uint32_t i) {
        if (i >= past) return x[uint64_t{begin + i - past} * p.k + c];
        return fresh ? 0.0f : kept[uint64_t{i} * p.k + c];
      };
      const uint32_t tokens = after - begin;
      for (uint32_t t = 0; t < tokens; ++t) {
        float sum = 0;
        for (uint32_t i = 0; i < n; ++i) sum += weight[uint64_t{c} * n + i] * seen(t + i);
        y[uint64_t{begin + t} * p.k + c] = sum;
      }
      // Ascending: a row is read before it is written.
      for (uint32_t i = 0; i < past; ++i) kept[uint64_t{i} * p.k + c] = seen(tokens + i);
    });
  });
}

BITNET_KERNEL(delta_gates) {
  const auto p = params_of<gpu::delta_gates_params>(l);
  const auto* a = memory_of<const float>(l, 1);
  const auto* b = memory_of<const float>(l, 2);
  const auto* weight = memory_of<const float>(l, 3);
  auto* y = memory_of<float>(l, 4);
  each_y(rows_of(l), [&](uint32_t t) {
    const uint64_t row = uint64_t{t} * p.heads;
    each_x(p.heads, [&](uint32_t h) {
      const float z = a[row + h] + weight[p.heads + h];
      const float softplus = fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z)));
      y[2 * row + h] = expf(weight[h] * softplus);
      y[2 * row + p.heads + h] = activation(BITNET_OP_SIGMOID, b[row + h]);
    });
  });
}

namespace {

// One token of column j of a head's state, which begins at `held`.
__device__ void delta_column(float* held, uint32_t rows, uint32_t d_v, uint32_t j, bool nothing,
                             float decay, float beta, float v, const float* keys,
                             const float* queries, float& out) {
  float sum = 0, result = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    float& s = held[uint64_t{i} * d_v + j];
    if (nothing) s = 0;
    sum += keys[i] * (s * decay);
  }
  const float u = beta * (v - sum);
  for (uint32_t i = 0; i < rows; ++i) {
    float& s = held[uint64_t{i} * d_v + j];
    const float now = s * decay + keys[i] * u;
    s = now;
    result += queries[i] * now;
  }
  out = result;
}

}  // namespace

// Constant 1: rows of the state of a head.
BITNET_KERNEL(delta_rule) {
  const auto p = params_of<gpu::delta_rule_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* gates = memory_of<const float>(l, 2);
  const auto* positions = memory_of<const uint32_t>(l, 3);
  const auto* sequences = memory_of<const uint32_t>(l, 4);
  const auto* states = memory_of<const uint32_t>(l, 5);
  auto* state = memory_of<float>(l, 6);
  auto* y = memory_of<float>(l, 7);
  const uint32_t d_k = l.constants[1];
  auto* queries = static_cast<float*>(shared_memory());  // of the token, normalised
  float* keys = queries + d_k;
  const uint64_t width = 2 * uint64_t{p.n_k} * d_k + uint64_t{p.n_v} * p.d_v;
  each_run(sequences, p.first, smaller(rows_of(l), p.last), [&](uint32_t begin, uint32_t after) {
    float* kept = state + uint64_t{states[sequences[begin]]} * p.state_words + p.element;
    each_group(uint64_t{p.n_v} * p.tiles, [&](uint32_t unit) {
      const uint32_t head = unit / p.tiles, tile = unit % p.tiles;
      const uint32_t key_head = p.turns ? head % p.n_k : head / (p.n_v / p.n_k);
      for (uint32_t t = begin; t < after; ++t) {
        const float* q = x + t * width + uint64_t{key_head} * d_k;
        const float* k = q + uint64_t{p.n_k} * d_k;
        const float* v = x + t * width + 2 * uint64_t{p.n_k} * d_k + uint64_t{head} * p.d_v;
        float* out = y + (uint64_t{t} * p.n_v + head) * p.d_v;
        const float of_q = inverse_length(q, d_k, p.eps);
        const float of_k = inverse_length(k, d_k, p.eps);
        // The sums met, so that the token before is done with.
        for (uint32_t i = threadIdx.x; i < d_k; i += threads) {
          queries[i] = q[i] * of_q * p.scale;
          keys[i] = k[i] * of_k;
        }
        __syncthreads();
        const float* gate = gates + 2 * uint64_t{t} * p.n_v + head;
        const bool nothing = positions[begin] == 0 && t == begin;
        for (uint32_t j = tile * threads + threadIdx.x; j < p.d_v; j += p.tiles * threads)
          delta_column(kept + uint64_t{head} * d_k * p.d_v, d_k, p.d_v, j, nothing, gate[0],
                       gate[p.n_v], v[j], keys, queries, out[j]);
      }
    });
  });
}
