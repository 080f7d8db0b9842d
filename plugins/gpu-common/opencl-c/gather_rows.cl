#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
} params;

KERNEL(BIND(const uint, header), BIND(const uint, output_rows), BIND(const float, x),
       BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const uint, output_rows);
  OPEN(const float, x);
  OPEN(float, y);
  EACH_Y(o, header[p.rows]) {
    __global const float *from = x + (ulong)output_rows[o] * p.k;
    EACH_X(i, p.k) y[(ulong)o * p.k + i] = from[i];
  }
}
