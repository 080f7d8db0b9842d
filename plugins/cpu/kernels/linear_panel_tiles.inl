// The products of linear_panel.hpp by matrix registers (tiles) of 16 rows of 64 bytes, eight of
// them, beside AVX-512 VNNI. Activations as they lie are one operand, a row of it 64 elements of a
// token; the panel as it lies is the other, a row of it four elements of 16 rows. 32 tokens and 32
// rows have their sums in four tiles, through a whole block or group; what does not fill a tile is
// multiplied as linear_panel_avx512vnni.cpp does. Integers only: the floats, and their order, are
// those of linear_panel_vector.inl. A form includes this inside its anonymous namespace; before
// that it defines
//   void configure(const tile_shapes*)     eight tiles, all zero; the struct is in linear_panel.hpp
//   void release()                         none any more
//   void load_tile<Tile>(const void* from, uint64_t stride), store_tile<Tile>(void* to, stride)
//                                          its rows, so many bytes apart
//   void add_tile_products<C, A, B>()      C += A B, of int8 and uint8
// Kernels only, no shared inline functions.

#include "registers_avx512.inl"

using part = __m512i;  // int32

// _mm512_dpbusd_epi32, of which g++ 12 copies the sums.
inline part dot(part sums, vec codes, vec q) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(q));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(64)));
  return reinterpret_cast<wide>(sums);
}

constexpr uint64_t registers = 2, at_once = 32, steps_of_part = 0, tokens_of_tile = 16;

#include "linear_panel_vector.inl"

// Sums of tokens and registers of rows, activations of tokens, codes of registers of rows.
constexpr int sums_00 = 0, sums_01 = 1, sums_10 = 2, sums_11 = 3, q_0 = 4, q_1 = 5, codes_0 = 6,
              codes_1 = 7;

// Times four elements that a tile has: of groups that 64 elements do not divide, half of one.
inline uint64_t steps_of_tile(const panel_tile& a) {
  const uint64_t shorter = a.group == 0     ? a.q_group
                           : a.q_group == 0 ? a.group
                                            : least(a.group, a.q_group);
  return shorter % 64 == 0 ? 16 : 8;
}

// Less than a tile: eight tokens at a time, whose sums are registers again.
template <uint64_t Tokens>
inline void add_rest(const uint8_t* codes, uint64_t steps, const int8_t* q, uint64_t stride,
                     wide (&sums)[registers][Tokens]) {
  constexpr uint64_t few = 8;
  for (uint64_t t = 0; t < Tokens; t += few) {
    wide some[registers][few];
    for (uint64_t r = 0; r < registers; ++r) std::memcpy(some[r], sums[r] + t, sizeof some[r]);
    add_part<few>(codes, steps, q + t * stride, stride, some);
    for (uint64_t r = 0; r < registers; ++r) std::memcpy(sums[r] + t, some[r], sizeof some[r]);
  }
}

template <uint64_t Tokens>
inline void add_tiles(const panel_tile& a, panel& w, uint64_t first_step, uint64_t steps,
                      uint64_t t0, wide (&sums)[registers][Tokens]) {
  constexpr bool two = Tokens == 2 * tokens_of_tile;
  static_assert(two || Tokens == tokens_of_tile);
  constexpr uint64_t w_stride = registers * line, more = two ? tokens_of_tile : 0;
  const int8_t* q = a.q + t0 * a.q_stride + 4 * first_step;
  const uint8_t* codes = w.codes[first_step][0];
  const uint64_t each = steps_of_tile(a);
  load_tile<sums_00>(sums[0], line);
  load_tile<sums_01>(sums[1], line);
  if constexpr (two) {
    load_tile<sums_10>(sums[0] + more, line);
    load_tile<sums_11>(sums[1] + more, line);
  }
  uint64_t i = 0;
  for (; i + each <= steps; i += each) {
    if (i % steps_of_line == 0) w.next.ask();
    load_tile<codes_0>(codes + i * w_stride, w_stride);
    load_tile<codes_1>(codes + i * w_stride + line, w_stride);
    load_tile<q_0>(q + 4 * i, a.q_stride);
    add_tile_products<sums_00, q_0, codes_0>();
    add_tile_products<sums_01, q_0, codes_1>();
    if constexpr (two) {
      load_tile<q_1>(q + more * a.q_stride + 4 * i, a.q_stride);
      add_tile_products<sums_10, q_1, codes_0>();
      add_tile_products<sums_11, q_1, codes_1>();
    }
  }
  store_tile<sums_00>(sums[0], line);
  store_tile<sums_01>(sums[1], line);
  if constexpr (two) {
    store_tile<sums_10>(sums[0] + more, line);
    store_tile<sums_11>(sums[1] + more, line);
  }
  if (i < steps)
    add_rest<Tokens>(codes + i * w_stride, steps - i, q + 4 * i, a.q_stride, sums);
}

// Tiles are this thread's for the length of a call: where they are in use, the operating system
// saves 8 KiB more of it whenever another has the core.
void all_in_tiles(const panel_tile& a) {
  const uint64_t each = steps_of_tile(a);
  tile_shapes shapes{};
  shapes.palette = 1;
  for (int i = sums_00; i <= codes_1; ++i) {
    const bool is_q = i == q_0 || i == q_1, is_codes = i == codes_0 || i == codes_1;
    shapes.rows[i] = static_cast<uint8_t>(is_codes ? each : tokens_of_tile);
    shapes.row_bytes[i] = static_cast<uint16_t>(is_q ? 4 * each : line);
  }
  configure(&shapes);
  all(a);
  release();
}
