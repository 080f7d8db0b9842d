#pragma once
// AMD's matrix cores, from the layouts that AMD's instruction set documents define, and not from
// what kernels expect of them: D (16, 16) += A (16, k) B (k, 16), signed bytes, int32 that wraps.
// simt.hpp includes it.
//
// MFMA  waves of 64, k 16 or 32: a lane has k / 4 bytes. A[i][k] is in lane i + 16 (k / (K / 4)),
//       B[k][j] in lane j + 16 (k / (K / 4)), D[i][j] in register i % 4 of lane j + 16 (i / 4).
// WMMA  waves of 32, k 16, RDNA 3: a lane has all 16 bytes of A[i] for i = lane % 16, of B[.][j]
//       the same. Lanes 16 to 31 must have what lanes 0 to 15 have. D[i][j] is in register i / 2 of
//       lane j + 16 (i % 2).
//       RDNA 4: a lane has 8 bytes. A[i][k] is in lane i + 16 (k / 8), B[k][j] in lane
//       j + 16 (k / 8), D[i][j] in register i % 8 of lane j + 16 (i / 8).

namespace simt {

// Words of a lane: which element of D register r of a lane is.
template <uint32_t Words>
struct matrix_core {
  static constexpr bool is_wmma = lanes == 32;
  static constexpr bool halves_are_equal = is_wmma && Words == 4;  // RDNA 3
  static constexpr uint32_t k = is_wmma ? 16 : 16 * Words;
  static constexpr uint32_t registers = is_wmma ? 8 : 4;
  static constexpr uint32_t bytes = 4 * Words;  // of k, that a lane has
  static_assert(is_wmma ? Words == 2 || Words == 4 : Words == 1 || Words == 2);

  static bool has(uint32_t lane, uint32_t r, uint32_t i) {
    if (halves_are_equal) return i / 2 == r && i % 2 == lane / 16;
    if (is_wmma) return i % 8 == r && i / 8 == lane / 16;
    return i % 4 == r && i / 4 == lane / 16;
  }
  static uint32_t row(uint32_t lane, uint32_t r) {
    for (uint32_t i = 0; i < 16; ++i)
      if (has(lane, r, i)) return i;
    __builtin_trap();
  }
  static uint32_t column(uint32_t lane) { return lane % 16; }
  // Where element `at` of k of row or column `outer` lies.
  static uint32_t lane_of(uint32_t outer, uint32_t at) { return outer + 16 * (at / bytes); }
  static uint32_t byte_of(uint32_t at) { return at % bytes; }
};

}  // namespace simt

template <uint32_t Words, uint32_t Registers>
void simt_multiply_16x16(int (&d)[Registers], const uint32_t (&a)[Words],
                         const uint32_t (&b)[Words], int line = __builtin_LINE()) {
  using core = simt::matrix_core<Words>;
  static_assert(Registers == core::registers);
  simt_multiply(a, b, line, [&](uint32_t lane, auto of) {
    if (core::halves_are_equal && (std::memcmp(of(lane % 16)->a, a, sizeof a) != 0 ||
                                   std::memcmp(of(lane % 16)->b, b, sizeof b) != 0))
      __builtin_trap();
    for (uint32_t r = 0; r < Registers; ++r) {
      const uint32_t i = core::row(lane, r), j = core::column(lane);
      for (uint32_t at = 0; at < core::k; at += 4) {  // the four bytes of a word
        const uint32_t word = core::byte_of(at) / 4;
        d[r] = __dp4a(static_cast<int>(of(core::lane_of(i, at))->a[word]),
                      static_cast<int>(of(core::lane_of(j, at))->b[word]), d[r]);
      }
    }
  });
}
