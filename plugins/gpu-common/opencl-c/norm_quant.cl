// The bits of rms_norm, then act_quant.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
  float eps;
} params;

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, weight), BIND(uint, q),
       BIND(float, s), const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, weight);
  OPEN(uint, q);
  OPEN(float, s);
  __local EXACT_SUM sums[T];
  __local float shared[T];
  EACH_ROW(r, header[p.rows]) {
    __global const float *in = x + (ulong)r * p.k;
    const float factor = norm_factor(in, p.k, p.eps, sums);
    float largest = 0;
#define VALUE(i) (in[i] * factor * weight[i])
    for (uint i = LOCAL_ID; i < p.k; i += T) largest = larger(largest, fabs(VALUE(i)));
    QUANTISE_ROW(VALUE, largest, p.k, q + (ulong)r * i8_stride(p.k), s + r, shared)
#undef VALUE
  }
}
