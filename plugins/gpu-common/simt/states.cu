// Kernels of layers that keep a state. They take tokens [first, last) of the step by runs: adjacent
// tokens of one sequence. Positions ascend, so exactly the runs that begin at 0 start from zeros.

#include "group.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Calls f(begin, after) for every run of this group. Groups of one y share the runs in turn.
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

// Constant 1: rows of a sum. Each thread has its own columns, also of the state.
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
      // Row i of the run's input: the rows of the state, then its own.
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

// A column of a head's state, whose rows lie `stride` numbers apart, and its update by a token.
// Keys and queries are those of the token, normalised.
class column_in_memory {
 public:
  static constexpr bool of_all_lanes = false;

  __device__ column_in_memory(float* held, uint32_t rows, uint32_t stride)
      : held_(held), rows_(rows), stride_(stride) {}

  __device__ void begin(bool fresh) {
    if (!fresh) return;
    for (uint32_t i = 0; i < rows_; ++i) row(i) = 0;
  }
  __device__ float step(float decay, float beta, float v, const float* keys, const float* queries) {
    float sum = 0, result = 0;
    for (uint32_t i = 0; i < rows_; ++i) sum += keys[i] * (row(i) * decay);
    const float u = beta * (v - sum);
    for (uint32_t i = 0; i < rows_; ++i) {
      const float now = row(i) * decay + keys[i] * u;
      row(i) = now;
      result += queries[i] * now;
    }
    return result;
  }
  __device__ void end() {}

 private:
  __device__ float& row(uint32_t i) { return held_[uint64_t{i} * stride_]; }

  float* held_;
  uint32_t rows_, stride_;
};

__device__ void load_four(const float* from, float (&out)[4]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  out[0] = bits_of<float>(words.x);
  out[1] = bits_of<float>(words.y);
  out[2] = bits_of<float>(words.z);
  out[3] = bits_of<float>(words.w);
}

// The same in registers, from the first token of a run to its last. All lanes of a warp call it:
// lanes past the last column compute it, too, and store nothing.
template <uint32_t rows>
class column_in_registers {
 public:
  static constexpr bool of_all_lanes = true;

  __device__ column_in_registers(float* held, uint32_t, uint32_t stride)
      : held_(held), stride_(stride) {}

  __device__ void begin(bool fresh) {
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows; ++i) s_[i] = fresh ? 0.0f : held_[uint64_t{i} * stride_];
  }
  __device__ float step(float decay, float beta, float v, const float* keys, const float* queries) {
    float sum = 0, result = 0;
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows; i += 4) {
      // Otherwise the compiler would load ahead, into more registers than there are.
      if (i % 16 == 0) meet_lanes();
      float k[4];
      load_four(keys + i, k);
      for (uint32_t e = 0; e < 4; ++e) {
        s_[i + e] *= decay;
        sum += k[e] * s_[i + e];
      }
    }
    const float u = beta * (v - sum);
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows; i += 4) {
      if (i % 16 == 0) meet_lanes();
      float k[4], q[4];
      load_four(keys + i, k);
      load_four(queries + i, q);
      for (uint32_t e = 0; e < 4; ++e) {
        s_[i + e] += k[e] * u;
        result += q[e] * s_[i + e];
      }
    }
    return result;
  }
  __device__ void end() {
    forget(stride_);  // otherwise the addresses would stay in registers, too
    BITNET_UNROLL
    for (uint32_t i = 0; i < rows; ++i) held_[uint64_t{i} * stride_] = s_[i];
  }

 private:
  float* held_;
  uint32_t stride_;
  float s_[rows];
};

// Constant 1: rows of the state of a head.
template <class Column>
__device__ void delta_rule_of(const launch& l) {
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
  // For token t. After the barrier of the sums, no thread reads the previous token any more.
  const auto prepare = [&](uint32_t t, uint32_t key_head) {
    const float* q = x + t * width + uint64_t{key_head} * d_k;
    const float* k = q + uint64_t{p.n_k} * d_k;
    const two_sums lengths = square_sums(q, k, d_k);
    const float of_q = inverse_length(lengths.of[0], p.eps);
    const float of_k = inverse_length(lengths.of[1], p.eps);
    for (uint32_t i = threadIdx.x; i < d_k; i += threads) {
      queries[i] = q[i] * of_q * p.scale;
      keys[i] = k[i] * of_k;
    }
    __syncthreads();
  };
  each_run(sequences, p.first, smaller(rows_of(l), p.last), [&](uint32_t begin, uint32_t after) {
    float* kept = state + uint64_t{states[sequences[begin]]} * p.state_words + p.element;
    each_group(uint64_t{p.n_v} * p.tiles, [&](uint32_t unit) {
      const uint32_t head = unit / p.tiles, at = unit % p.tiles * threads + threadIdx.x;
      const uint32_t key_head = p.turns ? head % p.n_k : head / (p.n_v / p.n_k);
      const uint32_t j = smaller(at, p.d_v - 1);
      const bool has = at < p.d_v, computes = has || Column::of_all_lanes;
      Column column(kept + uint64_t{head} * d_k * p.d_v + j, d_k, p.d_v);
      if (computes) column.begin(positions[begin] == 0);
      for (uint32_t t = begin; t < after; ++t) {
        prepare(t, key_head);
        if (!computes) continue;
        const float* gate = gates + 2 * uint64_t{t} * p.n_v + head;
        const float v = x[t * width + 2 * uint64_t{p.n_k} * d_k + uint64_t{head} * p.d_v + j];
        const float out = column.step(gate[0], gate[p.n_v], v, keys, queries);
        if (has) y[(uint64_t{t} * p.n_v + head) * p.d_v + j] = out;
      }
      if (has) column.end();
    });
  });
}

}  // namespace

BITNET_KERNEL(delta_rule) {
  delta_rule_of<column_in_memory>(l);
}
BITNET_KERNEL_OF(delta_rule_64, 3) {
  delta_rule_of<column_in_registers<64>>(l);
}
#ifndef BITNET_SMALL_STATES  // makers whose threads have no registers for more
BITNET_KERNEL_OF(delta_rule_128, 2) {
  delta_rule_of<column_in_registers<128>>(l);
}
#endif
