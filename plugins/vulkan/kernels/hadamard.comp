#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint TILE = 512;
WORDS_IN(1, x);
WORDS_IN(2, weight);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k, from, to, before, after;
  float scale;
};
shared float tile[TILE];

void main() {
  // A tile is runs of neighbours, `from` elements of the row apart; a single run if from is 1.
  uint run = from == 1 ? TILE : TILE / (to / from);
  uint nearest = from == 1 ? 1 : run, apart = from == 1 ? TILE : from;
  uint side_by_side = apart / run, units = (k + TILE - 1) / TILE;
  uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
  for (uint r = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; r < header[rows] * units;
       r += groups) {
    uint u = r % units, row_at = r / units * k;
    uint begin = u / side_by_side * (side_by_side * TILE) + u % side_by_side * run;
    barrier();  // the previous tile is written
    for (uint i = 0; i < TILE / run; ++i) {
      for (uint j = thread(); j < run; j += threads()) {
        uint at = begin + i * apart + j;
        precise float value = at < k ? f32(x[row_at + at]) : 0.0;
        if (before != 0 && at < k) value = value * f32(weight[at]);
        tile[i * run + j] = value;
      }
    }
    for (uint d = nearest; d < nearest * (to / from); d *= 2) {
      barrier();
      for (uint pair = thread(); pair < TILE / 2; pair += threads()) {
        uint i = 2 * pair - (pair & (d - 1));
        precise float sum = tile[i] + tile[i + d];
        precise float difference = tile[i] - tile[i + d];
        tile[i] = sum;
        tile[i + d] = difference;
      }
    }
    barrier();
    for (uint i = 0; i < TILE / run; ++i) {
      for (uint j = thread(); j < run; j += threads()) {
        uint at = begin + i * apart + j;
        if (at >= k) continue;
        precise float value = tile[i * run + j] * scale;
        if (after != 0) value = value * f32(weight[at]);
        y[row_at + at] = bits(value);
      }
    }
  }
}
