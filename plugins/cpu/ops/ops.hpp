#pragma once
// The primitives as plain functions. bitnet/abi/ops.h defines them.
//
// Shapes   rows are contiguous f32 unless said otherwise.
// Exact    a row's result depends on that row alone, so any split into batches and threads gives
//          the same bits.

#include <cstdint>

#include "bitnet/sdk/interpreter/kernel.hpp"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

// Indices of sdk::call::ints, as bitnet/abi/ops.h defines them.
namespace attention_ints {
enum : uint8_t { layer, n_heads, n_kv_heads, head_dim, window };
}
namespace hadamard_ints {
enum : uint8_t { block, place };  // place: BITNET_HADAMARD_*
}
namespace rope_ints {
enum : uint8_t { heads, head_dim, dims, pairing };  // pairing: BITNET_ROPE_*
}

// One row, x and y (k).
void embed_row(const sdk::weight& table, uint64_t token, float* y);

// Cached angles for the positions of some tokens; zeroed before first use. Each worker keeps one,
// since all layers of a step use the same angles.
struct rope_angles {
  // Pairs of elements of a head, and tokens of a step. They bound the memory of a worker to 67 KiB.
  // With more pairs, and in steps of more tokens, angles are computed again.
  static constexpr uint64_t max_pairs = 256, tokens = 32;
  struct rotation {
    float cosines[max_pairs], sines[max_pairs];
    int32_t position;
    uint32_t of;  // `frequencies_known` when it was computed; 0: never
  };
  double frequencies[max_pairs];  // radians per position
  uint64_t pairs;                 // 0: no frequencies are known yet
  float theta, scale;
  const sdk::weight* divisors;
  uint32_t frequencies_known;  // number of times they were computed
  rotation of_token[tokens];   // token t is in place t % tokens
};
// After its angles a worker keeps its own copies of at most most_own_rows quantised rows: with
// more, quantising them takes longer than the barrier that it saves. In order: a cache line with
// their scales, one row in f32, the codes of all, and a line that kernels may read past them.
inline constexpr uint64_t most_own_rows = 4;
inline constexpr uint64_t keep_line = 64;  // bytes
static_assert(most_own_rows * sizeof(float) <= keep_line);
inline constexpr uint64_t keep_row_at =
    (sizeof(rope_angles) + keep_line - 1) / keep_line * keep_line;
// Row `token` of the step.
void rope_row(const isa_form& isa, const float* x, uint64_t token, int32_t position,
              const sdk::call& attributes, rope_angles& known, float* y);

// Stores k and v (width of the pool) at `slot` in the pool's types.
void kv_write_row(const isa_form& isa, const sdk::kv_storage& kv, uint64_t layer, uint64_t slot,
                  const float* k, const float* v);

// Heads [first, last) of token t, which share one KV head; scores (last - first, context).
void attention_heads(const isa_form& isa, const sdk::call& c, uint64_t t, uint64_t first,
                     uint64_t last, float* scores);
// Heads [first, last) of all tokens, numbered token by token.
void attention(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last,
               float* scores);
// The same bits for the tokens of a prompt: KV heads of all tokens, numbered KV head by KV head.
// Keys and values are read once for many adjacent tokens of a sequence.
void attention_of_tokens(const isa_form& isa, const sdk::call& c, const sdk::share& s);
// Fewest tokens for attention_of_tokens: with fewer, turning keys takes longer than it saves.
inline constexpr uint64_t fewest_attending = 4;
// Floats of scratch for the scores of many tokens: 512 KiB, a part of the second-level cache.
inline constexpr uint64_t most_scores = uint64_t{1} << 17;

// The code that computes a product with a ternary weight. Kernel ids are chosen by the same
// function, so they show what runs.
enum class ternary_path : uint8_t {
  rows,      // one scale for the matrix or for each row: isa_form::ternary
  groups,    // scale groups of a multiple of 32: isa_form::grouped
  reference  // other groups, which occur in no file: linear_ternary_ref
};
ternary_path path_of(const sdk::weight& w);

// What a call of a product computes: columns [first, last) of y (tokens, w.m), for all tokens.
struct output_columns {
  uint64_t tokens, first, last;
  float* y;

  [[nodiscard]] uint64_t count() const { return last - first; }
};

// Fewest tokens for panels: for rows of one scale, and for groups. With fewer, unpacking takes
// longer than it saves.
inline constexpr uint64_t fewest_panel_tokens = 16, fewest_in_groups = 32;
// The same for AMX panels, where the other kernels use another instruction set.
inline constexpr uint64_t fewest_tile_tokens = 4, fewest_tile_tokens_in_groups = 32;
// True if panels fit such a product: with one scale for the matrix or for each row; with tiles.
// Groups of activations are unknown here: groups of at most 2048 elements that are a power of two
// times 32 fit.
bool panels_fit_rows(const sdk::weight& w);
bool panels_fit_tiles(const sdk::weight& w);
// Scratch of a worker's product, at a line, in share::scratch because it is too large for the stack
// of a thread. Its content is undefined between calls.
inline constexpr uint64_t room_bytes = panel_room_bytes;
// q (tokens, k) i8, s (tokens).
void linear_ternary(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                    const output_columns& columns, void* room);
// True if this CPU has a kernel for rows of one scale with five weights in a byte.
bool has_fives(const isa_form& isa);
// linear_ternary of a coded copy of w's rows (linear_fives.hpp).
void linear_ternary_fives(const isa_form& isa, const sdk::weight& w, const uint8_t* fives,
                          const int8_t* q, const float* s, const output_columns& columns);
// How copies of rows are written (row_copies.hpp): in this code if it was measured as faster
// (tuning.hpp), else unchanged.
sdk::copy_code fives_code(const isa_form& isa);
// Computed from the definition alone. Tests compare with it.
void linear_ternary_ref(const sdk::weight& w, const int8_t* q, const float* s,
                        const output_columns& columns);
// LINEAR_TERNARY_GROUPED: q (tokens, k) i8 in `groups` groups, d (tokens, groups).
void linear_ternary_grouped(const isa_form& isa, const sdk::weight& w, const int8_t* q,
                            const float* d, uint64_t groups, const output_columns& columns,
                            void* room);
// True if isa_form::grouped computes it. Else the scalar form does: long rows cannot be cut if
// their groups neither divide a packed group nor are multiples of it. No file has such groups.
bool grouped_has_vector_form(const sdk::weight& w);
// Of all tokens: SHORT_CONV of columns [first, last), DELTA_RULE of value heads [first, last).
void short_conv(const sdk::call& c, uint64_t first, uint64_t last);
void delta_rule(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last);
// y (k) = a row of any dense format.
void decode_row(const isa_form& isa, const sdk::weight& w, uint64_t row, float* y);
// Needs the first dense_room_bytes of a room: 64 KiB of decoded elements and 16 KiB of sums.
inline constexpr uint64_t dense_room_bytes = uint64_t{80} << 10;
void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x,
                  const output_columns& columns, void* room);

}  // namespace bitnet::cpu
