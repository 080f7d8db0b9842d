#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
  float eps;
  uint heads;
} params;

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, weight), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, weight);
  OPEN(float, y);
  __local EXACT_SUM shared[T];
  EACH_ROW(r, header[p.rows] * p.heads) {
    __global const float *in = x + (ulong)r * p.k;
    const float factor = norm_factor(in, p.k, p.eps, shared);
    for (uint i = LOCAL_ID; i < p.k; i += T) y[(ulong)r * p.k + i] = in[i] * factor * weight[i];
  }
}
