#include "probe/golden_formats.hpp"

#include <bit>

#include "bitnet/abi/tensor.h"

namespace bitnet::probe::golden {

std::string bytes_of(uint32_t format, uint32_t columns, uint32_t rows, element at, float unit) {
  std::string out;
  const auto put = [&out](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (uint32_t r = 0; r < rows; ++r) {
    if (format == BITNET_FORMAT_TERNARY2) {
      for (uint32_t b = 0; b < columns / 4; ++b) {
        uint32_t byte = 0;
        for (uint32_t i = 0; i < 4; ++i)
          byte = byte << 2 | static_cast<uint32_t>(at(r, b / 32 * 128 + 32 * i + b % 32) + 1);
        out += static_cast<char>(byte);
      }
      continue;
    }
    for (uint32_t k = 0; k < columns; ++k) {
      const auto value = static_cast<float>(at(r, k)) * unit;
      const auto bits = std::bit_cast<uint32_t>(value);
      if (format == BITNET_FORMAT_F32)
        put(value);
      else if (format == BITNET_FORMAT_BF16)
        put(static_cast<uint16_t>(bits >> 16));
      else  // f16: only the exponent moves, for 0 and small integers
        put(static_cast<uint16_t>(
            value == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112U << 10))));
    }
  }
  return out;
}

}  // namespace bitnet::probe::golden
