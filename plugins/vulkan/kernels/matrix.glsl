// Elements of a matrix row; the including file declares the buffer `matrix`. `at` is the row's first
// word. Formats as in plugins/gpu-common/kernels.hpp.

float q4_k_element(uint block, uint i) {
  uint j = i / 32;  // sub-block
  uint halves = matrix[block];
  // Bytes 4 to 15 of the block are the packed scales.
#define SCALE_BYTE(n) byte_at(matrix[block + 1 + (n) / 4], (n) % 4)
  uint scale = j < 4 ? SCALE_BYTE(j) & 63 : (SCALE_BYTE(j + 4) & 15) | (SCALE_BYTE(j - 4) >> 6) << 4;
  uint minimum = j < 4 ? SCALE_BYTE(j + 4) & 63 : SCALE_BYTE(j + 4) >> 4 | (SCALE_BYTE(j) >> 6) << 4;
#undef SCALE_BYTE
  uint n = j / 2 * 32 + i % 32;
  uint nibbles = byte_at(matrix[block + 4 + n / 4], n % 4);
  uint q = (j & 1) != 0 ? nibbles >> 4 : nibbles & 15;
  precise float step = from_half(halves & 0xffffu) * float(scale);
  precise float offset = from_half(halves >> 16) * float(minimum);
  precise float product = step * float(q);
  precise float y = product - offset;
  return y;
}

float q6_k_element(uint block, uint i) {
  uint half_ = i / 128, quarter = i % 128 / 32, n = i % 32;
  uint l = 64 * half_ + 32 * (quarter % 2) + n;
  uint low = byte_at(matrix[block + l / 4], l % 4);
  uint h = 32 * half_ + n;
  uint high = byte_at(matrix[block + 32 + h / 4], h % 4);
  int q = int((quarter < 2 ? low & 15 : low >> 4) | (high >> (2 * quarter) & 3) << 4) - 32;
  uint s = 8 * half_ + 2 * quarter + n / 16;
  int scale = signed_byte(matrix[block + 48 + s / 4], s % 4);
  precise float step = from_half(matrix[block + 52] & 0xffffu) * float(scale);
  precise float y = step * float(q);
  return y;
}

// Element i of the row at word `at`, without the scale of ternary rows.
float matrix_element(uint format, uint at, uint i) {
  precise float y = 0.0;
  if (format == FORMAT_F32) {
    y = f32(matrix[at + i]);
  } else if (format == FORMAT_F16) {
    y = from_half(matrix[at + i / 2] >> (16 * (i & 1)) & 0xffffu);
  } else if (format == FORMAT_BF16) {
    y = f32(matrix[at + i / 2] >> (16 * (i & 1)) << 16);
  } else if (format == FORMAT_Q8_0) {
    uint block = at + i / 32 * 9, n = i % 32;
    y = from_half(matrix[block] & 0xffffu) * float(signed_byte(matrix[block + 1 + n / 4], n % 4));
  } else if (format == FORMAT_Q4_0) {
    uint block = at + i / 32 * 5, n = i % 32;
    y = from_half(matrix[block] & 0xffffu) * float(four_bits(matrix[block + 1 + n % 16 / 4], n));
  } else if (format == FORMAT_Q4_K) {
    y = q4_k_element(at + i / 256 * 36, i % 256);
  } else if (format == FORMAT_Q6_K) {
    y = q6_k_element(at + i / 256 * 53, i % 256);
  } else {
    uint n = i % 128;
    y = float(int(byte_at(matrix[at + i / 128 * 8 + n % 32 / 4], n % 4) >> (6 - 2 * (n / 32)) & 3) -
              1);
  }
  return y;
}
