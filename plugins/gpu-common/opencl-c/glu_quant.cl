// The bits of relu2 or silu (C1), mul, rms_norm (if C2), then act_quant.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
  float eps;
} params;

KERNEL(BIND(const uint, header), BIND(const float, gate), BIND(const float, up),
       BIND(const float, weight), BIND(float, scratch), BIND(uint, q), BIND(float, s),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, gate);
  OPEN(const float, up);
  OPEN(const float, weight);
  OPEN(float, scratch);
  OPEN(uint, q);
  OPEN(float, s);
  __local float shared[T];
#if C2
  __local EXACT_SUM sums[T];
#endif
  EACH_ROW(r, header[p.rows]) {
    const ulong at = (ulong)r * p.k;
    __global float *mid = scratch + at;
    for (uint i = LOCAL_ID; i < p.k; i += T) mid[i] = activation(C1, gate[at + i]) * up[at + i];
#if T > 1
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
#if C2
    const float factor = norm_factor(mid, p.k, p.eps, sums);
#define VALUE(i) (mid[i] * factor * weight[i])
#else
#define VALUE(i) mid[i]
#endif
    float largest = 0;
    for (uint i = LOCAL_ID; i < p.k; i += T) largest = larger(largest, fabs(VALUE(i)));
    QUANTISE_ROW(VALUE, largest, p.k, q + (ulong)r * i8_stride(p.k), s + r, shared)
#undef VALUE
  }
}
