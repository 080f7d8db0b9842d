// turns: (rows, pairs, 2), cosine and sine.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, heads, head_dim, pairs, neox;
} params;

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, turns), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, turns);
  OPEN(float, y);
  const uint copied = p.head_dim - 2 * p.pairs, units = p.pairs + copied;  // of a head
  EACH_Y(t, header[p.rows]) {
    const ulong row = (ulong)t * p.heads * p.head_dim;
    EACH_X(unit, p.heads * units) {
      const ulong head = row + unit / units * p.head_dim;
      const uint i = unit % units;
      if (i >= p.pairs) {
        y[head + p.pairs + i] = x[head + p.pairs + i];
        continue;
      }
      const ulong first = head + (p.neox ? i : 2 * i);
      const ulong second = first + (p.neox ? p.pairs : 1);
      const float2 turn = vload2((ulong)t * p.pairs + i, turns);
      const float a = x[first], b = x[second];
      y[first] = a * turn.x - b * turn.y;
      y[second] = a * turn.y + b * turn.x;
    }
  }
}
