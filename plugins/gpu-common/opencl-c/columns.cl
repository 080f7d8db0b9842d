#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k, m, part, first, inner, inner_stride, outer_stride;
} params;

KERNEL(BIND(const uint, header), BIND(const uint, x), BIND(uint, y), const params p) {
  OPEN(const uint, header);
  OPEN(const uint, x);
  OPEN(uint, y);
  EACH_Y(r, header[p.rows]) {
    __global const uint *from = x + (ulong)r * p.k + p.first;
    EACH_X(i, p.m) {
      const uint n = i / p.part;
      y[(ulong)r * p.m + i] =
          from[n / p.inner * p.outer_stride + n % p.inner * p.inner_stride + i % p.part];
    }
  }
}
