// C1: which op.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k;
  float factor;
} params;

KERNEL(BIND(const uint, header), BIND(const float, a), BIND(const float, b), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, a);
  OPEN(const float, b);
  OPEN(float, y);
  EACH_Y(r, header[p.rows]) {
    const ulong row = (ulong)r * p.k;
    EACH_X(i, p.k) {
#if C1 == OP_ADD
      y[row + i] = a[row + i] + b[row + i];
#elif C1 == OP_MUL
      y[row + i] = a[row + i] * b[row + i];
#elif C1 == OP_SCALE
      y[row + i] = a[row + i] * p.factor;
#else
      y[row + i] = activation(C1, a[row + i]);
#endif
    }
  }
}
