#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, heads;
} params;

KERNEL(BIND(const uint, header), BIND(const float, a), BIND(const float, b),
       BIND(const float, weight), BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const float, a);
  OPEN(const float, b);
  OPEN(const float, weight);
  OPEN(float, y);
  EACH_Y(t, header[p.rows]) {
    const ulong row = (ulong)t * p.heads;
    EACH_X(h, p.heads) {
      const float z = a[row + h] + weight[p.heads + h];
      const float softplus = fmax(z, 0.0f) + log1p(exp(-fabs(z)));
      y[2 * row + h] = exp(weight[h] * softplus);
      y[2 * row + p.heads + h] = activation(OP_SIGMOID, b[row + h]);
    }
  }
}
