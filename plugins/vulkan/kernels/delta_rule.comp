#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint D_K = 128;  // rows of the state of a head
WORDS_IN(1, x);
WORDS_IN(2, gates);
WORDS_IN(3, positions);
WORDS_IN(4, sequences);
WORDS_IN(5, states);
WORDS(6, state);
WORDS(7, y);
layout(push_constant) uniform params {
  uint rows, element, state_words, n_k, n_v, d_v, turns, tiles;
  float scale, eps;
  uint first, last;
};
#include "row_ops.glsl"
#include "runs.glsl"
shared float norm_sums[gl_WorkGroupSize.x], norm_rests[gl_WorkGroupSize.x];
shared float queries[D_K], keys[D_K];  // of the token, normalised
uint row_at;
#define X(i) f32(x[row_at + (i)])
DEFINE_NORM_FACTOR

float inverse_length() {
  precise float under = square_sum(D_K) + eps;
  precise float factor = 1.0 / sqrt(under);
  return factor;
}

uint width() {
  return 2 * n_k * D_K + n_v * d_v;
}

void read_token(uint t, uint head) {
  uint q_at = t * width() + (turns != 0 ? head % n_k : head / (n_v / n_k)) * D_K;
  uint k_at = q_at + n_k * D_K;
  row_at = q_at;
  float of_q = inverse_length();
  row_at = k_at;
  float of_k = inverse_length();
  barrier();  // the previous token is done
  for (uint i = thread(); i < D_K; i += threads()) {
    precise float q = f32(x[q_at + i]) * of_q;
    q = q * scale;
    precise float k = f32(x[k_at + i]) * of_k;
    queries[i] = q;
    keys[i] = k;
  }
  barrier();
}

// Column j of head `head`, from word `at` of the state on; nothing: the state counts as zeros.
void update(uint t, uint head, uint j, uint at, bool nothing) {
  float decay = f32(gates[2 * t * n_v + head]), beta = f32(gates[2 * t * n_v + n_v + head]);
#define DECAYED(i) ((nothing ? 0.0 : f32(state[at + (i) * d_v])) * decay)
#define RECALL(i)                        \
  {                                      \
    precise float s = DECAYED(i);        \
    precise float product = keys[i] * s; \
    sum = sum + product;                 \
  }
#define LEARN(i)                            \
  {                                         \
    precise float s = DECAYED(i);           \
    precise float change = keys[i] * u;     \
    s = s + change;                         \
    state[at + (i) * d_v] = bits(s);        \
    precise float product = queries[i] * s; \
    out_ = out_ + product;                  \
  }
  precise float sum = 0.0, out_ = 0.0;
  uint i = 0;
  for (; i + 8 <= D_K; i += 8)
    [[unroll]] for (uint l = 0; l < 8; ++l) RECALL(i + l)
  for (; i < D_K; ++i) RECALL(i)
  precise float u = f32(x[t * width() + 2 * n_k * D_K + head * d_v + j]) - sum;
  u = beta * u;
  for (i = 0; i + 8 <= D_K; i += 8)
    [[unroll]] for (uint l = 0; l < 8; ++l) LEARN(i + l)
  for (; i < D_K; ++i) LEARN(i)
  y[(t * n_v + head) * d_v + j] = bits(out_);
}

// A group takes a tile of the columns of a head; a thread has its own columns.
void main() {
  uint end = min(header[rows], last);
  EACH_RUN(begin, after, end) {
    bool fresh = positions[begin] == 0;
    uint kept = states[sequences[begin]] * state_words + element;
    for (uint u = gl_WorkGroupID.x; u < n_v * tiles; u += gl_NumWorkGroups.x) {
      uint head = u / tiles;
      for (uint t = begin; t < after; ++t) {
        read_token(t, head);
        for (uint j = u % tiles * threads() + thread(); j < d_v; j += tiles * threads())
          update(t, head, j, kept + head * D_K * d_v + j, fresh && t == begin);
      }
    }
  }
}
