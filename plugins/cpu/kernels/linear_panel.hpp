#pragma once
// y = W x for ternary W and the tokens of a prompt: every LINEAR_TERNARY and
// LINEAR_TERNARY_GROUPED. One header, one definition of right.
//
// Panel    codes of a few rows are unpacked once, into a byte each, and serve every token. The rest
//          is the other kernels' arithmetic in their order, so all return the same bits.
// Tables   integer sums of many tokens can be looked up instead (linear_panel_tables.inl). A whole
//          row's sum keeps its bits; ops/faster.hpp measures which is faster.
// Blocks   rows may have any length: a call takes up to panel_size::k elements of them, continues
//          from the value of y (goes_on), and finishes y if the row ends there (ends).
// Shapes   W (rows, k) in {-1, 0, +1}, in rows or in tiles (linear_ternary.hpp,
//          linear_grouped.hpp), beginning at an element that is a multiple of 128; q (tokens, k)
//          int8; y (tokens, rows) f32. Without groups y holds int32 sums between blocks.
// Result   group, q_group 0:  the whole row's integer sum, made f32 and rounded, is divided by the
//            token's scale and multiplied by the matrix's; or multiplied by the row's and divided.
//          group only:        the sum across groups (linear_grouped.hpp, Order), divided by the
//            token's scale.
//          q_group only:      that sum, multiplied by the scale of the row or of the matrix.
//          both:              that sum.
// Needs    k a multiple of 4 and of both groups, which are multiples of 32 that divide one another
//          and, in tiles, divide 128 or are multiples of it. Tokens up to panel_size::tokens. Of
//          all blocks together k <= 2^22, so that no int32 sum overflows, whatever W's bytes are.

#include <cstdint>

namespace bitnet::cpu {

// Most that a call takes.
struct panel_size {
  uint64_t k, tokens;  // elements of a row
};
inline constexpr panel_size usual_panel{2048, 128};
// Without groups.
inline constexpr panel_size rows_panel{4096, 128};
// For linear_panel_amx without groups: its processors have second-level caches of 2 MB.
inline constexpr panel_size tiles_panel{4096, 256};
// linear_tables takes rows of any length. Tokens at once; fewest rows for which tables pay.
inline constexpr uint64_t tables_tokens = 128, fewest_table_rows = 256;
inline constexpr panel_size widest_panel = tiles_panel;

struct panel_tile {
  const uint8_t* w;
  uint64_t w_stride;    // bytes between rows, or between tiles
  uint64_t unit;        // bytes of a unit where w is in tiles; 0: it is in rows, and group is 0
  uint64_t skipped;     // rows of the first tile before the requested ones
  uint64_t group;       // elements; 0: no groups of weights
  const float* scales;  // group 0: one of each row, or one of the matrix
  bool one_scale;
  const int8_t* q;
  uint64_t q_stride;         // elements between tokens
  uint64_t q_group;          // elements; 0: no groups of activations
  const float* q_scales;     // (tokens, k / q_group), or one of each token
  uint64_t q_scales_stride;  // elements between tokens
  float* y;
  uint64_t y_stride;  // elements between tokens
  uint64_t k, rows, tokens;
  bool goes_on, ends;
  void* room;  // the caller's panel_room_bytes, at a line: too large for the stack of a thread
};

// Size of panel_tile::room: tables need the most.
inline constexpr uint64_t panel_room_bytes = uint64_t{563} << 10;

// The operand of LDTILECFG.
struct tile_shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

void linear_panel_sse41(const panel_tile&);         // needs SSE4.1
void linear_panel_avx2(const panel_tile&);          // needs AVX2
void linear_panel_avxvnni(const panel_tile&);       // needs AVX2 and AVX-VNNI
void linear_panel_avx512(const panel_tile&);        // needs AVX-512 F, BW and VL
void linear_panel_avx512vnni(const panel_tile&);    // needs AVX-512 F, BW, VL and VNNI
void linear_panel_amx(const panel_tile&);           // these, AMX-INT8 and permission to use it
void linear_panel_neon(const panel_tile&);          // needs AArch64
void linear_panel_neon_dotprod(const panel_tile&);  // needs AArch64 with dot products

// As linear_panel_*, but use tables where these apply. They need what linear_panel_* need.
void linear_tables_avx2(const panel_tile&);
void linear_tables_avxvnni(const panel_tile&);
void linear_tables_avx512(const panel_tile&);
void linear_tables_avx512vnni(const panel_tile&);

}  // namespace bitnet::cpu
