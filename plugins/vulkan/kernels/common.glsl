// Common to all kernels. gl_WorkGroupSize.x is constant 0; buffers are arrays of words. The
// contract is in plugins/gpu-common/kernels.hpp.
//
// Forms  a kernel may be compiled several times (CMakeLists.txt), the same to the last bit:
//          SUBGROUPS  threads of a subgroup exchange values without memory
//          DOT        the device multiplies and adds four bytes at once
#extension GL_EXT_control_flow_attributes : enable
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#ifdef DOT
#extension GL_EXT_spirv_intrinsics : require
#endif

layout(local_size_x_id = 0) in;

#define WORDS(number, name) \
  layout(std430, set = 0, binding = number) buffer name##_buffer { uint name[]; }
#define WORDS_IN(number, name) \
  layout(std430, set = 0, binding = number) readonly buffer name##_buffer { uint name[]; }

WORDS_IN(0, header);
const uint header_window = 2, header_window_keep = 3;

const uint FORMAT_F32 = 1, FORMAT_F16 = 2, FORMAT_BF16 = 3, FORMAT_Q8_0 = 4, FORMAT_Q4_0 = 5,
           FORMAT_Q4_K = 6, FORMAT_Q6_K = 7, FORMAT_TERNARY2 = 8;
const uint DTYPE_F32 = 1, DTYPE_F16 = 2, DTYPE_Q8_0 = 5, DTYPE_Q4_0 = 6;

#ifdef SUBGROUPS
// Threads of a subgroup. All subgroups are full, because threads are numbered through them.
layout(constant_id = 5) const uint SUBGROUP = 1;
uint thread() {
  return gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID;
}
// The x of another thread of the subgroup: the one whose number differs in bit d.
#define ACROSS(x, d) subgroupShuffleXor(x, d)
#define FROM(x, n) subgroupShuffle(x, n)
#else
const uint SUBGROUP = 1;
uint thread() {
  return gl_LocalInvocationID.x;
}
#define ACROSS(x, d) (x)
#define FROM(x, n) (x)
#endif
uint threads() {
  return gl_WorkGroupSize.x;
}

uint i8_stride(uint k) {  // words of a row
  return (k + 127) / 128 * 32;
}

float f32(uint bits) {
  return uintBitsToFloat(bits);
}
uint bits(float value) {
  return floatBitsToUint(value);
}

// Half to even, as the definition asks; a driver may emulate roundEven.
// Exact for |x| < 2^22; what is larger is clamped anyway.
float round_half_even(float x) {
  precise float shifted = x + 12582912.0;
  precise float whole = shifted - 12582912.0;
  return abs(x) < 4194304.0 ? whole : x;
}

// a / b correctly rounded, for positive normal numbers with a normal quotient; infinite if a is, 0
// if b is. Division itself may be off by 2.5 ulp.
float exact_quotient(float a, float b) {
  uint ab = bits(a), bb = bits(b);
  if (ab >= 0x7f800000u) return a;
  if (bb >= 0x7f800000u) return 0.0;
  uint n = (ab & 0x7fffffu) | 0x800000u, d = (bb & 0x7fffffu) | 0x800000u;
  int e = int(ab >> 23) - int(bb >> 23) + 127;
  if (n < d) {
    n <<= 1;
    --e;
  }
  uint q = 0;  // 24 bits, the first of them 1
  for (int i = 0; i < 24; ++i) {
    q <<= 1;
    if (n >= d) {
      n -= d;
      q |= 1;
    }
    n <<= 1;
  }
  // n is twice the remainder.
  if (n > d || (n == d && (q & 1) != 0)) ++q;  // may carry into the exponent, which is right
  return f32((uint(e) << 23) + q - 0x800000u);
}

// e^x within 2 units in the last place, as in Cephes' expf; NaN stays NaN.
float exponential(float x) {
  x = x < -104.0 ? -104.0 : x;
  x = x > 89.0 ? 89.0 : x;
  precise float t = x * 1.44269504 + 12582912.0;
  precise float n = t - 12582912.0;
  precise float r = (x - n * 0.693359375) - n * -2.12194440e-4;
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  p = (p * (r * r) + r) + 1.0;
  int e = int(bits(t) - 0x4b400000u);
  int first = e >> 1;  // 2^e in two factors: it may be denormal
  precise float out_ = p * f32(uint(first + 127) << 23);
  out_ = out_ * f32(uint(e - first + 127) << 23);
  return out_;
}

// Round to nearest, ties to even; packHalf2x16 may round otherwise.
uint to_half(float value) {
  uint b = bits(value);
  uint sign = b >> 16 & 0x8000u, rest = b & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u | (rest >> 13 & 0x3ffu);
  if (rest >= 0x47800000u) return sign | 0x7c00u;
  if (rest < 0x38800000u) {  // subnormal: adding 0.5 leaves a multiple of 2^-24 in the low bits
    precise float shifted = f32(rest) + 0.5;
    return sign | (bits(shifted) - 0x3f000000u);
  }
  return sign | (rest + 0xfffu + (rest >> 13 & 1u) - (112u << 23)) >> 13;
}

// The bits of unpackHalf2x16; drivers may flush subnormals there.
float from_half(uint h) {
  uint sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest < 0x400u) {
    precise float value = float(rest) * f32(0x33800000u);  // 2^-24
    return f32(bits(value) | sign);
  }
  if (rest >= 0x7c00u) return f32(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  return f32(sign | ((rest << 13) + (112u << 23)));
}

uint byte_at(uint word, uint i) {
  return word >> (8 * i) & 255u;
}
// Element n of 32 4-bit codes. `word` is word n % 16 / 4 of them.
int four_bits(uint word, uint n) {
  uint both = byte_at(word, n % 4);
  return int(n < 16 ? both & 15 : both >> 4) - 8;
}
int signed_byte(uint word, uint i) {
  return bitfieldExtract(int(word), int(8 * i), 8);
}
