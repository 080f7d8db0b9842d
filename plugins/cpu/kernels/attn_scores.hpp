#pragma once
// q . k of many queries and sixteen keys at a time: the scores of a prompt. A lane is a key, so no
// sum crosses lanes, and every query uses the same loaded and converted keys.
//
// Order    as a dot product in linear_dense.hpp: 16 partials, added in halves.
// Exact    every form returns those bits, except that a sum of zeros may be -0, whose exponential
//          is that of 0: a partial begins with its first product here, with 0 there.
// Needs    k a multiple of 16.

#include <cstdint>

#include "kv_formats.hpp"

namespace bitnet::cpu {

inline constexpr uint64_t keys_at_once = 16;

struct keys_tile {
  kv_format format;                   // q8_0 and q4_0 only in whole blocks
  const uint8_t* rows[keys_at_once];  // the keys; they may lie anywhere
  uint64_t k;
  float* turned;  // (k, keys_at_once)
};

struct scores_tile {
  const float* turned;  // (k, keys_at_once)
  const float* q;       // (queries, k)
  uint64_t q_stride;    // elements between queries
  float* y;             // (queries, keys_at_once)
  uint64_t y_stride;    // elements between queries
  uint64_t k, queries;
};

void turn_keys_sse41(const keys_tile&);   // needs SSE4.1
void turn_keys_avx2(const keys_tile&);    // needs AVX2 and F16C
void turn_keys_avx512(const keys_tile&);  // needs AVX-512 F, BW, VL and F16C
void turn_keys_neon(const keys_tile&);    // needs AArch64
void attn_scores_sse41(const scores_tile&);
void attn_scores_avx2(const scores_tile&);
void attn_scores_avx512(const scores_tile&);
void attn_scores_neon(const scores_tile&);

}  // namespace bitnet::cpu
