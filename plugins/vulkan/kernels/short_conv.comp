#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint N = 4;  // rows in a sum
WORDS_IN(1, x);
WORDS_IN(2, weight);
WORDS_IN(3, positions);
WORDS_IN(4, sequences);
WORDS_IN(5, states);
WORDS(6, state);
WORDS(7, y);
layout(push_constant) uniform params {
  uint rows, k, element, state_words, first, last;
};
#include "runs.glsl"

// Each thread has its own columns, also of the state.
void main() {
  uint end = min(header[rows], last);
  EACH_RUN(begin, after, end) {
    bool fresh = positions[begin] == 0;
    uint kept = states[sequences[begin]] * state_words + element;
    for (uint c = gl_GlobalInvocationID.x; c < k; c += gl_NumWorkGroups.x * threads()) {
      uint past[N];  // the last one is the token's row
      float factors[N];
      [[unroll]] for (uint i = 0; i < N; ++i) {
        factors[i] = f32(weight[c * N + i]);
        past[i] = fresh || i == N - 1 ? 0 : state[kept + i * k + c];
      }
      for (uint t = begin; t < after; ++t) {
        past[N - 1] = x[t * k + c];
        precise float sum = 0.0;
        [[unroll]] for (uint i = 0; i < N; ++i) {
          precise float product = factors[i] * f32(past[i]);
          sum = sum + product;
        }
        y[t * k + c] = bits(sum);
        [[unroll]] for (uint i = 0; i + 1 < N; ++i) past[i] = past[i + 1];
      }
      [[unroll]] for (uint i = 0; i + 1 < N; ++i) state[kept + i * k + c] = past[i];
    }
  }
}
