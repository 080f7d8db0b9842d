#pragma once
// From the bytes of a tensor in a model file to a weight format of bitnet/abi/tensor.h.
//
// Shapes   K = ne[0] inputs, contiguous; M rows.
// Ternary  every form in the table of ternary.hpp becomes BITNET_FORMAT_TERNARY2, but for tensors
//          that hold +2 too: BITNET_FORMAT_Q8_0. Scales: one if all non-zero scales are equal (a
//          group of scale 0 then holds zeros), else those of the form.
// Dense    F32 F16 BF16 Q8_0 Q4_0 Q4_K Q6_K pass unchanged.
// Errors   BITNET_UNSUPPORTED for other types and forms; BITNET_BAD_DATA for sizes and scales that
//          cannot be. Messages name types, the caller adds the tensor.
// Threads  functions of their arguments only.
// Source   docs/reference/weights.md

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/q2.hpp"
#include "gguf/file.hpp"

namespace bitnet::formats {

// Two sets of tile sizes were published for TL1 files of the Llama3-8B shapes; see tl.hpp.
enum class tl1_tiles : uint8_t { generated, pretuned };

// A tensor that belongs to another one: its scales.
struct companion {
  uint32_t type = 0;
  uint64_t elements = 0;
  std::span<const std::byte> bytes{};
};

// A tensor as the file has it.
struct source {
  uint32_t type = 0;  // GGUF id, or one of gguf::type's own
  uint64_t k = 1;
  uint64_t m = 1;
  std::span<const std::byte> bytes{};  // up to the next tensor where the type does not fix a size
  uint64_t alignment = 32;             // of the file
  uint32_t i2s_layout = 0;             // BITNET_I2S_LAYOUT_*
  q2_finding q2{};                     // of type 42, for the whole file; unknown: by this tensor
  std::optional<int64_t> file_type{};  // general.file_type, a hint
  tl1_tiles tiles = tl1_tiles::generated;
  companion scales{};  // empty: none beside it
  // Of rows that rotate: how many heads they form, when the halves of a rotated pair stand half a
  // head apart and are wanted side by side (docs/reference/models.md#rotation); 0: rows stay.
  uint64_t rotated_heads = 0;
  gguf::head_turns turns{};  // its groups fill the rows, or the columns, behind its first
};

// Codes of the elements [column, column + out.size()) of a row; column % 128 == 0, at most 128.
using codes_of =
    std::function<void(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out)>;
// Bytes [offset, offset + out.size()) of another format.
using bytes_of = std::function<void(const source& from, uint64_t offset, std::span<std::byte> out)>;

// What it becomes.
struct reading {
  uint32_t format = 0;       // BITNET_FORMAT_*
  uint64_t data_bytes = 0;   // in `format`
  uint64_t scale_group = 0;  // elements of a row that share a scale; 0 = the whole tensor
  std::vector<float> scales;
  bool verbatim = false;    // the source's first data_bytes are it; else convert
  codes_of codes;           // ternary; what stands in groups of scale 0 means nothing
  uint64_t zero_group = 0;  // elements of those groups
  std::vector<bool> zeros;  // which groups those are; empty: none
  bytes_of bytes;           // else, unless verbatim
  std::string how;          // what the bytes were taken for, and why
};

// Where row `row` of the result stands in a tensor of `m` rows, and a column of it in its row.
uint64_t stored_row(const source& from, uint64_t row);
uint64_t stored_column(const source& from, uint64_t column);
// How many columns from `column` on stand side by side.
uint64_t columns_together(const source& from, uint64_t column);
[[nodiscard]] bool is_rearranged(const source& from);

// Whether understand can succeed for some tensor of this type.
[[nodiscard]] bool is_readable(uint32_t type);

// Reads all of a tensor whose content may be wrong to see whether it holds what it may.
result<reading> understand(const source& from);
// A vector of F32, F16 or BF16, wanted as F32; NaN and infinities are BITNET_BAD_DATA.
result<reading> understand_vector(const source& from);

// The same values in a dense format, which activations meet as floats: Q8_0 where it can hold the
// scales, else F32. `ternary` is a reading of BITNET_FORMAT_TERNARY2 with its scales.
reading as_dense(const source& from, reading ternary);

// Writes the bytes [offset, offset + out.size()) of a reading that is not verbatim. Both numbers
// are multiples of 32, or of 4 in a vector.
void convert(const source& from, const reading& to, uint64_t offset, std::span<std::byte> out);

// The value of an element of F32, F16 or BF16.
float real_element(uint32_t type, std::span<const std::byte> bytes, uint64_t index);

}  // namespace bitnet::formats
