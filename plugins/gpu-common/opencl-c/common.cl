// Common to all kernels; plugins/gpu-common/kernels.hpp defines what each of them computes.
//
// A kernel's file includes what it needs; bitnet_gpu_texts (kernels.cmake) puts the text of each such
// file in its place, for drivers that are given text. Before all of it the host defines
// EXACT_DIVISION (/ and sqrt of float round correctly), DOUBLES, DOT_PRODUCT; NAME, the function;
// T = threads of a work group, and C1 to C4 = the constants of kernels.hpp.

// Elements of arrays that hold C1 of them: more where C1 is known only when SPIR-V is compiled.
#ifndef ROOM
#define ROOM C1
#endif

#pragma OPENCL FP_CONTRACT OFF
#if DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// A binding is a buffer and the word at which its part begins.
#define BIND(type, name) __global type *name##_memory, const ulong name##_at
#define OPEN(type, name) __global type *name = name##_memory + name##_at
// Before a function that takes __local memory. A plain static one is compiled with the array of its
// only caller in the parameter's place; PoCL 3.1 then gives that one array to all work groups.
#define WITH_LOCAL static __attribute__((always_inline))
#define KERNEL __kernel __attribute__((reqd_work_group_size(T, 1, 1))) void NAME

// Walks over the units [0, n) of axis x, of groups or of threads. One thread to a group means cores:
// each takes one piece, so that memory is read in order. Else neighbours take neighbours.
#define GROUPS_X ((uint)get_num_groups(0))
#define GROUP_X ((uint)get_group_id(0))
#define LOCAL_ID ((uint)get_local_id(0))
#define PIECE_X(n) (((n) + GROUPS_X - 1) / GROUPS_X)
#define EACH_PIECE(i, n)                                                                        \
  for (uint i = min((uint)(n), GROUP_X * PIECE_X(n)), i##_end = min((uint)(n), i + PIECE_X(n)); \
       i < i##_end; ++i)
#define EACH_STRIDE(i, n, lanes, lane) \
  for (uint i = GROUP_X * (lanes) + (lane); i < (n); i += GROUPS_X * (lanes))

// Rows of axis y, and of both axes where a row has one group.
#define EACH_Y(row, n) for (uint row = (uint)get_group_id(1); row < (n); row += (uint)get_num_groups(1))
#define EACH_ROW(row, n)                                                   \
  for (uint row = (uint)get_group_id(1) * GROUPS_X + GROUP_X; row < (n);   \
       row += (uint)get_num_groups(1) * GROUPS_X)

#define HEADER_TOKENS 0
#define HEADER_WINDOW 2
#define HEADER_KEEP 3

// bitnet/abi/tensor.h and ops.h
#define DTYPE_F32 1
#define DTYPE_F16 2
#define DTYPE_Q8_0 5
#define DTYPE_Q4_0 6
#define FORMAT_F32 1
#define FORMAT_F16 2
#define FORMAT_BF16 3
#define FORMAT_Q8_0 4
#define FORMAT_Q4_0 5
#define FORMAT_Q4_K 6
#define FORMAT_Q6_K 7
#define FORMAT_TERNARY2 8
#define OP_ADD 9
#define OP_MUL 10
#define OP_RELU2 11
#define OP_SILU 12
#define OP_GELU 18
#define OP_SCALE 19
#define OP_SIGMOID 20

// Words of a row of k int8 elements.
static uint i8_stride(uint k) { return (k + 127) / 128 * 32; }

// a / b, correctly rounded where nothing over- or underflows on the way.
static float divide(float a, float b) {
#if EXACT_DIVISION
  return a / b;
#else
  const float inverse = 1.0f / b;
  const float near = a * inverse;
  const float nearer = fma(fma(-b, near, a), inverse, near);
  // Of 0 rusticl (Mesa 22.3) makes -0 on this way.
  return isfinite(nearer) && a != 0 ? nearer : a / b;
#endif
}

// a / b for positive normal numbers with a normal quotient, correctly rounded whatever the device's
// division does: the quotient of the 24-bit mantissas by whole numbers, two bits longer than a
// float, then rounded half to even. Infinite if a is, 0 if b is.
static float exact_quotient(float a, float b) {
  const uint above = as_uint(a) >> 23, below = as_uint(b) >> 23;
  if (above == 255) return a;
  if (below == 255) return 0.0f;
  const uint mantissa = (as_uint(b) & 0x7fffffu) | 0x800000u;
  const ulong dividend = (ulong)((as_uint(a) & 0x7fffffu) | 0x800000u) << 25;
  const ulong quotient = dividend / mantissa;  // in (2^24, 2^26)
  const uint rest = dividend - quotient * mantissa != 0;
  const uint drop = quotient >= ((ulong)1 << 25) ? 2 : 1;
  const uint low = (uint)quotient & ((1u << drop) - 1), half_way = 1u << (drop - 1);
  uint kept = (uint)(quotient >> drop);  // in [2^23, 2^24)
  kept += low > half_way || (low == half_way && (rest || (kept & 1)));
  // The value is kept * 2^(drop - 25 + above - below); a carry out of kept moves the exponent.
  return as_float(((drop + 125 + above - below) << 23) + (kept - 0x800000u));
}

static float quant_scale(float a) { return exact_quotient(127.0f, a > 1e-5f ? a : 1e-5f); }

static int quantised(float x, float scale) {
  // NaN becomes 127: any value will do.
  return (int)fmax(fmin(rint(x * scale), 127.0f), -128.0f);
}

static uint packed4(int a, int b, int c, int d) {
  return ((uint)a & 255u) | ((uint)b & 255u) << 8 | ((uint)c & 255u) << 16 | (uint)d << 24;
}

// x if it is a number above `largest`.
static float larger(float largest, float x) { return x > largest ? x : largest; }

static float sum16(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}

static float activation(uint op, float x) {
  if (op == OP_SILU) return x / (1.0f + exp(-x));
  if (op == OP_SIGMOID) return 1.0f / (1.0f + exp(-x));
  if (op == OP_GELU)  // 2 * sqrt(2 / pi), and 0.044715 of it
    return x / (1.0f + exp(-x * (1.5957691216f + 0.0713548163f * (x * x))));
  const float positive = x > 0 ? x : 0;
  return positive * positive;
}
