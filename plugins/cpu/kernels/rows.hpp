#pragma once
// Ops on one row of activations between the matrices. One header, one definition of right.
//
// Shapes  x, y, a, b, w (k) f32, contiguous; y may be x.
// Sums    of a row use 16 partials: element i goes to partial i % 16, i ascending; the partials are
//         then added in halves: p[j] += p[j + 8] for j < 8, then 4, 2 and 1.
// Exact   that order is the definition and nothing is fused: every form returns the same bits.
//
//   rms_norm   y = x * (1 / sqrt(mean(x^2) + eps)) * w; squares and their sum in double
//   act_quant  s = 127 / max(|x|, 1e-5); q = round_half_even(x * s), clamped to [-128, 127]
//   act_quant_groups  for each `group` elements, a multiple of 16: a = max(|x|, 1e-30);
//              q = round_half_even(x * (127 / a)), clamped to [-127, 127]; d = a / 127
//   hadamard   as ops.h says, `factors` first or last, or nullptr; y is not x
//   gelu       as ops.h says: the product a + b * (x * x), then by -x, then the exponential
//   sigmoid    1 / (1 + exp(-x))
//   delta_rule one token of one head of DELTA_RULE, as ops.h says: v and y (d_v), state (d_k, d_v),
//              columns side by side; decayed rows are formed twice, which gives the same bits
//   softmax    x = exp(x * scale - max(x * scale)); returns the sum, at least 1
//   rotate     pairs (a, b) of each head become (a c - b s, a s + b c): RoPE with given cosines and
//              sines (pairs). neox: b stands `pairs` after a; else next to it. Other elements are
//              copied.
//   halves     y = x in f16, rounded half to even
//   widen      y = x for x in f16
//   quant_error  error = sum((w - d q)^2), size = sum((d q)^2), in f32
//   from_q4_0, from_q4_k, from_q6_k   y = x for x in whole blocks of that format
//   q8_0, q4_0 y = x in blocks of BITNET_DTYPE_Q8_0 or _Q4_0; k is a multiple of 32

#include <cstdint>

