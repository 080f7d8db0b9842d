#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint DTYPE_K = 1;
layout(constant_id = 2) const uint DTYPE_V = 1;
layout(constant_id = 3) const uint TURNED = 0;
WORDS_IN(1, slots);
WORDS_IN(2, k);
WORDS_IN(3, v);
WORDS_IN(4, turns);
WORDS(5, keys);
WORDS(6, values);
layout(push_constant) uniform params {
  uint rows, n_kv_heads, head_dim, block_tokens, pairs, neox;
};

uint units_of(uint dtype) {
  return dtype == DTYPE_F32 ? head_dim : dtype == DTYPE_F16 ? (head_dim + 1) / 2 : head_dim / 32;
}

// Bits of element i of the row of token t that begins at word `from`; k is turned as in rope.
uint key(uint t, uint from, uint i) {
  if (TURNED == 0 || i >= 2 * pairs) return k[from + i];
  uint pair = neox != 0 ? i % pairs : i / 2;
  bool second = neox != 0 ? i >= pairs : (i & 1) != 0;
  uint other = neox == 0 ? i ^ 1u : second ? i - pairs : i + pairs;
  float c = f32(turns[2 * (t * pairs + pair)]), s = f32(turns[2 * (t * pairs + pair) + 1]);
  precise float p = f32(k[from + i]) * c, q = f32(k[from + other]) * s;
  precise float y = second ? q + p : p - q;
  return bits(y);
}
uint value(uint t, uint from, uint i) {
  return v[from + i];
}

// Stores word or block `unit` of a row. FROM gives its elements; TO is an array, `to` a row's word.
#define STORE(FROM, TO)                                                                     \
  if (dtype == DTYPE_F32) {                                                                 \
    TO[to + unit] = FROM(t, from, unit);                                                    \
  } else if (dtype == DTYPE_F16) {                                                          \
    uint word = to_half(f32(FROM(t, from, 2 * unit)));                                      \
    if (2 * unit + 1 < head_dim) word |= to_half(f32(FROM(t, from, 2 * unit + 1))) << 16;   \
    TO[to + unit] = word;                                                                   \
  } else if (dtype == DTYPE_Q4_0) {                                                         \
    uint x = 32 * unit, y = to + 5 * unit, extreme = 0;                                     \
    for (uint i = 0; i < 32; ++i) extreme = q4_extreme(extreme, FROM(t, from, x + i));      \
    uint d = q4_factor(extreme);                                                            \
    float inverse = q4_inverse(extreme, d);                                                 \
    TO[y] = d;                                                                              \
    for (uint w = 0; w < 4; ++w) {                                                          \
      uint word = 0;                                                                        \
      for (uint b = 0; b < 4; ++b) {                                                        \
        uint i = x + 4 * w + b;                                                             \
        word |= q4_code(f32(FROM(t, from, i)), inverse) << (8 * b);                         \
        word |= q4_code(f32(FROM(t, from, i + 16)), inverse) << (8 * b + 4);                \
      }                                                                                     \
      TO[y + 1 + w] = word;                                                                 \
    }                                                                                       \
  } else {                                                                                  \
    uint x = 32 * unit, y = to + 9 * unit;                                                  \
    float largest = 0.0;                                                                    \
    for (uint i = 0; i < 32; ++i) {                                                         \
      float a = abs(f32(FROM(t, from, x + i)));                                             \
      largest = a > largest ? a : largest;                                                  \
    }                                                                                       \
    float unit_ = q8_step(largest);                                                         \
    uint d = to_half(unit_);                                                                \
    float inverse = q8_inverse(from_half(d));                                               \
    TO[y] = d;                                                                              \
    for (uint w = 0; w < 8; ++w) {                                                          \
      uint word = 0;                                                                        \
      for (uint b = 0; b < 4; ++b)                                                          \
        word |= q8_code(f32(FROM(t, from, x + 4 * w + b)), inverse) << (8 * b);             \
      TO[y + 1 + w] = word;                                                                 \
    }                                                                                       \
  }

// min(m / 127, 65504), the factor before rounding to f16. Below 2^-26 every f16 is 0, and
// exact_quotient would get subnormals.
float q8_step(float m) {
  if (m < 127.0 * 1.4901161193847656e-08) return 0.0;
  return m < 127.0 * 65504.0 ? exact_quotient(m, 127.0) : 65504.0;
}
float q8_inverse(float d) {
  return d > 0.0 ? exact_quotient(1.0, d) : 0.0;
}
uint q8_code(float x, float inverse) {
  precise float scaled = x * inverse;
  float v = round_half_even(scaled);
  v = v > -127.0 ? v : -127.0;
  v = v < 127.0 ? v : 127.0;
  return uint(int(v)) & 255u;
}

// Compares numbers as bits, so that the factor's sign does not depend on the handling of
// subnormals. Returns b if it is a number with a larger magnitude than a.
uint q4_extreme(uint a, uint b) {
  uint size = b & 0x7fffffffu;
  return size > (a & 0x7fffffffu) && size <= 0x7f800000u ? b : a;
}
// |e / -8|; values too small for f16 become 0.
float q4_step(uint extreme) {
  uint size = extreme & 0x7fffffffu;
  if (size < 0x01800000u) return 0.0;
  return size < bits(8.0 * 65504.0) ? f32(size - 0x01800000u) : 65504.0;
}
uint q4_factor(uint extreme) {
  return to_half(q4_step(extreme)) | (~extreme >> 16 & 0x8000u);
}
float q4_inverse(uint extreme, uint d) {
  if ((d & 0x7fffu) == 0) return 0.0;
  return f32(bits(exact_quotient(1.0, q4_step(extreme))) | (~extreme & 0x80000000u));
}
uint q4_code(float x, float inverse) {
  precise float scaled = x * inverse;
  precise float v = scaled + 8.5;
  v = v > 0.0 ? v : 0.0;  // NaN, too
  return uint(v < 15.0 ? v : 15.0);
}

void store_k(uint t, uint from, uint to, uint unit) {
  const uint dtype = DTYPE_K;
  STORE(key, keys)
}
void store_v(uint t, uint from, uint to, uint unit) {
  const uint dtype = DTYPE_V;
  STORE(value, values)
}
uint row_words(uint dtype, uint units) {
  return units * (dtype == DTYPE_Q8_0 ? 9 : dtype == DTYPE_Q4_0 ? 5 : 1);
}

void main() {
  uint units_k = units_of(DTYPE_K), units_v = units_of(DTYPE_V);
  uint all_k = n_kv_heads * units_k, all = all_k + n_kv_heads * units_v;
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    uint block = slots[t] / block_tokens, offset = slots[t] % block_tokens;
    for (uint u = gl_GlobalInvocationID.x; u < all; u += gl_NumWorkGroups.x * threads()) {
      bool is_k = u < all_k;
      uint units = is_k ? units_k : units_v, i = is_k ? u : u - all_k;
      uint head = i / units;
      uint from = (t * n_kv_heads + head) * head_dim;
      uint row = (block * n_kv_heads + head) * block_tokens + offset;
      if (is_k)
        store_k(t, from, row * row_words(DTYPE_K, units), i % units);
      else
        store_v(t, from, row * row_words(DTYPE_V, units), i % units);
    }
  }
}
