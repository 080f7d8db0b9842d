#pragma once
// y = W x for ternary W and the tokens of a prompt: LINEAR_TERNARY and LINEAR_TERNARY_GROUPED, all
// of them. One header, one definition of right.
//
// Panel    codes of a few rows are unpacked once, into a byte each, and serve every token. Beyond
//          that it is the other kernels' arithmetic in their order, so all return the same bits.
// Tables   integer sums of many tokens can be looked up instead (linear_panel_tables.inl), which
//          changes no bit of a whole row's sum; ops/faster.hpp finds out which is faster.
// Blocks   rows are as long as the caller likes: a call takes up to panel_size::k elements of them,
//          goes on from what is in y and says whether the row ends there.
// Shapes   W (rows, k) in {-1, 0, +1}, in rows or in tiles (linear_ternary.hpp,
//          linear_grouped.hpp), from an element on that is a multiple of 128; q (tokens, k) int8;
//          y (tokens, rows) f32, which between the blocks holds int32 sums where nothing has
//          groups.
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

// What a call may take.
struct panel_size {
  uint64_t k, tokens;  // elements of a row
};
inline constexpr panel_size usual_panel{2048, 128};
// Where nothing has groups.
inline constexpr panel_size rows_panel{4096, 128};
// Of linear_panel_amx where nothing has groups: its processors have second caches of 2 MB.
inline constexpr panel_size tiles_panel{4096, 256};
// linear_tables takes rows of any length, so many tokens at once, and no fewer rows than pay.
inline constexpr uint64_t tables_tokens = 128, fewest_table_rows = 256;
inline constexpr panel_size widest_panel = tiles_panel;

struct panel_tile {
  const uint8_t* w;
  uint64_t w_stride;    // bytes between rows, or between tiles
  uint64_t unit;        // bytes of a unit where w is in tiles; 0: it is in rows, and group is 0
  uint64_t skipped;     // rows of the first tile that come before those asked for
  uint64_t group;       // elements; 0: no groups of weights
  const float* scales;  // group 0: of each row, or one of the matrix
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
  void* room;  // panel_room_bytes of the caller's, at a line: too much for the stack of a thread
};

// Of panel_tile::room: what tables need, which have the largest.
inline constexpr uint64_t panel_room_bytes = uint64_t{563} << 10;

// What LDTILECFG reads.
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
void linear_panel_amx(const panel_tile&);           // these, AMX-INT8 and leave to use it
void linear_panel_neon(const panel_tile&);          // needs AArch64
void linear_panel_neon_dotprod(const panel_tile&);  // needs its dot products

// The same with tables wherever those are for it, else panels; need what linear_panel does.
void linear_tables_avx2(const panel_tile&);
void linear_tables_avxvnni(const panel_tile&);
void linear_tables_avx512(const panel_tile&);
void linear_tables_avx512vnni(const panel_tile&);

}  // namespace bitnet::cpu
