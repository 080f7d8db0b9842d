#pragma once
// The primitives as plain functions. What each means is defined in bitnet/abi/ops.h.
//
// Shapes   rows are contiguous f32 unless said otherwise.
// Exact    a row's result depends on that row alone, so any cut into batches and threads gives the
//          same bits.

#include <cstdint>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

// One row, x and y (k).
void embed_row(const sdk::weight& table, uint64_t token, float* y);

// The angles of the positions of some tokens; zeroed before its first use. A worker keeps one: all
// layers of a step turn by the same angles.
struct rope_angles {
  static constexpr uint64_t max_pairs = 256, tokens = 32;
  struct turn {
    float cosines[max_pairs], sines[max_pairs];
    int32_t position;
    uint32_t of;  // `frequencies_known` when it was computed; 0: never
  };
  double frequencies[max_pairs];  // radians per position
  uint64_t pairs;                 // 0: nothing is known yet
  float theta, scale;
  const sdk::weight* divisors;
  uint32_t frequencies_known;  // how often they were computed
  turn of_token[tokens];       // of token t in place t % tokens
};
// Behind its angles a worker keeps its own copies of quantised rows, of at most so many rows: with
// more, quantising them takes longer than the barrier that it saves. In order: a cache line with
// their scales, one row in f32, the codes of all, and a line that kernels may read past them.
inline constexpr uint64_t most_own_rows = 4;
inline constexpr uint64_t keep_line = 64;
static_assert(most_own_rows * sizeof(float) <= keep_line);
inline constexpr uint64_t keep_row_at =
    (sizeof(rope_angles) + keep_line - 1) / keep_line * keep_line;
// Row `token` of the step.
void rope_row(const isa_form& isa, const float* x, uint64_t token, int32_t position,
              const sdk::call& attributes, rope_angles& known, float* y);

// k and v (width of the pool), stored at `slot` in the pool's types.
void kv_write_row(const isa_form& isa, const sdk::kv_storage& kv, uint64_t layer, uint64_t slot,
                  const float* k, const float* v);

// Heads [first, last) of token t, which share one KV head; scores (last - first, context).
void attention_heads(const isa_form& isa, const sdk::call& c, uint64_t t, uint64_t first,
                     uint64_t last, float* scores);
// Heads [first, last) of all tokens, numbered token by token.
void attention(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last,
               float* scores);
// The same bits, of a prompt: KV heads of all tokens, numbered KV head by KV head. Keys and values
// are read once for many tokens, where a sequence's follow one another.
void attention_of_tokens(const isa_form& isa, const sdk::call& c, const sdk::share& s);
// From so many tokens on, that one is used.
inline constexpr uint64_t fewest_attending = 4;
// Elements of scratch that hold the scores of many tokens: a part of the second cache.
inline constexpr uint64_t most_scores = uint64_t{1} << 17;

// Which code computes the product with a ternary weight. Kernel ids are chosen by the same
// function, so that they show what runs.
enum class ternary_path : uint8_t {
  rows,      // one scale for the matrix or for each row: isa_form::ternary
  groups,    // scale groups of a multiple of 32: isa_form::grouped
  reference  // other groups, which no file has: linear_ternary_ref
};
ternary_path path_of(const sdk::weight& w);

// From so many tokens on, products with rows of one scale take panels; from so many on those of
// groups. For fewer, unpacking takes longer than it saves.
inline constexpr uint64_t fewest_panel_tokens = 16, fewest_in_groups = 32;
// The same where panels are of another instruction set than what they take the place of: AMX.
inline constexpr uint64_t fewest_tile_tokens = 4, fewest_tile_tokens_in_groups = 32;
// Whether there are panels for such a product: of one scale for the matrix or for each row, and of
// tiles. What groups of activations change is not known here: those of 2048 elements or less, which
// are a power of two times 32, fit.
bool panels_fit_rows(const sdk::weight& w);
bool panels_fit_tiles(const sdk::weight& w);
// What a worker's products need beside their operands, at a line: share::scratch has it, since it
// is too much for the stack of a thread. Its content has no use afterwards.
inline constexpr uint64_t room_bytes = panel_room_bytes;
// Columns [first, last) of y for all rows; q (rows, k) i8, s (rows), y (rows, w.m).
void linear_ternary(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                    uint64_t rows, uint64_t first, uint64_t last, float* y, void* room);
// Whether this CPU has a kernel for rows of one scale with five weights in a byte.
bool has_fives(const isa_form& isa);
// linear_ternary from such rows, linear_fives.hpp's of w.
void linear_ternary_fives(const isa_form& isa, const sdk::weight& w, const uint8_t* fives,
                          const int8_t* q, const float* s, uint64_t rows, uint64_t first,
                          uint64_t last, float* y);
// How copies of rows are written (row_copies.hpp): so where that was found faster (tuning.hpp),
// else as they are.
sdk::copy_code fives_code(const isa_form& isa);
// The same from the definition alone; the judge of the tests.
void linear_ternary_ref(const sdk::weight& w, const int8_t* q, const float* s, uint64_t rows,
                        uint64_t first, uint64_t last, float* y);
// LINEAR_TERNARY_GROUPED: q (rows, k) i8 in `groups` groups, d (rows, groups).
void linear_ternary_grouped(const isa_form& isa, const sdk::weight& w, const int8_t* q,
                            const float* d, uint64_t groups, uint64_t rows, uint64_t first,
                            uint64_t last, float* y, void* room);
// Whether isa_form::grouped computes it; else the scalar one does: long rows of groups that neither
// divide a packed group nor are multiples of it cannot be cut. No file has them.
bool grouped_has_vector_form(const sdk::weight& w);
// SHORT_CONV of columns [first, last) and DELTA_RULE of value heads [first, last), of all tokens.
void short_conv(const sdk::call& c, uint64_t first, uint64_t last);
void delta_rule(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last);
// y (k) = a row of any dense format.
void decode_row(const isa_form& isa, const sdk::weight& w, uint64_t row, float* y);
// Needs the first dense_room_bytes of a room.
inline constexpr uint64_t dense_room_bytes = uint64_t{80} << 10;
void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                  uint64_t first, uint64_t last, float* y, void* room);

}  // namespace bitnet::cpu
