#pragma once
// The kernels of GPU plugins: their bindings, parameters and results. The kernels that every plugin
// brings are the same in GLSL, OpenCL C 1.2 and WGSL, which need 32-bit words and f32 arithmetic
// only, no f16 or 64-bit types, and in the language that CUDA and HIP share (simt/).
//
// Memory   every binding is an array of 32-bit words, little-endian.
//            f32 value (rows, k)   row r at word r * k
//            i8 value (rows, k)    row r at word r * stride(k), stride(k) = ceil(k / 128) * 32;
//                                  four elements in a word, the first in the low byte; zeros past k
//            step header           words: n_tokens, n_outputs, window, window_keep, top_logits,
//                                  and 1 where the largest logits are listed
//            i32 facts of a step   as BITNET_PORT_* in bitnet/abi/program.h
//            matrix (m, k)         rows of whole words, one after another, see row_words(); a
//                                  binding holds the rows [first_row, first_row + n_rows) of it
//            ternary scales        f32, those of the whole matrix
//            KV, keys or values of one layer
//                                  row ((block * n_kv_heads + head) * block_tokens + offset) at
//                                  word row * kv_row_words()
//            states                f32, one after another, state_words words to each
// Matrices f32         one element to a word
//          f16, bf16   two to a word, the first in the low half
//          ternary2    as in bitnet/abi/tensor.h
//          q8_0, q4_0  blocks of 32: a word with the f16 d in its low half, then the quants:
//                      9 and 5 words
//          q4_k        blocks of 256 of 36 words, as in GGUF
//          q6_k        blocks of 256 of 53 words: as in GGUF, two bytes of padding
// KV rows  f32, f16    as matrices, the row padded to whole words
//          q8_0, q4_0  as in matrices
//
// Grids    rows of work in y, the rest in x. Kernels walk their ranges in strides of the grid, so
//          that any grid computes everything; rows past the count in the step header are left
//          alone. A recording may therefore be made for more rows than a step has.
// Rounding + - * round to nearest even and are not contracted. Division and square root may be off
//          by 2.5 ulp. The divisions that codes are made with (127 / a in act_quant, a / 127 in
//          act_quant_groups) are correctly rounded, by integer long division.
// Order    sums do not depend on rows, grid or what else runs: the same row has the same bits in
//          any step.

#include <cstdint>

#include "bitnet/abi/tensor.h"
#include "kernel_list.hpp"

