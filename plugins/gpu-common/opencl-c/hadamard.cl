#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, k, from, to, before, after;
  float scale;
} params;

#define TILE C1

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, weight), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, weight);
  OPEN(float, y);
  __local float tile[TILE];
  // A tile is runs of neighbours, `from` elements of the row apart: one where that is 1.
  const uint run = p.from == 1 ? TILE : TILE / (p.to / p.from);
  const uint nearest = p.from == 1 ? 1 : run, apart = p.from == 1 ? TILE : p.from;
  const uint side_by_side = apart / run, units = (p.k + TILE - 1) / TILE;
  EACH_ROW(r, header[p.rows] * units) {
    const uint u = r % units;
    const uint begin = u / side_by_side * (side_by_side * TILE) + u % side_by_side * run;
    __global const float *in = x + (ulong)(r / units) * p.k;
    __global float *out = y + (ulong)(r / units) * p.k;
    MEET;  // the tile before is written
    for (uint i = 0; i < TILE / run; ++i) {
      for (uint j = LOCAL_ID; j < run; j += T) {
        const uint at = begin + i * apart + j;
        const float value = at < p.k ? in[at] : 0.0f;
        tile[i * run + j] = p.before && at < p.k ? value * weight[at] : value;
      }
    }
    for (uint d = nearest; d < nearest * (p.to / p.from); d *= 2) {
      MEET;
      for (uint pair = LOCAL_ID; pair < TILE / 2; pair += T) {
        const uint i = 2 * pair - (pair & (d - 1));
        const float a = tile[i], b = tile[i + d];
        tile[i] = a + b;
        tile[i + d] = a - b;
      }
    }
    MEET;
    for (uint i = 0; i < TILE / run; ++i) {
      for (uint j = LOCAL_ID; j < run; j += T) {
        const uint at = begin + i * apart + j;
        if (at >= p.k) break;
        const float value = tile[i * run + j] * p.scale;
        out[at] = p.after ? value * weight[at] : value;
      }
    }
  }
}
