#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
} params;

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(uint, q), BIND(float, s),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(uint, q);
  OPEN(float, s);
  __local float shared[T];
  EACH_ROW(r, header[p.rows]) {
    __global const float *in = x + (ulong)r * p.k;
    float largest = 0;
    for (uint i = LOCAL_ID; i < p.k; i += T) largest = larger(largest, fabs(in[i]));
#define VALUE(i) in[i]
    QUANTISE_ROW(VALUE, largest, p.k, q + (ulong)r * i8_stride(p.k), s + r, shared)
#undef VALUE
  }
}
