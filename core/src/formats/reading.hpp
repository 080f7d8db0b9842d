#pragma once
// Converts the bytes of a tensor in a model file to a weight format of bitnet/abi/tensor.h.
//
// Shapes   K = ne[0] inputs, contiguous; M rows.
// Ternary  Every form in the table of ternary.hpp becomes BITNET_FORMAT_TERNARY2, but tensors with
//          a value +2 become BITNET_FORMAT_Q8_0. One scale if all non-zero scales are equal (a
//          group of scale 0 then holds zeros), else the scales of the form.
// Dense    F32 F16 BF16 Q8_0 Q4_0 Q4_K Q6_K pass unchanged.
// Errors   BITNET_UNSUPPORTED for other types and forms; BITNET_BAD_DATA for impossible sizes and
//          scales. Messages name types, the caller adds the tensor.
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

// Two sets of tile sizes were published for TL1 files with the shapes of Llama3-8B; see tl.hpp.
enum class tl1_tiles : uint8_t { generated, pretuned };

// A second tensor that holds the scales of the first.
struct companion {
  uint32_t type = 0;
  uint64_t elements = 0;
  std::span<const std::byte> bytes{};
};

// A tensor in the file.
struct source {
  uint32_t type = 0;  // GGUF id, or one of gguf::type's own
  uint64_t k = 1;
  uint64_t m = 1;
  std::span<const std::byte> bytes{};  // up to the next tensor if the type does not fix the size
  uint64_t alignment = 32;             // of the file
  uint32_t i2s_layout = 0;             // BITNET_I2S_LAYOUT_*
  q2_finding q2{};                     // of type 42 in the file; unknown: judge this tensor
  std::optional<int64_t> file_type{};  // general.file_type, a hint
  tl1_tiles tiles = tl1_tiles::generated;
  companion scales{};  // empty: there is none
  // Heads that the rows form, if the file stores the halves of a rotated pair half a head apart;
  // the result has them side by side (docs/reference/models.md#rotation). 0: rows keep their order.
  uint64_t rotated_heads = 0;
  gguf::head_reordering head_order{};  // order of heads in the rows or columns behind its `first`
};

// Codes of the elements [column, column + out.size()) of a row; column % 128 == 0, at most 128.
using codes_of =
    std::function<void(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out)>;
// Writes bytes [offset, offset + out.size()) of another format.
using bytes_of = std::function<void(const source& from, uint64_t offset, std::span<std::byte> out)>;

// The format that a source becomes, and how to convert it.
struct reading {
  uint32_t format = 0;       // BITNET_FORMAT_*
  uint64_t data_bytes = 0;   // in `format`
  uint64_t scale_group = 0;  // elements of a row that share a scale; 0 = the whole tensor
  std::vector<float> scales;
  bool verbatim = false;    // the source's first data_bytes are the data; else convert()
  codes_of codes;           // for ternary; codes in groups of scale 0 are undefined
  uint64_t zero_group = 0;  // elements of a group of scale 0
  std::vector<bool> zeros;  // the groups of scale 0; empty: none
  bytes_of bytes;           // for dense formats that are not verbatim
  std::string how;          // how the bytes were interpreted, and why
};

// The source's row for row `row` of the result, and the source's column for a column.
uint64_t stored_row(const source& from, uint64_t row);
uint64_t stored_column(const source& from, uint64_t column);
// How many columns from `column` on are contiguous in the source.
uint64_t columns_together(const source& from, uint64_t column);
[[nodiscard]] bool is_rearranged(const source& from);

// Whether understand() can succeed for any tensor of this type.
[[nodiscard]] bool is_readable(uint32_t type);

// Reads the whole tensor if its type allows invalid contents, to check them.
result<reading> understand(const source& from);
// A vector of F32, F16 or BF16 as F32; BITNET_BAD_DATA for NaN and infinity.
result<reading> understand_vector(const source& from);

// Turns a ternary reading into a dense one with the same values, for floating-point activations:
// Q8_0 if it can hold the scales, else F32. `ternary` has BITNET_FORMAT_TERNARY2 and its scales.
reading as_dense(const source& from, reading ternary);

// Writes bytes [offset, offset + out.size()) of a reading that is not verbatim. Offset and size are
// multiples of 32, or of 4 in a vector.
void convert(const source& from, const reading& to, uint64_t offset, std::span<std::byte> out);

// The value of an element of F32, F16 or BF16.
float real_element(uint32_t type, std::span<const std::byte> bytes, uint64_t index);

}  // namespace bitnet::formats
