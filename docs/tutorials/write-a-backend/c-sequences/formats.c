/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of weights, keys and values mean: bitnet/abi/tensor.h, and GGUF for what it leaves
 * to that. */
#include <math.h>
#include <string.h>

#include "kernels.h"

static float from_bits(uint32_t bits) {
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

static uint16_t load_16(const unsigned char* at) {
  uint16_t out;
  memcpy(&out, at, sizeof out);
  return out;
}

static float from_half(uint16_t half) {
  const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31;
  const uint32_t fraction = half & 1023;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = (float)fraction * 0x1p-24f;
  return sign != 0 ? -small : small;
}

/* Round to nearest, ties to even. */
static uint16_t to_half(float x) {
  const uint16_t sign = signbit(x) ? 0x8000u : 0;
  const float size = fabsf(x);
  int exponent;
  if (isnan(x)) return sign | 0x7e00u;
  if (size >= 65520.0f) return sign | 0x7c00u; /* nearer to what would be the next power of two */
  if (size < 0x1p-14f) return sign | (uint16_t)nearbyintf(size * 0x1p24f);
  const float fraction = frexpf(size, &exponent) * 2048; /* 1024 to 2048, the latter carries */
  return sign | (uint16_t)((exponent + 14) * 1024 + (int)nearbyintf(fraction) - 1024);
}

int ternary_at(const unsigned char* row, uint64_t k) {
  const uint64_t in_group = k % 128;
  return (row[k / 128 * 32 + in_group % 32] >> (6 - 2 * (in_group / 32)) & 3) - 1;
}

static void decode_q8_0(const unsigned char* block, float* out) {
  const float d = from_half(load_16(block));
  for (int i = 0; i < 32; ++i) out[i] = d * (float)(signed char)block[2 + i];
}

static void decode_q4_0(const unsigned char* block, float* out) {
  const float d = from_half(load_16(block));
  for (int i = 0; i < 32; ++i)
    out[i] = d * (float)((i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8);
}

/* 8 parts of 32 elements, with a scale and a minimum of 6 bits for each. */
static void decode_q4_k(const unsigned char* block, float* out) {
  const float d = from_half(load_16(block)), d_min = from_half(load_16(block + 2));
  const unsigned char *six = block + 4, *nibbles = block + 16;
  for (int part = 0; part < 8; ++part) {
    int scale = six[part % 4] & 63, least = six[part % 4 + 4] & 63;
    if (part >= 4) {
      scale = (six[part + 4] & 15) | (six[part - 4] >> 6) << 4;
      least = six[part + 4] >> 4 | (six[part] >> 6) << 4;
    }
    for (int i = 0; i < 32; ++i) {
      const int both = nibbles[part / 2 * 32 + i], q = part % 2 == 0 ? both & 15 : both >> 4;
      out[part * 32 + i] = d * (float)scale * (float)q - d_min * (float)least;
    }
  }
}

/* 16 parts of 16 elements, of which the low 4 bits and the high 2 lie apart. */
static void decode_q6_k(const unsigned char* block, float* out) {
  const float d = from_half(load_16(block + 208));
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int low = block[64 * half + 32 * (quarter % 2) + at] >> (quarter < 2 ? 0 : 4) & 15;
    const int high = block[128 + 32 * half + at] >> 2 * quarter & 3;
    const float scale = (float)(signed char)block[192 + i / 16];
    out[i] = d * scale * (float)((low | high << 4) - 32);
  }
}

void decode(uint32_t format, const unsigned char* row, uint64_t first, uint64_t n, float* out) {
  switch (format) {
    case BITNET_FORMAT_F32:
      memcpy(out, row + 4 * first, 4 * n);
      break;
    case BITNET_FORMAT_F16:
      for (uint64_t i = 0; i < n; ++i) out[i] = from_half(load_16(row + 2 * (first + i)));
      break;
    case BITNET_FORMAT_BF16:
      for (uint64_t i = 0; i < n; ++i)
        out[i] = from_bits((uint32_t)load_16(row + 2 * (first + i)) << 16);
      break;
    case BITNET_FORMAT_Q8_0:
      for (uint64_t i = 0; i < n; i += 32) decode_q8_0(row + (first + i) / 32 * 34, out + i);
      break;
    case BITNET_FORMAT_Q4_0:
      for (uint64_t i = 0; i < n; i += 32) decode_q4_0(row + (first + i) / 32 * 18, out + i);
      break;
    case BITNET_FORMAT_Q4_K:
      for (uint64_t i = 0; i < n; i += 256) decode_q4_k(row + (first + i) / 256 * 144, out + i);
      break;
    case BITNET_FORMAT_Q6_K:
      for (uint64_t i = 0; i < n; i += 256) decode_q6_k(row + (first + i) / 256 * 210, out + i);
      break;
    default:
      for (uint64_t i = 0; i < n; ++i) out[i] = (float)ternary_at(row, first + i);
  }
}

/* ---- keys and values ---- */

void read_head(uint32_t dtype, const unsigned char* from, uint64_t n, float* out) {
  static const uint32_t formats[] = {[BITNET_DTYPE_F32] = BITNET_FORMAT_F32,
                                     [BITNET_DTYPE_F16] = BITNET_FORMAT_F16,
                                     [BITNET_DTYPE_Q8_0] = BITNET_FORMAT_Q8_0,
                                     [BITNET_DTYPE_Q4_0] = BITNET_FORMAT_Q4_0};
  decode(formats[dtype], from, 0, n, out);
}

static void write_q8_0(const float* x, unsigned char* to) {
  float largest = 0; /* NaN is not larger than anything */
  for (int i = 0; i < 32; ++i)
    if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
  const float wanted = largest / 127;
  const uint16_t d = to_half(wanted < 65504 ? wanted : 65504);
  const float step = from_half(d);
  memcpy(to, &d, sizeof d);
  for (int i = 0; i < 32; ++i) {
    const float q = step == 0 ? 0 : nearbyintf(x[i] * (1 / step));
    to[2 + i] = (unsigned char)(signed char)(q > -127 ? (q < 127 ? q : 127) : -127);
  }
}

static int code_of_4(float x, float inverse) {
  const float scaled = x * inverse;
  const float code = scaled + 8.5f;
  return code > 0 ? (int)(code < 15 ? code : 15) : 0;
}

static void write_q4_0(const float* x, unsigned char* to) {
  float extreme = 0;
  for (int i = 0; i < 32; ++i)
    if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
  float step = extreme / -8;
  if (step > 65504) step = 65504;
  if (step < -65504) step = -65504;
  const uint16_t d = to_half(step);
  const float inverse = (d & 0x7fffu) != 0 ? 1 / step : 0; /* 0: all codes are 8 */
  memcpy(to, &d, sizeof d);
  for (int i = 0; i < 16; ++i)
    to[2 + i] = (unsigned char)(code_of_4(x[i], inverse) | code_of_4(x[i + 16], inverse) << 4);
}

void write_head(uint32_t dtype, const float* x, uint64_t n, unsigned char* to) {
  switch (dtype) {
    case BITNET_DTYPE_F32:
      memcpy(to, x, n * sizeof *x);
      break;
    case BITNET_DTYPE_F16:
      for (uint64_t i = 0; i < n; ++i) {
        const uint16_t half = to_half(x[i]);
        memcpy(to + 2 * i, &half, sizeof half);
      }
      break;
    case BITNET_DTYPE_Q8_0:
      for (uint64_t i = 0; i < n; i += 32) write_q8_0(x + i, to + i / 32 * 34);
      break;
    default:
      for (uint64_t i = 0; i < n; i += 32) write_q4_0(x + i, to + i / 32 * 18);
  }
}
