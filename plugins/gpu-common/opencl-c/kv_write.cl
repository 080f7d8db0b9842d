// C1, C2: element types of keys and values; C3: 1 = keys are turned first, as rope.cl does.
#include "common.cl"
#include "group.cl"

typedef struct {
  uint rows, n_kv_heads, head_dim, block_tokens, pairs, neox;
} params;

// Element i of a head x; `turns` has the token's cosines and sines, or is 0.
static float element(__global const float *x, uint i, __global const float *turns, uint pairs, uint neox) {
  if (!turns || i >= 2 * pairs) return x[i];
  const uint pair = neox ? i % pairs : i / 2;
  const bool second = neox ? i >= pairs : i % 2;
  const uint other = neox ? (second ? i - pairs : i + pairs) : (i ^ 1u);
  const float2 turn = vload2(pair, turns);
  const float p = x[i] * turn.x, q = x[other] * turn.y;
  return second ? q + p : p - q;
}

static uint half_bits(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return bits;
}

// Units of a row: words, or blocks of 32 elements.
static uint units(uint dtype, uint head_dim) {
  return dtype == DTYPE_F32 ? head_dim : dtype == DTYPE_F16 ? (head_dim + 1) / 2 : head_dim / 32;
}
static uint words(uint dtype, uint head_dim) {
  return units(dtype, head_dim) * (dtype == DTYPE_Q8_0 ? 9 : dtype == DTYPE_Q4_0 ? 5 : 1);
}

// A code of q4_0; in this order NaN becomes 0.
static uint code4(float x, float inverse) {
  const float scaled = x * inverse;
  return (uint)fmin(larger(0.0f, scaled + 8.5f), 15.0f);
}

static void put(uint dtype, __global const float *x, uint head_dim, uint unit, __global uint *row,
         __global const float *turns, uint pairs, uint neox) {
#define X(i) element(x, i, turns, pairs, neox)
  if (dtype == DTYPE_F32) {
    row[unit] = as_uint(X(unit));
  } else if (dtype == DTYPE_F16) {
    const uint i = 2 * unit;
    const uint high = i + 1 < head_dim ? half_bits(X(i + 1)) : 0;
    row[unit] = half_bits(X(i)) | high << 16;
  } else if (dtype == DTYPE_Q4_0) {
    const uint from = 32 * unit;
    __global uint *out = row + 5 * unit;
    // By their bits, so that the sign of d does not depend on what becomes of subnormals.
    uint extreme = 0;
    for (uint i = 0; i < 32; ++i) {
      const uint bits = as_uint(X(from + i)), size = bits & 0x7fffffffu;
      if (size > (extreme & 0x7fffffffu) && size <= 0x7f800000u) extreme = bits;
    }
    const uint sign = ~extreme & 0x80000000u;  // of e / -8
    const float step = fmin(0.125f * fabs(as_float(extreme)), 65504.0f);
    const uint d = half_bits(step);
    const float inverse = as_float(as_uint(d != 0 ? exact_quotient(1.0f, step) : 0.0f) | sign);
    out[0] = d | sign >> 16;
    for (uint w = 0; w < 4; ++w) {
      uint word = 0;
      for (uint i = 0; i < 4; ++i)
        word |= code4(X(from + 4 * w + i), inverse) << 8 * i |
                code4(X(from + 16 + 4 * w + i), inverse) << (8 * i + 4);
      out[1 + w] = word;
    }
  } else {
    const uint from = 32 * unit;
    __global uint *out = row + 9 * unit;
    float largest = 0;
    for (uint i = 0; i < 32; ++i) largest = larger(largest, fabs(X(from + i)));
    ushort bits;
    vstore_half_rte(fmin(divide(largest, 127.0f), 65504.0f), 0, (half *)&bits);
    const float d = vload_half(0, (const half *)&bits);
    const float inverse = d > 0 ? divide(1.0f, d) : 0;
    out[0] = bits;
    for (uint w = 0; w < 8; ++w) {
      int q[4];
      for (uint i = 0; i < 4; ++i)
        q[i] = max(quantised(X(from + 4 * w + i), inverse), -127);
      out[1 + w] = packed4(q[0], q[1], q[2], q[3]);
    }
  }
#undef X
}

KERNEL(BIND(const uint, header), BIND(const uint, slots), BIND(const float, k),
       BIND(const float, v), BIND(const float, turns), BIND(uint, keys), BIND(uint, values), const params p) {
  OPEN(const uint, header);
  OPEN(const uint, slots);
  OPEN(const float, k);
  OPEN(const float, v);
  OPEN(const float, turns);
  OPEN(uint, keys);
  OPEN(uint, values);
  const uint of_k = units(C1, p.head_dim), of_v = units(C2, p.head_dim);
  EACH_Y(t, header[p.rows]) {
    const uint slot = slots[t];
    EACH_X(unit, p.n_kv_heads * (of_k + of_v)) {
      const bool is_key = unit < p.n_kv_heads * of_k;
      const uint i = is_key ? unit : unit - p.n_kv_heads * of_k;
      const uint head = i / (is_key ? of_k : of_v), in_head = i % (is_key ? of_k : of_v);
      const ulong from = ((ulong)t * p.n_kv_heads + head) * p.head_dim;
      const ulong to = ((ulong)(slot / p.block_tokens) * p.n_kv_heads + head) * p.block_tokens +
                       slot % p.block_tokens;
      if (is_key)
        put(C1, k + from, p.head_dim, in_head, keys + to * words(C1, p.head_dim),
            C3 ? turns + (ulong)2 * t * p.pairs : 0, p.pairs, p.neox);
      else
        put(C2, v + from, p.head_dim, in_head, values + to * words(C2, p.head_dim), 0, 0, 0);
    }
  }
}
