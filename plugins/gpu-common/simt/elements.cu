// Kernels that take elements one by one.

#include "common.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

BITNET_KERNEL(elementwise) {
  const auto p = params_of<gpu::elementwise_params>(l);
  const auto* a = memory_of<const float>(l, 1);
  const auto* b = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  const uint32_t op = l.constants[1];
  each_y(rows_of(l), [&](uint32_t r) {
    const uint64_t row = uint64_t{r} * p.k;
    each_x(p.k, [&](uint32_t i) {
      const float x = a[row + i];
      y[row + i] = op == BITNET_OP_ADD     ? x + b[row + i]
                   : op == BITNET_OP_MUL   ? x * b[row + i]
                   : op == BITNET_OP_SCALE ? x * p.factor
                                           : activation(op, x);
    });
  });
}

BITNET_KERNEL(gather_rows) {
  const auto p = params_of<gpu::gather_rows_params>(l);
  const auto* output_rows = memory_of<const uint32_t>(l, 1);
  const auto* x = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  each_y(rows_of(l), [&](uint32_t o) {
    const float* from = x + uint64_t{output_rows[o]} * p.k;
    each_x(p.k, [&](uint32_t i) { y[uint64_t{o} * p.k + i] = from[i]; });
  });
}

BITNET_KERNEL(columns) {
  const auto p = params_of<gpu::columns_params>(l);
  const auto* x = memory_of<const uint32_t>(l, 1);
  auto* y = memory_of<uint32_t>(l, 2);
  each_y(rows_of(l), [&](uint32_t r) {
    const uint32_t* from = x + uint64_t{r} * p.k + p.first;
    each_x(p.m, [&](uint32_t i) {
      const uint32_t n = i / p.part;
      y[uint64_t{r} * p.m + i] =
          from[n / p.inner * p.outer_stride + n % p.inner * p.inner_stride + i % p.part];
    });
  });
}

// rotations: (rows, pairs, 2), cosine and sine.
BITNET_KERNEL(rope) {
  const auto p = params_of<gpu::rope_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* rotations = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  const uint32_t copied = p.head_dim - 2 * p.pairs, units = p.pairs + copied;  // of a head
  each_y(rows_of(l), [&](uint32_t t) {
    const uint64_t row = uint64_t{t} * p.heads * p.head_dim;
    each_x(uint64_t{p.heads} * units, [&](uint32_t unit) {
      const uint64_t head = row + unit / units * p.head_dim;
      const uint32_t i = unit % units;
      if (i >= p.pairs) {
        y[head + p.pairs + i] = x[head + p.pairs + i];
        return;
      }
      const uint64_t first = head + (p.neox ? i : 2 * i);
      const uint64_t second = first + (p.neox ? p.pairs : 1);
      const float* cosine_sine = rotations + 2 * (uint64_t{t} * p.pairs + i);
      const float a = x[first], b = x[second];
      y[first] = a * cosine_sine[0] - b * cosine_sine[1];
      y[second] = a * cosine_sine[1] + b * cosine_sine[0];
    });
  });
}
