#pragma once
// The ternary forms of weights: how each is recognised, checked and turned into codes. A code is
// t + 1: 0, 1 or 2.
//
// A form of a file's type has an understand_<form>: it checks the size and whatever could be wrong
// with the content, collects the scales and says in `how` what made it take the bytes for this
// form. BITNET_TERNARY_FORMS is the only list.
// Source  docs/reference/weights.md; the heading stands at each function.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/reading.hpp"

namespace bitnet::formats {

inline constexpr uint64_t tq_block = 256;  // elements of TQ1_0 and TQ2_0 that share a scale

inline constexpr uint64_t q8_elements = 32, q8_bytes = 34;  // of a block of Q8_0
inline constexpr uint64_t group = 128;                      // elements of a canonical group

struct form {
  uint32_t type;  // GGUF id, or one of gguf::type's own for other containers
  result<reading> (*understand)(const source& from);
};
std::span<const form> forms();

// X(type, form): by understand_<form>, which one of these files defines:
//   i2s.cpp        type 36, which four programs write with different contents
//   bitnet_rs.cpp  those contents of it that BitNet-rs writes or expects, tried by i2s.cpp
//   tl.cpp         the look-up-table layouts of bitnet.cpp
//   tq.cpp         llama.cpp's blocks of 256, and PTQ1_0
//   q1_q2.cpp      llama.cpp's Q1_0 and Q2_0, PQ2_0 and STQ1_0
//   q2.cpp         which of four layouts type 42 has, asked by q1_q2.cpp
//   ik.cpp         ik_llama.cpp's rows with a scale each
//   hf.cpp         what Hugging Face checkpoints hold
// Each has a heading in docs/reference/weights.md.
#define BITNET_TERNARY_FORMS(X)   \
  X(i2_s, i2s)                    \
  X(tl1, tl1)                     \
  X(tl2, tl2)                     \
  X(tq1_0, tq)                    \
  X(tq2_0, tq)                    \
  X(q1_0, q1_0)                   \
  X(q2_0, q2_0)                   \
  X(stq1_0, stq1_0)               \
  X(pq2_0, pq2_0)                 \
  X(ptq1_0, ptq1_0)               \
  X(iq1_bn, iq1_bn)               \
  X(iq2_bn, iq2_bn)               \
  X(iq2_bn_r4, iq2_bn_r4)         \
  X(hf_packed, hf_packed)         \
  X(hf_packed_inverse, hf_packed) \
  X(hf_master_f32, hf_master)     \
  X(hf_master_f16, hf_master)     \
  X(hf_master_bf16, hf_master)

#define BITNET_UNDERSTAND(type, form) result<reading> understand_##form(const source& from);
BITNET_TERNARY_FORMS(BITNET_UNDERSTAND)
#undef BITNET_UNDERSTAND
result<reading> understand_bitnet32(const source& from);
result<reading> understand_split32(const source& from);
result<reading> understand_qk256(const source& from);

// How floating-point weights become ternary ones.
enum class rounding : uint8_t {
  absmean,          // s = 1 / max(mean |w|, 1e-5), t = round(w s) clamped to [-1, 1], W = t / s
  exact_or_absmean  // t = sign(w) where all |w| but 0 are equal, else absmean
};
// F32, F16 or BF16 weights as ternary ones. docs/reference/weights.md#making-weights-ternary
result<reading> ternarise(const source& from, rounding rule);
// The same with a scale for each `group` elements of a row (K % group == 0, group a multiple of 64
// up to 128): one that 16 bits hold, or the size of a group that is ternary already.
result<reading> ternarise_groups(const source& from, uint64_t group);

// How many elements of F32, F16 or BF16 weights share one size, but for zeros: 0, all of the
// tensor; 128 or 64, each such group of a row; nothing where no groups do.
std::optional<uint64_t> ternary_already(const source& from);

// A reading of `from` as ternary, by `codes`, with `scales` of groups of `scale_group` elements.
// Scales that are all equal, but for zeros, become one.
reading ternary_reading(const source& from, codes_of codes, uint64_t scale_group,
                        std::vector<float> scales, std::string how);

// The codes of [column, column + out.size()) of a row, zeros where the scale is 0.
void read_codes(const source& from, const reading& to, uint64_t row, uint64_t column,
                std::span<uint8_t> out);

// The size that a form must have exactly, give or take the padding behind a tensor.
result<void> check_bytes(const source& from, uint64_t needed, std::string_view name);
// The same for rows of whole blocks.
result<void> check_blocks(const source& from, uint64_t elements, uint64_t bytes,
                          std::string_view name);
// `how` for forms that the type alone decides.
std::string by_type(const source& from);

// Whether one of the 2-bit fields is 3, which is no ternary value.
bool has_code_3(std::span<const std::byte> packed);
// Bytes of the canonical form of K x M elements.
uint64_t canonical_bytes(uint64_t k, uint64_t m);
// A byte of five base-3 digits, kept as a fraction of 256: digit 0 is the most significant.
inline uint8_t base3_digit(std::byte packed, uint32_t index) {
  constexpr std::array<uint8_t, 5> power = {1, 3, 9, 27, 81};
  return static_cast<uint8_t>(
      static_cast<uint8_t>(std::to_integer<uint8_t>(packed) * power[index]) * 3 >> 8);
}

}  // namespace bitnet::formats