namespace bitnet::gpu {

enum class kernel_id : uint8_t {
#define BITNET_GPU_KERNEL_ID(name, read, written) name,
  BITNET_GPU_KERNELS(BITNET_GPU_KERNEL_ID)
#undef BITNET_GPU_KERNEL_ID
      count,
  every = attn_tiles  // number of kernels that every plugin brings
};
#define BITNET_GPU_KERNEL_ONE(name, read, written) +1
static_assert(static_cast<uint32_t>(kernel_id::every) ==
                  0 BITNET_GPU_KERNELS_OF_ALL(BITNET_GPU_KERNEL_ONE),
              "attn_tiles is not the first row of BITNET_GPU_KERNELS_OF_SOME");
#undef BITNET_GPU_KERNEL_ONE

struct kernel_row {
  const char* name;
  uint32_t read, written;  // bindings
};
inline constexpr kernel_row kernel_rows[] = {
#define BITNET_GPU_KERNEL_ROW(name, read, written) {#name, read, written},
    BITNET_GPU_KERNELS(BITNET_GPU_KERNEL_ROW)
#undef BITNET_GPU_KERNEL_ROW
};
constexpr const kernel_row& row_of(kernel_id id) noexcept {
  return kernel_rows[static_cast<uint32_t>(id)];
}
// Number of bindings of a kernel, with the header.
constexpr uint32_t bindings_of(kernel_id id) noexcept {
  return row_of(id).read + row_of(id).written;
}

// Values that a kernel gets when it is compiled: constants in GLSL and WGSL, macros in OpenCL C.
// Kernels of simt/ get them with each launch; a function's name contains those that select code.
//   0  threads of a work group, a power of two
//   1 to 4  by kernel, see below; 0 where a kernel has none
struct kernel_spec {
  kernel_id id{};
  uint32_t constants[5] = {};
  bool operator==(const kernel_spec&) const = default;
};

inline constexpr uint32_t max_params = 32;            // words
inline constexpr uint32_t max_kernel_bindings = 8;    // of the kernels that every plugin brings
inline constexpr uint32_t most_kernel_bindings = 16;  // of all

// The first member of every parameter struct: which word of the step header counts the rows.
inline constexpr uint32_t rows_are_tokens = 0, rows_are_outputs = 1;

constexpr uint64_t i8_row_words(uint64_t k) noexcept {
  return (k + 127) / 128 * 32;
}

// Bindings: header, tokens, matrix, scales (any binding if not ternary), y (rows, k)
// Constant 1: BITNET_FORMAT_* of the matrix. Writes only rows whose token is in the binding's rows.
// y row t = row tokens[t], times scales[(row * k + i) / scale_group], scales[0] if that is 0.
struct embed_gather_params {
  uint32_t rows, k, row_words, first_row, n_rows, scale_group;
};

// Bindings: header, x (rows, heads * k), weight f32 (k), y like x. One group to a head of a row.
// The sum of squares is compensated, so that its error is that of a few roundings in f32.
struct rms_norm_params {
  uint32_t rows, k;
  float eps;
  uint32_t heads;
};

// Bindings: header, x (rows, k), q i8 (rows, k), s f32 (rows). One group to a row. The result is
// that of ops.h, bit for bit; the maximum ignores NaN, and a NaN becomes any value.
struct act_quant_params {
  uint32_t rows, k;
};

// Bindings: header, x (rows, k), q i8 (rows, k), d f32 (rows, k / group). A group is 32, 64 or
// 128 elements. One thread to a group, or to four elements (quirks::quantises_by_words). The result
// is that of ops.h, bit for bit; NaN as in act_quant.
struct act_quant_groups_params {
  uint32_t rows, k, group;
};

// Bindings: header, x (rows, k), weight f32 (k) or any, y (rows, k), which may be x
// Constant 1: elements of a tile, a power of two that fits the group's memory. One group to a tile
// of a row.
// One pass of a HADAMARD transform: for d = from, 2 * from .. to / 2 each pair (i, i + d) with (i &
// d) == 0 becomes its sum and its difference. before 1: the input is first multiplied by the
// weight. after 1: the result is multiplied by scale, then by the weight. The bits are those of
// ops.h.
// to is a power of two that divides k. Either from is 1, and to may be less than a tile; or from is
// at least a tile and to / from at most one.
struct hadamard_params {
  uint32_t rows, k, from, to, before, after;
  float scale;
};

// Bindings: header, q i8 (rows, k), s f32 (rows), matrix, scales, residual (rows, m), y (rows, m)
// Constant 1: threads that share a row of the matrix (1: with groups of any kind); 2: tokens that a
// group takes together; 3: rows of the matrix that a thread takes; 4: activations that share a
// factor, 32, 64 or 128; 0: one factor to a row. With factors s is f32 (rows, k / constant 4).
// A group takes constant 0 / constant 1 * constant 3 rows of the matrix (x) and constant 2 tokens
// (y). add 1: the residual is added to y; with 0 it is not read.
// scale_group 0: y = (f32)sum / s * scales[0]; else it is a multiple of 4, and y is the sum of
// (f32)sum * scale over the groups, ascending, divided by s. With factors y has the bits that ops.h
// defines for LINEAR_TERNARY_GROUPED. m is the width of y; the binding's rows are its columns
// first_row to first_row + n_rows.
struct linear_ternary_params {
  uint32_t rows, k, m, row_words, first_row, n_rows, scale_group, add;
};

// Bindings: header, x f32 (rows, k), matrix, y (rows, m)
// Constant 1: threads that share a row of the matrix; 2: tokens that a group takes together; 3:
// BITNET_FORMAT_* of the matrix. Groups as in linear_ternary.
struct linear_dense_params {
  uint32_t rows, k, m, row_words, first_row, n_rows;
};

// Bindings: header, x (rows, heads * head_dim), rotations, y like x. x threads: one to a pair or a
// copied element. rotations: f32 (rows, pairs, 2), cosine and sine of each token, made by the host.
// neox: pairs (i, i + pairs), else (2i, 2i + 1); dimensions from 2 * pairs on are copied.
struct rope_params {
  uint32_t rows, heads, head_dim, pairs, neox;
};

// Bindings: header, slots, k (rows, n_kv_heads * head_dim), v like k, rotations (as in rope, or
//           any), keys, values
// Constant 1, 2: BITNET_DTYPE_* of keys and values; 3: 1 = k is rotated first, with the bits of
// rope. One thread to a KV row's word (f32, f16) or block (q8_0, q4_0); x walks over the words and
// blocks of keys, then those of values.
struct kv_write_params {
  uint32_t rows, n_kv_heads, head_dim, block_tokens, pairs, neox;
};

// Bindings: header, q (rows, n_heads * head_dim), positions, sequences, block_tables, keys, values,
//           y like q
// Constant 1, 2: BITNET_DTYPE_* of keys and values; 3: elements of y that a thread keeps,
// ceil(head_dim / constant 0). One group to a token (y) and head (x).
// A token sees the positions that bitnet_step defines; if window is not 0, only those less than
// window before its own. They are taken ascending, in tiles of constant 0.
struct attn_paged_params {
  uint32_t rows, n_heads, n_kv_heads, head_dim, block_tokens, max_blocks;
  float scale;
  uint32_t window;  // positions
};

// Attention by tiles of rows and parts of the context; the bits do not depend on the tiles. Part i
// is the seen positions in [64 i, 64 i + 64). A product of a row and a key is two sums, of the even
// and the odd sixteens of a head, then their sum times the scale. A part has its largest score, w =
// exp(score - largest) of each seen position, the sum of w, and the sums of w * value, ascending.
// Sums of products are fused multiply-adds. Parts are merged ascending: the sums so far and those
// of the part are each multiplied by exp(own largest score - the larger of both).
inline constexpr uint32_t attn_part = 64;  // positions

// Bindings: as attn_paged; or parts f32 (rows, n_heads, parts, head_dim + 2) in place of y
// Constant 1, 2: BITNET_DTYPE_* of keys and values; 3: rows of a tile, 4, 8 or 16; 4: head_dim
// A group takes a tile: adjacent tokens of one sequence and heads of one KV head, as many as the
// tile has rows. y: tokens. x: KV heads, each with attn_tile_shares() groups. parts 0: the group
// takes the whole context and writes y. Else x has `parts` times as many groups; they share out the
// seen parts and write the sums, largest score and total of each.
struct attn_tiles_params {
  uint32_t rows, n_heads, n_kv_heads, head_dim, block_tokens, max_blocks;
  float scale;
  uint32_t window;  // positions
  uint32_t parts;
};

// Bindings: header, positions, parts as attn_tiles writes them, y (rows, n_heads * head_dim)
// One group to a token (y) and head (x).
struct attn_merge_params {
  uint32_t rows, n_heads, head_dim, window, parts;
};

// Bindings: header, q (rows, n_heads * head_dim), k (rows, n_kv_heads * head_dim), v like k,
//           rotations as in rope, positions, sequences, slots, block_tables, weights f32 (head_dim)
//           of the norms of q and of k, or any, keys, values, parts as in attn_tiles, tickets u32
//           (n_kv_heads), y like q
// Constants as in attn_tiles. For steps of one token, and models in which one tile has all heads of
// a KV head. The bits of rope of q and of k, kv_write, attn_tiles and attn_merge; norms 1: of
// rms_norm of the heads of q and of k before these. x: KV heads, each with `parts` groups, or one
// if that is 0. The group that takes the token's own position writes its key and its value first.
// If there are parts, the group that finishes the last one of a KV head merges them: it is the one
// that takes the last ticket. Tickets are zeros before and after. parts 0: parts and tickets are
// any. Where few parts are seen, two groups share the heads of a KV head; a single part is not
// merged and takes no ticket.
struct attn_token_params {
  uint32_t rows, n_heads, n_kv_heads, head_dim, block_tokens, max_blocks;
  float scale;
  uint32_t window;  // positions
  uint32_t parts, pairs, neox, norms;
  float eps_of_q, eps_of_k;
};

// Attention whose factors are f16, in programs that permit it (bitnet_program_options::precisions),
// for keys and values of f16: q times a power of two, rounded to nearest even; and 2^15 times the
// weights 2^(score * log2(e) - largest so far), rounded. Products are exact; sums, totals of
// unrounded weights, and the merging of stages of 32 or 64 positions are f32.
//
// Power    it moves the largest finite magnitude of a head of q into [2^14, 2^15), or lower if that
//          is below 2^-46. So no element becomes infinite, and elements below f16's normal range
//          are below 2^-28 of the largest.
// Exact    the hardware decides the order and rounding of the sums. Of finite keys and values, a
//          row has the same bits in every step that runs this kernel.
//
// Bindings and constants: as in attn_tiles, parts 0. Heads have a multiple of 8 elements.
struct attn_rounded_params : attn_tiles_params {};

// Bit of capabilities::rounded_heads that is set where attn_rounded takes heads of so many
// elements; 0: it never does.
constexpr uint32_t rounded_heads_bit(uint64_t head_dim) noexcept {
  return head_dim % 8 != 0 || head_dim > 256 ? 0u : head_dim <= 64 ? 1u : head_dim <= 128 ? 2u : 4u;
}

// Groups that share the heads of a KV head, for tiles of `rows` rows.
constexpr uint32_t attn_tile_shares(uint32_t heads_of_kv, uint32_t rows) noexcept {
  return (heads_of_kv + rows - 1) / rows;
}
// Words of a tile: of each row q, in whole sixteens, sums, 64 scores in two halves, nine words.
constexpr uint64_t attn_tile_words(uint64_t rows, uint64_t head_dim) noexcept {
  return rows * ((head_dim + 15) / 16 * 16 + head_dim + uint64_t{2} * attn_part + 9) + attn_part;
}

// Bindings: header, a (rows, k), b (rows, k) or any, y (rows, k)
// Constant 1: BITNET_OP_ADD, _MUL, _RELU2, _SILU, _GELU, _SCALE or _SIGMOID. factor: for SCALE.
struct elementwise_params {
  uint32_t rows, k;
  float factor;
};

// Bindings: header, output_rows, x (tokens, k), y (outputs, k)
struct gather_rows_params {
  uint32_t rows, k;
};

// Bindings: header, x (rows, k), y (rows, m)
// y is parts of x side by side, each of `part` elements: COLUMNS in ops.h.
struct columns_params {
  uint32_t rows, k, m, part, first, inner, inner_stride, outer_stride;
};

// Kernels of states take tokens [first, last) of a step by runs. A run is the adjacent tokens of
// one sequence. Groups in y share the runs; one group takes the tokens of a run in turn. If a step
// is cut into several commands, the next command continues from the state of a cut run.

// Bindings: header, x (rows, k), weight f32 (k, n), positions, sequences, states (sequences),
//           state, y (rows, k)
// Constant 1: n, 2 to 32. One thread to a column (x). The bits are those of SHORT_CONV in ops.h.
struct short_conv_params {
  uint32_t rows, k, element, state_words, first, last;
};

// Bindings: header, a (rows, heads), b like a, weight f32 (2, heads), y (rows, 2 * heads)
// DELTA_GATES in ops.h; softplus is off by a few units in the last place.
struct delta_gates_params {
  uint32_t rows, heads;
};

// Bindings: header, x (rows, 2 * n_k * d_k + n_v * d_v), gates (rows, 2 * n_v), positions,
//           sequences, states (sequences), state, y (rows, n_v * d_v)
// Constant 1: d_k; the group's memory holds two rows of d_k elements. One group to one of `tiles`
// tiles of the columns of a value head (x); constant 0 shares them out. DELTA_RULE in ops.h, in its
// order; sums of squares as in rms_norm.
struct delta_rule_params {
  uint32_t rows, element, state_words, n_k, n_v, d_v, turns, tiles;
  float scale, eps;
  uint32_t first, last;
};

// Bindings: header, x (rows, k), weight f32 (k), q i8 (rows, k), s f32 (rows)
// The bits of rms_norm followed by act_quant.
struct norm_quant_params {
  uint32_t rows, k;
  float eps;
};

// Bindings: header, x (rows, k), weight f32 (k), q i8 (rows, k), d f32 (rows, k / group). One group
// of threads to a row. The bits of rms_norm followed by act_quant_groups.
struct norm_quant_groups_params {
  uint32_t rows, k;
  float eps;
  uint32_t group;
};

// Bindings: header, gate (rows, k), up (rows, k), weight f32 (k) or any, scratch (rows, k),
//           q i8 (rows, k), s f32 (rows)
// Constant 1: BITNET_OP_RELU2, _SILU or _GELU; 2: 1 = with rms_norm.
// The bits of the ops one after the other. scratch is for activation(gate) * up; what it has
// afterwards is not defined.
struct glu_quant_params {
  uint32_t rows, k;
  float eps;
};

// Bindings: header, gate (rows, k), up (rows, k), q i8 (rows, k), d f32 (rows, k / group). One
// thread to four elements.
// Constant 1: as in glu_quant. The bits of the ops one after the other.
struct glu_quant_groups_params {
  uint32_t rows, k, group;
};

// Bindings: header, x (rows, k), weight f32 (k) or any, matrix, scales, residual (rows, m),
//           y (rows, m)
// Constants 1 and 3: as in linear_ternary; 2: 1 = with rms_norm; 4: i8_row_words(k).
// The bits of the ops one after the other, for matrices with one scale. Groups share out the rows
// of the matrix; each quantises its own copy of x, in the group's memory.
struct bit_linear_params {
  uint32_t rows, k, m, row_words, first_row, n_rows, add;
  float eps;
};

// The two-stage head. It computes, with the bits of linear_dense, the logits of an output row that
// can be among the n largest (n: word 4 of the step header); all others become -infinity.
//
// Copy     a row w of the matrix has q int8 and d: w = d q + r. An activation x has s and z, 15
//          bits as 128 high + low: x = s z + e.
// Bound    w x = d s (q z) + r x + d q e, so by Cauchy-Schwarz |w x - d s (q z)| <= |r| |x| +
//          |d q| |e|. In linear_dense by 32 lanes of four f32 sums a product is rounded k / 128 +
//          12 times at most, which is less than (k / 128 + 16) 2^-24 |w| |x| + k 2^-149 more.
//          Norms are taken a little larger than computed.
// Unknown  where x is not finite or |w| |x| is so large that a sum may overflow, the bounds are
//          infinite: that logit is computed.
// Counts   how many lower bounds of an output row fall into each of head_bins bins, by the 10
//          highest bits of head_order(); then those in the bin of the n-th largest, by the next 10
//          bits. The threshold is the lower edge of the bin of the n-th largest: a row whose upper
//          bound is less has n rows above it.
// Memory   codes i8 (m, k), as an i8 value; norms f32 (3, m): d, |r|, |d q| + |r|
//          state (rows): head_state_words(k) words: high and low as i8 rows, then f32 s, |x|, |e|
//          plus the rounding errors, and a word, 0 if x is not finite
//          counts u32 (rows, head_count_words): two times head_bins, the number of found logits,
//          and the number of finished groups; bounds f32 (rows, 2, m): lower, then upper ones
// Listed   logits go to found (rows, m), each an id and f32, instead of y. The last group to finish
//          moves them into `largest`, or, if there are too many, fills y as without a list.
inline constexpr uint32_t head_bins = 1024;
inline constexpr uint32_t head_count_words = 2 * head_bins + 2;
inline constexpr uint32_t head_most_top = 8192;    // logits; the full head computes more
inline constexpr uint32_t head_most_outputs = 8;   // rows of a step; the same
inline constexpr uint32_t head_most_width = 8192;  // elements of a row: int32 sums of a lane
constexpr uint64_t head_state_words(uint64_t k) noexcept {
  return 2 * i8_row_words(k) + 4;
}

// Bindings: any, matrix, codes, norms. Constant 3: BITNET_FORMAT_* of the matrix: f32, f16 or bf16.
struct head_copy_params {
  uint32_t k, m, row_words;
};

// Bindings: header, x (rows, k), state, counts. One group to a row. Clears counts.
struct head_state_params {
  uint32_t rows, k;
};

// Bindings: header, codes, norms, state, counts, bounds. Constant 2: output rows that a group takes
// together. Counts the first bins.
struct head_approximate_params {
  uint32_t rows, k, m;
};

// Bindings: header, bounds, counts. Counts the second bins.
struct head_count_params {
  uint32_t rows, m;
};

// Bindings: header, x (rows, k), matrix, bounds, counts, y (rows, m), found, one bitnet_largest to
// a row; without a list the last two are any. Constant 3 as in head_copy.
struct head_exact_params {
  uint32_t rows, k, m, row_words;
};

// Products of an f16 or bf16 matrix with activations rounded to the same format, in programs that
// permit it (bitnet_program_options::precisions): products are exact, sums are f32.
//
// Rounded  each row times a power of two, then rounded to nearest even: rounded_row_words(k) words,
//          two elements to a word, the first in the low half, zeros past k. The fourth word from
//          the end is the f32 factor of y that undoes the power; the last three are not read.
// Power    f16: it moves the row's largest finite magnitude into [2^14, 2^15), or lower if that is
//          below 2^-112. So no element becomes infinite, and elements below f16's normal range are
//          below 2^-28 of the largest. bf16: 1, or 1/2 from 2^127 on. Infinities and NaN stay.
// Exact    the hardware decides the order and rounding of the sums. A row has the same bits in
//          every step that runs this kernel.
constexpr uint64_t rounded_row_words(uint64_t k) noexcept {
  return (k + 63) / 64 * 32 + 4;
}

// Bindings: header, x f32 (rows, k), rounded. Constant 3: BITNET_FORMAT_F16 or _BF16. One group to
// a row.
struct round_rows_params {
  uint32_t rows, k;
};

// Bindings: header, rounded, matrix, y (rows, m). Constants and groups as in linear_dense.
struct linear_dense_rounded_params {
  uint32_t rows, k, m, row_words, first_row, n_rows;
};

// Words of a matrix row of k elements on the device; 0 for an unknown format.
constexpr uint64_t row_words(uint32_t format, uint64_t k) noexcept {
  switch (format) {
    case BITNET_FORMAT_F32:
      return k;
    case BITNET_FORMAT_F16:
    case BITNET_FORMAT_BF16:
      return (k + 1) / 2;
    case BITNET_FORMAT_Q8_0:
      return k / 32 * 9;
    case BITNET_FORMAT_Q4_0:
      return k / 32 * 5;
    case BITNET_FORMAT_Q4_K:
      return k / 256 * 36;
    case BITNET_FORMAT_Q6_K:
      return k / 256 * 53;
    case BITNET_FORMAT_TERNARY2:
      return (k + 127) / 128 * 8;
    default:
      return 0;
  }
}

// Keys and values of this type lie as rows of a matrix of the returned format. Kernels compute it
// in each group, so the last type takes no comparison.
constexpr uint32_t kv_format(uint32_t dtype) noexcept {
  return dtype == BITNET_DTYPE_F32    ? BITNET_FORMAT_F32
         : dtype == BITNET_DTYPE_F16  ? BITNET_FORMAT_F16
         : dtype == BITNET_DTYPE_Q8_0 ? BITNET_FORMAT_Q8_0
                                      : BITNET_FORMAT_Q4_0;
}

// The types in which GPU plugins keep keys and values. The device's mask is made of this list, and
// kv_format() and row_words() are compared with it. kv_write and attn_paged of every plugin have
// each type.
//
// X(NAME): keys and values of BITNET_DTYPE_NAME lie as rows of a matrix of BITNET_FORMAT_NAME.
#define BITNET_GPU_KV_TYPES(X) X(F32) X(F16) X(Q8_0) X(Q4_0)

#define BITNET_GPU_KV_ROWS(NAME)                                        \
  static_assert(kv_format(BITNET_DTYPE_##NAME) == BITNET_FORMAT_##NAME, \
                "kv_format() lacks this type");                         \
  static_assert(row_words(BITNET_FORMAT_##NAME, 256) != 0, "row_words() lacks this type");
BITNET_GPU_KV_TYPES(BITNET_GPU_KV_ROWS)
#undef BITNET_GPU_KV_ROWS

// bitnet_device_info::kv_dtypes: a pool of another type is rejected when it is created.
inline constexpr uint32_t kv_dtypes = 0
#define BITNET_GPU_KV_BIT(NAME) | 1u << BITNET_DTYPE_##NAME
    BITNET_GPU_KV_TYPES(BITNET_GPU_KV_BIT)
#undef BITNET_GPU_KV_BIT
    ;

// Words of one token's keys or values of one head on the device.
constexpr uint64_t kv_row_words(uint32_t dtype, uint64_t head_dim) noexcept {
  return row_words(kv_format(dtype), head_dim);
}

}  // namespace bitnet::gpu
