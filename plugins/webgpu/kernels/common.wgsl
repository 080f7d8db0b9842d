// Common to all kernels. The contract is in plugins/gpu-common/kernels.hpp: buffers are arrays of
// words, T is constant 0, C1 to C4 are the others. The text defines these constants first; after
// this file comes the kernel, which declares its parameters `p`, their last member `zero`, and its
// buffers.
//
// Rounded  WGSL permits a compiler to fuse, or to replace by anything "at least as accurate", any
//          sum of products: (a + b) - a may become b. rounded() prevents this: the bits pass
//          through integers and a number that only the host knows to be zero.
// Uniform  control flow around a barrier depends only on uniform memory, or on results of
//          workgroupUniformLoad.

@group(0) @binding(0) var<uniform> header: array<vec4<u32>, 4>;
const header_window = 2u;
const header_window_keep = 3u;
fn header_word(i: u32) -> u32 {
  return header[i / 4u][i % 4u];
}

const FORMAT_F32 = 1u;
const FORMAT_F16 = 2u;
const FORMAT_BF16 = 3u;
const FORMAT_Q8_0 = 4u;
const FORMAT_Q4_0 = 5u;
const FORMAT_Q4_K = 6u;
const FORMAT_Q6_K = 7u;
const FORMAT_TERNARY2 = 8u;
const DTYPE_F32 = 1u;
const DTYPE_F16 = 2u;
const DTYPE_Q8_0 = 5u;
const DTYPE_Q4_0 = 6u;

var<private> thread: u32;  // of the work group

fn i8_stride(k: u32) -> u32 {  // words of a row
  return (k + 127u) / 128u * 32u;
}

fn number(bits: u32) -> f32 {
  return bitcast<f32>(bits);
}
fn bits_of(value: f32) -> u32 {
  return bitcast<u32>(value);
}
fn rounded(value: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(value) ^ p.zero);
}

// Half to even. Exact for |x| < 2^22; what is larger is clamped anyway.
fn round_half_even(x: f32) -> f32 {
  let shifted = rounded(x + 12582912.0);
  let whole = rounded(shifted - 12582912.0);
  return select(x, whole, abs(x) < 4194304.0);
}

// a / b correctly rounded, for positive normal numbers with a normal quotient; infinite if a is, 0
// if b is. Division itself may be off by 2.5 ulp.
fn exact_quotient(a: f32, b: f32) -> f32 {
  let ab = bits_of(a);
  let bb = bits_of(b);
  if (ab >= 0x7f800000u) { return a; }
  if (bb >= 0x7f800000u) { return 0.0; }
  var n = (ab & 0x7fffffu) | 0x800000u;
  let d = (bb & 0x7fffffu) | 0x800000u;
  var e = i32(ab >> 23u) - i32(bb >> 23u) + 127;
  if (n < d) {
    n <<= 1u;
    e -= 1;
  }
  var q = 0u;  // 24 bits, the first of them 1
  for (var i = 0u; i < 24u; i += 1u) {
    q <<= 1u;
    if (n >= d) {
      n -= d;
      q |= 1u;
    }
    n <<= 1u;
  }
  // n is twice the remainder.
  if (n > d || (n == d && (q & 1u) != 0u)) { q += 1u; }  // may carry into the exponent, which is right
  return number((u32(e) << 23u) + q - 0x800000u);
}

// e^x within 2 units in the last place, as in Cephes' expf; NaN stays NaN.
fn exponential(value: f32) -> f32 {
  var x = value;
  if (x < -104.0) { x = -104.0; }
  if (x > 89.0) { x = 89.0; }
  let t = rounded(rounded(x * 1.44269504) + 12582912.0);
  let n = rounded(t - 12582912.0);
  let r = rounded(rounded(x - rounded(n * 0.693359375)) - rounded(n * -2.12194440e-4));
  var s = 1.9875691500e-4;
  s = rounded(rounded(s * r) + 1.3981999507e-3);
  s = rounded(rounded(s * r) + 8.3334519073e-3);
  s = rounded(rounded(s * r) + 4.1665795894e-2);
  s = rounded(rounded(s * r) + 1.6666665459e-1);
  s = rounded(rounded(s * r) + 5.0000001201e-1);
  s = rounded(rounded(rounded(s * rounded(r * r)) + r) + 1.0);
  let e = bitcast<i32>(bits_of(t) - 0x4b400000u);
  let first = e >> 1u;  // 2^e in two factors: it may be denormal
  s = rounded(s * number(u32(first + 127) << 23u));
  return rounded(s * number(u32(e - first + 127) << 23u));
}

// Round to nearest, ties to even; pack2x16float may round otherwise.
fn to_half(value: f32) -> u32 {
  let b = bits_of(value);
  let sign_ = (b >> 16u) & 0x8000u;
  let rest = b & 0x7fffffffu;
  if (rest > 0x7f800000u) { return sign_ | 0x7e00u | ((rest >> 13u) & 0x3ffu); }
  if (rest >= 0x47800000u) { return sign_ | 0x7c00u; }
  if (rest < 0x38800000u) {  // subnormal: adding 0.5 leaves a multiple of 2^-24 in the low bits
    let shifted = rounded(number(rest) + 0.5);
    return sign_ | (bits_of(shifted) - 0x3f000000u);
  }
  return sign_ | ((rest + 0xfffu + ((rest >> 13u) & 1u) - (112u << 23u)) >> 13u);
}

// The bits of unpack2x16float, also for subnormals, infinities and NaN, which drivers may change.
fn from_half(h: u32) -> f32 {
  let sign_ = (h & 0x8000u) << 16u;
  let rest = h & 0x7fffu;
  if (rest < 0x400u) {
    let value = rounded(f32(rest) * 5.9604644775390625e-8);  // 2^-24
    return number(bits_of(value) | sign_);
  }
  if (rest >= 0x7c00u) { return number(sign_ | 0x7f800000u | ((rest & 0x3ffu) << 13u)); }
  return number(sign_ | ((rest << 13u) + (112u << 23u)));
}

fn byte_at(word: u32, i: u32) -> u32 {
  return (word >> (8u * i)) & 255u;
}
// Element n of 32 4-bit codes. `word` is word n % 16 / 4 of them.
fn four_bits(word: u32, n: u32) -> i32 {
  let both = byte_at(word, n % 4u);
  return i32(select(both >> 4u, both & 15u, n < 16u)) - 8;
}
fn signed_byte(word: u32, i: u32) -> i32 {
  return extractBits(bitcast<i32>(word), 8u * i, 8u);
}
