// Converts ternary tensors to dense ones with the same values, row by row.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/floats.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/reading.hpp"
#include "formats/ternary.hpp"

namespace bitnet::formats {
namespace {

// Whether f16 scales for each 32 elements can hold the values.
bool fits_q8_0(const source& from, const reading& ternary) {
  return from.k % q8_elements == 0 && ternary.scale_group % q8_elements == 0 &&
         std::ranges::all_of(ternary.scales, [](float s) { return from_f16(to_f16(s)) == s; });
}

// y (k): the codes of a row, less one.
void row_codes(const source& from, const reading& ternary, uint64_t row, std::span<uint8_t> y) {
  for (uint64_t column = 0; column < from.k; column += group)
    read_codes(from, ternary, row, column, y.subspan(column, std::min(group, from.k - column)));
}

float scale_at(const reading& ternary, uint64_t element) {
  return ternary.scales[ternary.scale_group == 0 ? 0 : element / ternary.scale_group];
}

void q8_0_row(const source& from, const reading& ternary, uint64_t row,
              std::span<const uint8_t> codes, std::span<std::byte> y) {
  for (uint64_t block = 0; block < from.k / q8_elements; ++block) {
    const uint64_t column = block * q8_elements;
    const uint16_t scale = to_f16(scale_at(ternary, row * from.k + column));
    const auto out = y.subspan(block * q8_bytes, q8_bytes);
    std::memcpy(out.data(), &scale, sizeof scale);
    for (uint64_t j = 0; j < q8_elements; ++j)
      out[2 + j] = static_cast<std::byte>(codes[column + j] - 1);
  }
}

void f32_row(const source& from, const reading& ternary, uint64_t row,
             std::span<const uint8_t> codes, std::span<std::byte> y) {
  for (uint64_t i = 0; i < from.k; ++i) {
    const float x = static_cast<float>(codes[i] - 1) * scale_at(ternary, row * from.k + i);
    std::memcpy(&y[i * sizeof x], &x, sizeof x);
  }
}

}  // namespace

reading as_dense(const source& from, reading ternary) {
  const bool q8_0 = fits_q8_0(from, ternary);
  const uint64_t row_bytes = q8_0 ? from.k / q8_elements * q8_bytes : from.k * sizeof(float);
  reading to;
  to.format = q8_0 ? BITNET_FORMAT_Q8_0 : BITNET_FORMAT_F32;
  to.data_bytes = row_bytes * from.m;
  to.how = fmt::format("{}; given on as {}", ternary.how, q8_0 ? "Q8_0" : "F32");
  const auto kept = std::make_shared<const reading>(std::move(ternary));
  to.bytes = [kept, row_bytes, make = q8_0 ? q8_0_row : f32_row](const source& all, uint64_t offset,
                                                                 std::span<std::byte> out) {
    std::vector<uint8_t> codes(all.k);
    std::vector<std::byte> made(row_bytes);
    for (uint64_t done = 0; done < out.size();) {
      const uint64_t row = (offset + done) / row_bytes, at = (offset + done) % row_bytes;
      const uint64_t run = std::min(row_bytes - at, out.size() - done);
      row_codes(all, *kept, row, codes);
      make(all, *kept, row, codes, made);
      std::memcpy(&out[done], &made[at], run);
      done += run;
    }
  };
  return to;
}

}  // namespace bitnet::formats
