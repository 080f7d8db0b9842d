// C1: format of the matrix.
#include "common.cl"
#include "pieces.cl"
#include "group.cl"

typedef struct {
  uint rows, k, row_words, first_row, n_rows, scale_group;
} params;

#if C1 == FORMAT_F32
#define PIECE piece_f32
#define END end_f32
#elif C1 == FORMAT_F16
#define PIECE piece_f16
#define END end_f16
#elif C1 == FORMAT_BF16
#define PIECE piece_bf16
#define END end_bf16
#elif C1 == FORMAT_Q8_0
#define PIECE piece_q8_0
#define END end_q8_0
#elif C1 == FORMAT_Q4_0
#define PIECE piece_q4_0
#define END end_q4_0
#elif C1 == FORMAT_Q4_K
#define PIECE piece_q4_k
#define END end_q4_k
#elif C1 == FORMAT_Q6_K
#define PIECE piece_q6_k
#define END end_q6_k
#else
#define PIECE piece_ternary2
#define END end_ternary2
#endif

KERNEL(BIND(const uint, header), BIND(const uint, tokens), BIND(const uint, matrix),
       BIND(const float, scales), BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const uint, tokens);
  OPEN(const uint, matrix);
  OPEN(const float, scales);
  OPEN(float, y);
  const uint pieces = (p.k + 15) / 16;
  EACH_Y(t, header[p.rows]) {
    const uint token = tokens[t];
    if (token < p.first_row || token - p.first_row >= p.n_rows) continue;
    __global const uint *row = matrix + (ulong)(token - p.first_row) * p.row_words;
    __global float *out = y + (ulong)t * p.k;
    for (uint i = GROUP_X * T + LOCAL_ID; i < pieces; i += GROUPS_X * T) {
      const uint left = p.k - 16 * i;
      float values[16];
      vstore16(left < 16 ? END(row, i, left) : PIECE(row, i), 0, values);
      for (uint j = 0; j < min(left, 16u); ++j) {
#if C1 == FORMAT_TERNARY2
        const ulong at = (ulong)token * p.k + 16 * i + j;
        values[j] *= scales[p.scale_group ? at / p.scale_group : 0];
#endif
        out[16 * i + j] = values[j];
      }
    }
  }
}
