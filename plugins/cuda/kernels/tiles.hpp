#pragma once
// Tiles of groups that multiply tokens by tensor cores. The host computes from them the number of
// groups and their shared memory.

#include <cstdint>

#include "gpu-common/simt/rows_one.hpp"
#include "launch.hpp"

namespace bitnet::kernels {

struct tile_form {
  uint32_t rows, tokens;  // of the matrix, of the step; that a group takes together
  uint32_t shared_bytes;
  uint32_t threads = group_threads;
  bool boxes = false;  // launch::boxes are read: of tokens by 128 bytes, and of rows by 64
  bool joins = false;  // several launches can be one
};

// Matrices with one scale.
inline constexpr tile_form few_tokens{16, 16, 4 * 16 * 16 * 4};       // sums of four warps
inline constexpr tile_form many_tokens{256, 32, 2 * 32 * 256 + 128};  // two stages, and sums

// Matrices with one scale, by warp groups of sm_90: stages of 256 elements. After the two warp
// groups that multiply comes a warp that copies; if they need its registers, a warp group that
// copies.
inline constexpr uint32_t multiplying_groups = 2, stages = 4, stage_elements = 256,
                          of_alignment = 1024;
template <uint32_t Rows, uint32_t Tokens, uint32_t CopyingWarps>
inline constexpr tile_form warp_group_form{
    Rows, Tokens,
    of_alignment + stages*(Tokens* stage_elements + Rows * stage_elements / 4) +
        (2 * stages + 2) * 8 + 2 * Tokens * 16,
    (multiplying_groups * 4 + CopyingWarps) * 32, true};
inline constexpr tile_form narrow_form = warp_group_form<128, 64, 1>;
inline constexpr tile_form wide_form = warp_group_form<256, 128, 4>;

// One token of matrices with one scale: sums of 16 rows by each of four warps.
inline constexpr tile_form one_product{16, 1, 4 * 16 * 4, group_threads, false, true};
// The same where each group also quantises the row, of at most so many elements: of 32 rows, two
// turns, and the codes.
inline constexpr uint32_t most_quantised = 5120;
inline constexpr tile_form one_quantised{32,    1,   2 * 4 * 32 * 4 + most_quantised, group_threads,
                                         false, true};

// With factors of groups.
inline constexpr tile_form few_factored{16, 8, 2 * 4 * 4 * 16 * 8 * 4};  // two turns of four warps
inline constexpr tile_form many_factored{128, 16, 0};
// The same by warp groups of sm_90: with a stage come its factors of each token and each row, one
// for each 32 elements. The warp group that copies has a thread for each of both.
inline constexpr uint32_t factored_stage =
    128 * stage_elements + 128 * stage_elements / 4 + 2 * 128 * stage_elements / 32 * 4;
inline constexpr tile_form wide_factored{128, 128,
                                         of_alignment + stages* factored_stage + 2 * stages * 8,
                                         (multiplying_groups + 1) * 128, true};
// One token: of four warps eight blocks of it with factors, and two turns of what is found of 16
// rows in 32 blocks.
inline constexpr tile_form one_factored{
    16, 1, 4 * 8 * (144 + 16) + 2 * 16 * (4 * 32 + 4) * 4, group_threads, false, true};

// Attention of many tokens, 32 rows to a tile and heads of at most `Width` elements: of each row q
// and nine words; a stage of keys or values; weights of a part, and where its positions are.
template <uint32_t Width>
inline constexpr tile_form prompt_form{32, 1, 4 * (32 * (Width + 9) + 64 * 32 + 64 * 36 + 64)};

// The same with rounded factors, 64 rows to a tile: a stage of keys and one of values; of each
// position where it lies, in two stages, and whether its values are numbers; of each row five
// words; and of heads with more than 128 elements what registers do not keep of q.
template <uint32_t Width>
inline constexpr uint32_t rounded_stage = Width <= 128 ? 64 : 32;  // positions
template <uint32_t Width>
inline constexpr uint32_t rounded_kept = Width <= 128 ? Width : 64;  // elements of q in registers
template <uint32_t Width>
inline constexpr tile_form rounded_prompt_form{
    64, 1,
    2 * 2 * rounded_stage<Width>* Width + 3 * 4 * rounded_stage<Width> +
        64 * (5 * 4 + 2 * (Width - rounded_kept<Width>))};

// Kernels of few rows: a group to a row.
inline constexpr tile_form one_row{1, 1, one_row_shared_bytes, one_row_threads};

// Dense matrices and rounded activations: two stages of 64 elements of each token.
inline constexpr tile_form few_rounded{64, 16, 2 * 16 * 128};
inline constexpr tile_form many_rounded{128, 64, 2 * 64 * 128};

// Most memory of a group on every device, if no attribute of the function asks for more.
static_assert(many_tokens.shared_bytes <= 48 << 10 && few_factored.shared_bytes <= 48 << 10 &&
              one_factored.shared_bytes <= 48 << 10 && many_rounded.shared_bytes <= 48 << 10 &&
              prompt_form<128>.shared_bytes <= 48 << 10 &&
              rounded_prompt_form<128>.shared_bytes <= 48 << 10);
// Most on every device, if an attribute asks for it.
static_assert(prompt_form<256>.shared_bytes <= 64 << 10 &&
              rounded_prompt_form<256>.shared_bytes <= 64 << 10);
// Most on sm_90 of one group and of two, if an attribute asks for it.
static_assert(wide_form.shared_bytes <= 227 << 10 && wide_factored.shared_bytes <= 227 << 10 &&
              2 * (narrow_form.shared_bytes + 1024) <= 228 << 10);

}  // namespace bitnet::kernels
