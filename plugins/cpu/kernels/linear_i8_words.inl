// The sums of linear_i8.hpp where int16 products are added in pairs: the one text behind the forms,
// which include it inside their anonymous namespace. Before that a form defines
//   wide           a register of int32;  `lanes` how many
//   wide madd(const uint8_t* w, const int16_t* x)   2 * lanes products of w - 128 and x, in pairs
// Kernels only, no shared inline functions.

#include "ahead.inl"

// A row of 8192 is shared by 8 lanes or more: 1024 * 127 * 16256 is less than 2^31.
constexpr uint64_t parts = lanes < 8 ? 8 / lanes : 1;

inline int64_t total(wide sums) {
  int64_t sum = 0;
  for (uint64_t i = 0; i < lanes; ++i) sum += sums[i];
  return sum;
}

inline int64_t total(const wide (&sums)[parts]) {
  int64_t sum = 0;
  for (const wide& part : sums) sum += total(part);
  return sum;
}

// One row after the other, so that the weights are one stream of memory (ahead.inl).

inline void all(const i8_tile& a) {
  constexpr uint64_t step = 2 * lanes * parts;
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    wide sums[parts] = {};
    for (uint64_t k = 0; k < a.k; k += step) {
      if (k % 64 == 0) ask_ahead<1, 64>(w, k / 64, a.ahead);
      for (uint64_t p = 0; p < parts; ++p)
        sums[p] += madd(w + k + 2 * lanes * p, a.x + k + 2 * lanes * p);
    }
    a.sums[r] = total(sums);
  }
}

using octets = uint8_t __attribute__((vector_size(16)));

// The same for codes of 4 bits, made those of int8 first.
inline void all_i4(const i8_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    wide sums[parts] = {};
    for (uint64_t k = 0; k < a.k; k += 128) {
      ask_ahead<1, 64>(w, k / 128, a.ahead);
      octets codes[8];
      for (uint64_t at = 0; at < 4; ++at) {
        constexpr uint8_t low_half = 15, recentred = 128 - 8;
        octets pairs;
        __builtin_memcpy(&pairs, w + k / 2 + 16 * at, sizeof pairs);
        codes[at] = (pairs & low_half) + recentred;
        codes[at + 4] = (pairs >> 4) + recentred;
      }
      const auto* bytes = reinterpret_cast<const uint8_t*>(codes);
      for (uint64_t at = 0; at < 128; at += 2 * lanes * parts)
        for (uint64_t p = 0; p < parts; ++p)
          sums[p] += madd(bytes + at + 2 * lanes * p, a.x + k + at + 2 * lanes * p);
    }
    a.sums[r] = total(sums);
  }
}
