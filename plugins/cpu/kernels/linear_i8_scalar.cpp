// The reference of linear_i8.hpp: every other form returns the same bits.
#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

// code(row, i): element i of a row.
template <class Code>
void multiply_tile(const i8_tile& a, Code code) {
  for (uint64_t o = 0; o < a.outputs; ++o)
    for (uint64_t r = 0; r < a.rows; ++r) {
      int64_t sum = 0;
      for (uint64_t i = 0; i < a.k; ++i)
        sum += int64_t{code(a.w + r * a.w_stride, i)} * a.x[o * a.x_stride + i];
      a.sums[o * a.sums_stride + r] = sum;
    }
}

}  // namespace

void linear_i8_scalar(const i8_tile& a) {
  multiply_tile(a, [](const uint8_t* w, uint64_t i) { return w[i] - 128; });
}

void linear_i4_scalar(const i8_tile& a) {
  multiply_tile(a, [](const uint8_t* w, uint64_t i) {
    const int pair = w[i / 128 * 64 + i % 64];
    return (i % 128 < 64 ? pair & 15 : pair >> 4) - 8;
  });
}

}  // namespace bitnet::cpu
