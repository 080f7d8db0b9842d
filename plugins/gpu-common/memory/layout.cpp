#include "layout.hpp"

#include <cstring>

namespace bitnet::gpu {

block_shape shape_of(uint32_t format, uint64_t row_bytes) noexcept {
  switch (format) {
    case BITNET_FORMAT_Q8_0:
      return {34, 2, 2, false};
    case BITNET_FORMAT_Q4_0:
      return {18, 2, 2, false};
    case BITNET_FORMAT_Q6_K:
      return {210, 210, 2, false};
    default:
      return {row_bytes, row_bytes, (4 - row_bytes % 4) % 4, true};
  }
}

namespace {

// Calls f(canonical offset, device offset, before, behind, pad) for each block of n rows.
template <class F>
void each_block(uint32_t format, uint64_t k, uint64_t n, F f) noexcept {
  const sdk::format& known = *sdk::find_format(format);
  const uint64_t row = sdk::row_bytes(known, k);
  const block_shape shape = shape_of(format, row);
  const uint64_t blocks = shape.rows_only ? n : n * (k / known.block);
  for (uint64_t b = 0; b < blocks; ++b)
    f(b * shape.bytes, b * (shape.bytes + shape.pad), shape.before, shape.bytes - shape.before,
      shape.pad);
}

}  // namespace

void to_device(uint32_t format, uint64_t k, const uint8_t* rows, uint64_t n,
               uint8_t* out) noexcept {
  each_block(
      format, k, n,
      [&](uint64_t from, uint64_t to, uint64_t before, uint64_t behind, uint64_t pad) noexcept {
        std::memcpy(out + to, rows + from, before);
        std::memset(out + to + before, 0, pad);
        std::memcpy(out + to + before + pad, rows + from + before, behind);
      });
}

void from_device(uint32_t format, uint64_t k, const uint8_t* rows, uint64_t n,
                 uint8_t* out) noexcept {
  each_block(
      format, k, n,
      [&](uint64_t to, uint64_t from, uint64_t before, uint64_t behind, uint64_t pad) noexcept {
        std::memcpy(out + to, rows + from, before);
        std::memcpy(out + to + before, rows + from + before + pad, behind);
      });
}

bool is_canonical(uint32_t format, uint64_t k) noexcept {
  return shape_of(format, sdk::row_bytes(*sdk::find_format(format), k)).pad == 0;
}

}  // namespace bitnet::gpu
