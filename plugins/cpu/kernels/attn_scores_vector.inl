// attn_scores.hpp for a machine with vectors: the shared text of the forms. Kernels only, no shared
// inline functions; multiply and add are not fused.
//
// Expects  BITNET_ISA, the suffix of the names; BITNET_LANES, floats in a vector register;
//          BITNET_CONVERSIONS, the file with from_bytes() and from_halves(); BITNET_QUERIES_AT_ONCE
//          and BITNET_VECTORS_AT_ONCE, of keys: each pair has a sum in five registers, one for each
//          halving and one for the current partial.
// Gives    `turn_keys` and `attn_scores` with that suffix.
// Used by  attn_scores_*.cpp.
#include <cstring>
#include <utility>

#include "attn_scores.hpp"
#include "bitnet/abi/tensor.h"

// BITNET_JOIN(turn_keys, BITNET_ISA) is turn_keys_avx2 where BITNET_ISA is avx2. The helper expands
// BITNET_ISA before ## joins the words.
#define BITNET_JOIN_(a, b) a##_##b
#define BITNET_JOIN(a, b) BITNET_JOIN_(a, b)

namespace bitnet::cpu {
namespace {

#include "elements.inl"

constexpr uint64_t vectors = BITNET_VECTORS_AT_ONCE;

// Exchanges runs of N elements between two rows: a1 and b0 of a0 a1 and b0 b1.
template <uint64_t N, std::size_t... I>
inline void exchange(floats& a, floats& b, std::index_sequence<I...>) {
  const floats low =
      __builtin_shufflevector(a, b, static_cast<int>((I & N) != 0 ? lanes + I - N : I)...);
  b = __builtin_shufflevector(a, b, static_cast<int>((I & N) != 0 ? lanes + I : I + N)...);
  a = low;
}

// Transposes rows to columns.
template <uint64_t N = 1>
inline void turn(floats (&rows)[lanes]) {
  for (uint64_t i = 0; i < lanes; ++i)
    if ((i & N) == 0) exchange<N>(rows[i], rows[i + N], std::make_index_sequence<lanes>{});
  if constexpr (2 * N < lanes) turn<2 * N>(rows);
}

template <uint32_t Format>
void turn_all(const keys_tile& a) {
  for (uint64_t first = 0; first < keys_at_once; first += lanes)
    for (uint64_t i = 0; i < a.k; i += lanes) {
      floats rows[lanes];
      for (uint64_t r = 0; r < lanes; ++r) rows[r] = decode<Format>(a.rows[first + r], i);
      turn(rows);
      for (uint64_t r = 0; r < lanes; ++r)
        std::memcpy(a.turned + (i + r) * keys_at_once + first, &rows[r], sizeof rows[r]);
    }
}

// The sum of the partials j, j + N, j + 2 N, ... of 16.
template <uint64_t N, uint64_t Queries>
[[gnu::always_inline]] inline void add_up(const scores_tile& a, const float* turned, const float* q,
                                          uint64_t j, floats (&sums)[Queries][vectors]) {
  if constexpr (N == 16) {
    const auto product = [&](uint64_t i, uint64_t n, uint64_t v) {
      return load<floats>(turned + i * keys_at_once + v * lanes) * q[n * a.q_stride + i];
    };
    for (uint64_t n = 0; n < Queries; ++n)
      for (uint64_t v = 0; v < vectors; ++v) sums[n][v] = product(j, n, v);
    for (uint64_t i = j + 16; i < a.k; i += 16)
      for (uint64_t n = 0; n < Queries; ++n)
        for (uint64_t v = 0; v < vectors; ++v) sums[n][v] += product(i, n, v);
  } else {
    floats more[Queries][vectors];
    add_up<2 * N>(a, turned, q, j, sums);
    add_up<2 * N>(a, turned, q, j + N, more);
    for (uint64_t n = 0; n < Queries; ++n)
      for (uint64_t v = 0; v < vectors; ++v) sums[n][v] += more[n][v];
  }
}

template <uint64_t Queries>
void multiply(const scores_tile& a, uint64_t query) {
  for (uint64_t key = 0; key < keys_at_once; key += vectors * lanes) {
    floats sums[Queries][vectors];
    add_up<1>(a, a.turned + key, a.q + query * a.q_stride, 0, sums);
    for (uint64_t n = 0; n < Queries; ++n)
      std::memcpy(a.y + (query + n) * a.y_stride + key, sums[n], sizeof sums[n]);
  }
}

}  // namespace

void BITNET_JOIN(turn_keys, BITNET_ISA)(const keys_tile& a) {
  switch (a.format) {
// A case for each row of kv_formats.hpp: kv_format::q8_0 runs turn_all<BITNET_FORMAT_Q8_0>.
#define BITNET_TURN_ALL_OF(name, NAME) \
  case kv_format::name:                \
    return turn_all<BITNET_FORMAT_##NAME>(a);
    BITNET_CPU_KV_FORMATS(BITNET_TURN_ALL_OF)
#undef BITNET_TURN_ALL_OF
    case kv_format::none:
      return;
  }
}

void BITNET_JOIN(attn_scores, BITNET_ISA)(const scores_tile& a) {
  constexpr uint64_t together = BITNET_QUERIES_AT_ONCE;
  uint64_t i = 0;
  for (; i + together <= a.queries; i += together) multiply<together>(a, i);
  for (; i < a.queries; ++i) multiply<1>(a, i);
}

}  // namespace bitnet::cpu
