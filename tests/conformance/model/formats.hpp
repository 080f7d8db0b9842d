#pragma once
// Weight formats as tensor.h and GGUF define them: sizes, and the value of one element in double.
// Slow and obvious; shares nothing with any backend.

#include <cstdint>
#include <string>
#include <vector>

namespace bitnet::conformance {

struct format {
  const char* name;
  uint32_t id;     // BITNET_FORMAT_*
  uint32_t block;  // elements; rows are whole blocks, but for ternary ones, which are padded
  uint32_t block_bytes;
  std::vector<uint32_t> halves;  // where in a block a value in f16 stands, bytes
};

// Every format, in the order of their ids.
const std::vector<format>& all_formats();
const format& format_of(uint32_t id);
std::string format_name(uint32_t id);  // "" for BITNET_FORMAT_NONE

// Bytes of a row of k elements; 0 if k is no whole number of blocks.
uint64_t row_bytes(uint32_t format, uint64_t k);

float half_to_float(uint16_t half);
uint16_t float_to_half(float value);  // to nearest, ties to even

// Element i of a row, exactly but for Q4_K, whose difference is rounded to double only. Of a
// ternary row -1, 0 or 1, without its scale.
double element(uint32_t format, const uint8_t* row, uint64_t i);

// What an f32 decoder may lose of it at most: 0 where the value is exact in f32.
double element_slack(uint32_t format, const uint8_t* row, uint64_t i);

}  // namespace bitnet::conformance