namespace bitnet::cpu {

struct rotation {
  const float* cosines;
  const float* sines;  // (pairs)
  uint64_t pairs, heads, head_dim;
  bool neox;
};

struct delta_token {
  const float *q, *k, *v;
  float q_factor, k_factor;  // factors of q and k, each (d_k)
  float decay, beta;
};

struct row_kernels {
  const char* isa;  // the last part of their names
  void (*rms_norm)(const float* x, const float* w, float eps, uint64_t k, float* y);
  void (*act_quant)(const float* x, uint64_t k, int8_t* q, float* s);
  void (*act_quant_groups)(const float* x, uint64_t k, uint64_t group, int8_t* q, float* d);
  void (*hadamard)(const float* x, const float* factors, bool first, uint64_t k, uint64_t block,
                   float* y);
  void (*add)(const float* a, const float* b, uint64_t k, float* y);
  void (*mul)(const float* a, const float* b, uint64_t k, float* y);
  void (*relu2)(const float* x, uint64_t k, float* y);
  void (*silu)(const float* x, uint64_t k, float* y);
  void (*gelu)(const float* x, uint64_t k, float* y);
  void (*scale)(const float* x, float factor, uint64_t k, float* y);
  void (*sigmoid)(const float* x, uint64_t k, float* y);
  void (*delta_rule)(const delta_token& t, uint64_t d_k, uint64_t d_v, float* state, float* y);
  float (*softmax)(float* x, uint64_t n, float scale);
  void (*rotate)(const float* x, const rotation& r, float* y);  // y is not x
  void (*halves)(const float* x, uint64_t k, uint8_t* y);
  void (*widen)(const uint8_t* x, uint64_t k, float* y);
  void (*quant_error)(const float* w, const int8_t* q, float d, uint64_t k, float* error,
                      float* size);
  void (*q8_0)(const float* x, uint64_t k, uint8_t* y);
  void (*q4_0)(const float* x, uint64_t k, uint8_t* y);
  void (*from_q4_0)(const uint8_t* x, uint64_t k, float* y);
  void (*from_q4_k)(const uint8_t* x, uint64_t k, float* y);
  void (*from_q6_k)(const uint8_t* x, uint64_t k, float* y);
};

#define BITNET_DECLARE_ROWS(isa)                                                                   \
  void rms_norm_##isa(const float* x, const float* w, float eps, uint64_t k, float* y);            \
  void act_quant_##isa(const float* x, uint64_t k, int8_t* q, float* s);                           \
  void act_quant_groups_##isa(const float* x, uint64_t k, uint64_t group, int8_t* q, float* d);    \
  void hadamard_##isa(const float* x, const float* factors, bool first, uint64_t k,                \
                      uint64_t block, float* y);                                                   \
  void add_##isa(const float* a, const float* b, uint64_t k, float* y);                            \
  void mul_##isa(const float* a, const float* b, uint64_t k, float* y);                            \
  void relu2_##isa(const float* x, uint64_t k, float* y);                                          \
  void silu_##isa(const float* x, uint64_t k, float* y);                                           \
  void gelu_##isa(const float* x, uint64_t k, float* y);                                           \
  void scale_##isa(const float* x, float factor, uint64_t k, float* y);                            \
  void sigmoid_##isa(const float* x, uint64_t k, float* y);                                        \
  void delta_rule_##isa(const delta_token& t, uint64_t d_k, uint64_t d_v, float* state, float* y); \
  float softmax_##isa(float* x, uint64_t n, float scale);                                          \
  void rotate_##isa(const float* x, const rotation& r, float* y);                                  \
  void halves_##isa(const float* x, uint64_t k, uint8_t* y);                                       \
  void widen_##isa(const uint8_t* x, uint64_t k, float* y);                                        \
  void quant_error_##isa(const float* w, const int8_t* q, float d, uint64_t k, float* error,       \
                         float* size);                                                             \
  void q8_0_##isa(const float* x, uint64_t k, uint8_t* y);                                         \
  void q4_0_##isa(const float* x, uint64_t k, uint8_t* y);                                         \
  void from_q4_0_##isa(const uint8_t* x, uint64_t k, float* y);                                    \
  void from_q4_k_##isa(const uint8_t* x, uint64_t k, float* y);                                    \
  void from_q6_k_##isa(const uint8_t* x, uint64_t k, float* y)

BITNET_DECLARE_ROWS(scalar);
BITNET_DECLARE_ROWS(sse41);   // needs SSE4.1
BITNET_DECLARE_ROWS(avx2);    // needs AVX2 and F16C
BITNET_DECLARE_ROWS(avx512);  // needs AVX-512 F, BW and VL, and F16C
BITNET_DECLARE_ROWS(neon);    // needs AArch64
#undef BITNET_DECLARE_ROWS

#define BITNET_ROWS(form)                       \
  {.isa = #form,                                \
   .rms_norm = rms_norm_##form,                 \
   .act_quant = act_quant_##form,               \
   .act_quant_groups = act_quant_groups_##form, \
   .hadamard = hadamard_##form,                 \
   .add = add_##form,                           \
   .mul = mul_##form,                           \
   .relu2 = relu2_##form,                       \
   .silu = silu_##form,                         \
   .gelu = gelu_##form,                         \
   .scale = scale_##form,                       \
   .sigmoid = sigmoid_##form,                   \
   .delta_rule = delta_rule_##form,             \
   .softmax = softmax_##form,                   \
   .rotate = rotate_##form,                     \
   .halves = halves_##form,                     \
   .widen = widen_##form,                       \
   .quant_error = quant_error_##form,           \
   .q8_0 = q8_0_##form,                         \
   .q4_0 = q4_0_##form,                         \
   .from_q4_0 = from_q4_0_##form,               \
   .from_q4_k = from_q4_k_##form,               \
   .from_q6_k = from_q6_k_##form}

}  // namespace bitnet::cpu
