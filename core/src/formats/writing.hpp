#pragma once
// The forms in which weights can be written, by their names on the command line.
//
// Shapes   K inputs, contiguous; M rows.
// Ternary  codes t + 1 and scales, as a reading gives them.
// Exact    Ternary values are kept exactly; scales are rounded if the form has 16 bits for them,
//          and rejected if it has fewer scales.
// Source   docs/reference/weights.md

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::formats {

struct ternary_weights {
  uint64_t k = 1;
  uint64_t m = 1;
  // Codes of [column, column + out.size()) of a row; column % 128 == 0, at most 128.
  std::function<void(uint64_t row, uint64_t column, std::span<uint8_t> out)> codes;
  uint64_t scale_group = 0;  // elements of a row; 0 = the whole tensor
  std::vector<float> scales;
};

struct ternary_target {
  uint32_t type;          // GGUF id
  std::string_view name;  // "i2_s"
  int64_t file_type;      // general.file_type
  uint64_t float_group;   // elements per scale when floats become ternary; 0: one scale
  // Bytes of the tensor; an error for shapes and scales that the form cannot hold.
  result<uint64_t> (*bytes)(const ternary_weights& from);
  void (*write)(const ternary_weights& from, std::span<std::byte> zeroed);
};

struct dense_target {
  uint32_t type;
  std::string_view name;  // "f16"
  int64_t file_type;
  uint64_t block;  // elements; K is a multiple of it
  // Largest relative loss by rounding (root of mean squares) of a tensor whose numbers are all in
  // range.
  double most_error;
  // `from`: a whole row, or whole blocks of it; all numbers finite.
  void (*write)(std::span<const float> from, std::span<std::byte> out);
};

std::span<const ternary_target> ternary_targets();
std::span<const dense_target> dense_targets();
// Finds a target by name, in upper or lower case; nullptr: unknown.
const ternary_target* find_ternary_target(std::string_view name);
const dense_target* find_dense_target(std::string_view name);

// Reads elements [first, first + out.size()) of a dense tensor as floats; both are multiples of its
// block.
void read_dense(uint32_t type, std::span<const std::byte> bytes, uint64_t first,
                std::span<float> out);

}  // namespace bitnet::formats
