#pragma once
// Finds which of four layouts type 42 has in a file. No writer declares it reliably, but each
// layout has another size, and a wrong one gives implausible blocks.
//
// Source  docs/reference/weights.md#which-q2_0

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bitnet::formats {

enum class q2_layout : uint8_t { unknown, groups_64, groups_128, groups_128_scale_last, stq1_0 };
enum class q2_evidence : uint8_t { size, key, blocks };

struct q2_finding {
  q2_layout layout = q2_layout::unknown;
  q2_evidence by = q2_evidence::size;
};

// A tensor of type 42.
struct q2_tensor {
  std::string_view name;
  uint64_t k = 0;  // elements of a row
  uint64_t elements = 0;
  std::span<const std::byte> bytes;  // up to the next tensor
  uint64_t alignment = 32;
};

// One answer for all tensors of a file; there is at least one. `scale_is_last`: a key of the file
// says that groups of 128 have their scale at the end.
// Errors  BITNET_UNSUPPORTED where no layout, or more than one, fits all tensors, or
//         their blocks contradict the key.
result<q2_finding> find_q2_layout(std::span<const q2_tensor> all, bool scale_is_last);

// "Q2_0 in groups of 128, the scale first"
std::string_view q2_layout_name(q2_layout layout);
// "by the sizes of its tensors"
std::string_view q2_evidence_name(q2_evidence by);

// Byte offsets of the parts of a block of 2-bit codes. Its values are (code - 1) times the f16
// scale.
struct two_bit_block {
  std::string_view name;
  uint64_t elements, bytes, codes, scale;
  bool code_3_is_two;  // else code 3 is zero, as its only writer has it
};
inline constexpr two_bit_block q2_block_64{"Q2_0", 64, 18, 2, 0, true};
inline constexpr two_bit_block q2_block_128{"Q2_0", 128, 34, 2, 0, true};
inline constexpr two_bit_block q2_block_128_scale_last{"Q2_0", 128, 34, 0, 32, false};
inline constexpr two_bit_block pq2_block{"PQ2_0", 128, 34, 2, 0, true};

inline constexpr uint64_t stq_block = 256;  // elements
inline constexpr uint64_t stq_block_bytes = 42;
inline constexpr uint64_t stq_scale = 40;  // byte of a block

}  // namespace bitnet::formats
