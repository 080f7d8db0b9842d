// C1: threads that share a row of the matrix; C2: tokens that a group takes together; C3: format of
// the matrix.
#include "common.cl"
#include "pieces.cl"
#include "group.cl"

typedef struct {
  uint rows, k, m, row_words, first_row, n_rows;
} params;

#define ROWS (T / C1)
#if C3 == FORMAT_F32
#define PIECE piece_f32
#define END end_f32
#elif C3 == FORMAT_F16
#define PIECE piece_f16
#define END end_f16
#elif C3 == FORMAT_BF16
#define PIECE piece_bf16
#define END end_bf16
#elif C3 == FORMAT_Q8_0
#define PIECE piece_q8_0
#define END end_q8_0
#elif C3 == FORMAT_Q4_0
#define PIECE piece_q4_0
#define END end_q4_0
#elif C3 == FORMAT_Q4_K
#define PIECE piece_q4_k
#define END end_q4_k
#else
#define PIECE piece_q6_k
#define END end_q6_k
#endif

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const uint, matrix), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const uint, matrix);
  OPEN(float, y);
#if C1 > 1
  __local float shared[T * C2];
#endif
  const uint rows = header[p.rows], pieces = p.k / 16, left = p.k % 16;
  const uint part = LOCAL_ID % C1;
  EACH_GROUP(group, (p.n_rows + ROWS - 1) / ROWS) {
    const uint r = group * ROWS + LOCAL_ID / C1;
    // Threads past the end work on the last row, since all have to meet, and store nothing.
    __global const uint *row = matrix + (ulong)min(r, p.n_rows - 1) * p.row_words;
    for (uint first = (uint)get_group_id(1) * C2; first < rows;
         first += (uint)get_num_groups(1) * C2) {
      __global const float *of_token[C2];
      for (uint j = 0; j < C2; ++j) of_token[j] = x + (ulong)min(first + j, rows - 1) * p.k;
      float16 lanes[C2];
      for (uint j = 0; j < C2; ++j) lanes[j] = (float16)(0.0f);
      for (uint i = part; i < pieces; i += C1) {
        const float16 w = PIECE(row, i);
        for (uint j = 0; j < C2; ++j) lanes[j] += w * vload16(i, of_token[j]);
      }
      if (left != 0 && part == pieces % C1) {
        const float16 w = END(row, pieces, left);
        for (uint j = 0; j < C2; ++j)
          lanes[j] += w * end_f32((__global const uint *)of_token[j], pieces, left);
      }
      float sums[C2];
      for (uint j = 0; j < C2; ++j) sums[j] = sum16(lanes[j]);
#if C1 > 1
      for (uint j = 0; j < C2; ++j) shared[j * T + LOCAL_ID] = sums[j];
      for (uint half_count = C1 / 2; half_count != 0; half_count /= 2) {
        MEET;
        if (part < half_count)
          for (uint j = 0; j < C2; ++j)
            shared[j * T + LOCAL_ID] += shared[j * T + LOCAL_ID + half_count];
      }
      MEET;
      for (uint j = 0; j < C2; ++j) sums[j] = shared[j * T + LOCAL_ID - part];
      MEET;
#endif
      if (part != 0 || r >= p.n_rows) continue;
      for (uint j = 0; j < C2 && first + j < rows; ++j)
        y[(ulong)(first + j) * p.m + p.first_row + r] = sums[j];
    }
  }
}
