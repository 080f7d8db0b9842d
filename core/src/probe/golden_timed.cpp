// Programs that are only timed: their work dominates the time of a step.

#include <cstdint>

#include "probe/golden_builder.hpp"

namespace bitnet::probe {
namespace {

constexpr uint32_t n_timed_rows = 8192, n_large_rows = 2048;

// Fast to make, for programs that are only timed.
int diagonal(uint32_t row, uint32_t k) {
  return static_cast<int>((row + k) % 3) - 1;
}

}  // namespace

golden_program timed_program() {
  using namespace golden;
  builder b("speed", activation);
  const uint32_t y =
      b.linear(b.quantise(b.x, width), n_timed_rows, b.ternary(width, n_timed_rows, trit));
  return b.gathered(y, n_timed_rows, {BITNET_OP_LINEAR_TERNARY}, product<activation, trit>);
}

golden_program large_timed_program() {
  using namespace golden;
  builder b("speed of large products", activation, timed_tokens);
  const uint32_t wide =
      b.linear(b.quantise(b.x, width), n_timed_rows, b.ternary(width, n_timed_rows, diagonal));
  const uint32_t y = b.linear(b.quantise(wide, n_timed_rows), n_large_rows,
                              b.ternary(n_timed_rows, n_large_rows, diagonal));
  static_assert(large_timed_products == uint64_t{n_timed_rows} * (width + n_large_rows));
  return b.gathered(y, n_large_rows, {BITNET_OP_LINEAR_TERNARY}, nullptr);
}

}  // namespace bitnet::probe
