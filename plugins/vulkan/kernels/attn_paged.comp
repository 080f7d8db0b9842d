// ATTN_PAGED; attn_paged_params in plugins/gpu-common/kernels.hpp defines bindings and order. A work
// group computes a head (x) of a token (y), by tiles of positions, one for each thread. The largest
// score so far may grow with a tile; then the sums and their total so far are multiplied by
// `shrink`.
//
// The positions that a token sees, `seen` of them: the `early` ones, then those of the window.
//
//   0          kept_from      kept            first              end
//   |             |############|                |#################|   the last one is the token's
//
// Words of GLSL have an underscore behind them where they are names here: dot_, out_.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint DTYPE_K = 1;
layout(constant_id = 2) const uint DTYPE_V = 1;
layout(constant_id = 3) const uint KEPT = 4;  // elements of y that a thread sums
WORDS_IN(1, q);
WORDS_IN(2, positions);
WORDS_IN(3, sequences);
WORDS_IN(4, block_tables);
WORDS_IN(5, keys);
WORDS_IN(6, values);
WORDS(7, y);
layout(push_constant) uniform params {
  uint rows, n_heads, n_kv_heads, head_dim, block_tokens, max_blocks;
  float scale;
  uint own_window;
};
#include "reduce.glsl"
shared float weights[gl_WorkGroupSize.x];
shared uint places[gl_WorkGroupSize.x];  // rows of the pool

#define BLOCK_FACTOR(ARRAY, at) from_half(ARRAY[at] & 0xffffu)
#define ELEMENT(ARRAY, dtype, at, i)                                                            \
  (dtype == DTYPE_F32   ? f32(ARRAY[at + (i)])                                                  \
   : dtype == DTYPE_F16 ? from_half(ARRAY[at + (i) / 2] >> (16 * ((i) & 1)) & 0xffffu)          \
   : dtype == DTYPE_Q8_0                                                                        \
       ? BLOCK_FACTOR(ARRAY, at + (i) / 32 * 9) *                                               \
             float(signed_byte(ARRAY[at + (i) / 32 * 9 + 1 + (i) % 32 / 4], (i) % 4))           \
       : BLOCK_FACTOR(ARRAY, at + (i) / 32 * 5) *                                               \
             float(four_bits(ARRAY[at + (i) / 32 * 5 + 1 + (i) % 16 / 4], (i) % 32)))

uint row_words(uint dtype) {
  return dtype == DTYPE_F32   ? head_dim
         : dtype == DTYPE_F16 ? (head_dim + 1) / 2
                              : head_dim / 32 * (dtype == DTYPE_Q8_0 ? 9 : 5);
}

void main() {
  uint head = gl_WorkGroupID.x, kv_head = head / (n_heads / n_kv_heads);
  uint words_k = row_words(DTYPE_K), words_v = row_words(DTYPE_V);
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    uint table = sequences[t] * max_blocks;
    // The window of the step leaves [first, end) and the positions that it keeps, [0, kept). The
    // layer's own window hides all before `least`. A window of 0 hides none.
    uint end = positions[t] + 1, window = header[header_window];
    uint first = window == 0 || end <= window ? 0 : end - window;
    uint kept = min(header[header_window_keep], first);
    uint least = own_window == 0 || end <= own_window ? 0 : end - own_window;
    uint kept_from = min(least, kept), early = kept - kept_from;
    first = max(first, least);
    uint seen = early + end - first;
    uint q_at = (t * n_heads + head) * head_dim;

    float sums[KEPT];
    for (uint i = 0; i < KEPT; ++i) sums[i] = 0.0;
    float largest = 0.0, total = 0.0;
    for (uint tile = 0; tile < seen; tile += threads()) {
      uint count = min(threads(), seen - tile);
      bool mine = thread() < count;
      float score = -1.0 / 0.0;
      barrier();  // the previous tile is read
      if (mine) {
        uint n = tile + thread();
        uint position = n < early ? kept_from + n : first + (n - early);
        uint block = block_tables[table + position / block_tokens];
        uint row = (block * n_kv_heads + kv_head) * block_tokens + position % block_tokens;
        places[thread()] = row;
        precise float dot_ = 0.0;
        uint i = 0;
        for (; i + 8 <= head_dim; i += 8) {
          [[unroll]] for (uint j = 0; j < 8; ++j) {
            precise float product =
                f32(q[q_at + i + j]) * ELEMENT(keys, DTYPE_K, row * words_k, i + j);
            dot_ = dot_ + product;
          }
        }
        for (; i < head_dim; ++i) {
          precise float product = f32(q[q_at + i]) * ELEMENT(keys, DTYPE_K, row * words_k, i);
          dot_ = dot_ + product;
        }
        dot_ = dot_ * scale;
        score = dot_;
      }
      float top = group_max(mine ? score : f32(0xff800000u));
      float next = tile == 0 ? top : max(largest, top);
      float shrink = tile == 0 ? 0.0 : exponential(largest - next);
      largest = next;
      float weight = mine ? exponential(score - largest) : 0.0;
      weights[thread()] = weight;
      precise float sum = total * shrink + group_sum(weight);
      total = sum;
      barrier();
      [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        precise float acc = sums[i] * shrink;
        sums[i] = acc;
      }
      for (uint j = 0; j < count; ++j) {
        float weight_of_j = weights[j];
        uint row = places[j] * words_v;
        [[unroll]] for (uint i = 0; i < KEPT; ++i) {
          uint d = i * threads() + thread();
          if (d < head_dim) {
            precise float product = weight_of_j * ELEMENT(values, DTYPE_V, row, d);
            precise float acc = sums[i] + product;
            sums[i] = acc;
          }
        }
      }
    }
    for (uint i = 0; i < KEPT; ++i) {
      uint d = i * threads() + thread();
      precise float out_ = sums[i] / total;
      if (d < head_dim) y[q_at + d] = bits(out_);
    }
  }
}
