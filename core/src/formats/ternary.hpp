#pragma once
// The ternary forms of weights: how each is recognised, checked and decoded. A code is t + 1: 0, 1
// or 2.
//
// Each form has an understand_<form>. It checks the size and any content that could be wrong,
// collects the scales, and says in `how` why it took the bytes for this form. BITNET_TERNARY_FORMS
// is the only list.
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

inline constexpr uint64_t tq_block = 256;  // elements of TQ1_0 and TQ2_0 per scale

inline constexpr uint64_t q8_elements = 32, q8_bytes = 34;  // of a block of Q8_0
inline constexpr uint64_t group = 128;                      // elements of a canonical group

struct form {
  uint32_t type;  // GGUF id, or one of gguf::type's own for other containers
  result<reading> (*understand)(const source& from);
};
std::span<const form> forms();

// X(type, form): the type is read by understand_<form>, defined in one of these files:
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

// How floating-point weights are made ternary.
enum class rounding : uint8_t {
  absmean,          // s = 1 / max(mean |w|, 1e-5), t = round(w s) clamped to [-1, 1], W = t / s
  exact_or_absmean  // t = sign(w) if all |w| except 0 are equal, else absmean
};
// Makes F32, F16 or BF16 weights ternary. docs/reference/weights.md#making-weights-ternary
result<reading> ternarise(const source& from, rounding rule);
// The same with a scale for each `group` elements of a row (K % group == 0, group a multiple of 64
// up to 128). The scale fits 16 bits, or is the magnitude of a group that is ternary already.
result<reading> ternarise_groups(const source& from, uint64_t group);

// Finds the elements of F32, F16 or BF16 weights that share one magnitude, zeros aside: 0: the
// whole tensor does; 128 or 64: each such group of a row; nullopt: none.
std::optional<uint64_t> ternary_already(const source& from);

// Makes a ternary reading of `from` with `codes` and `scales` of groups of `scale_group` elements.
// If all scales except 0 are equal, they become one.
reading ternary_reading(const source& from, codes_of codes, uint64_t scale_group,
                        std::vector<float> scales, std::string how);

// Reads the codes of [column, column + out.size()) of a row, zeros where the scale is 0.
void read_codes(const source& from, const reading& to, uint64_t row, uint64_t column,
                std::span<uint8_t> out);

// Checks the exact size of a form, apart from padding behind the tensor.
result<void> check_bytes(const source& from, uint64_t needed, std::string_view name);
// The same for rows of whole blocks.
result<void> check_blocks(const source& from, uint64_t elements, uint64_t bytes,
                          std::string_view name);
// The text `how` for forms that the type alone decides.
std::string by_type(const source& from);

// Whether a 2-bit field is 3, which is no ternary value.
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
