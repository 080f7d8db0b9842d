#include <cmath>

#include "bitnet/abi/tensor.h"
#include "bitnet/bitnet.h"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"

namespace bitnet::formats {
namespace {

using gguf::say;

constexpr uint64_t tail = 32;  // bytes behind the codes: the scale and padding

// Four programs write type 36, in forms of different sizes. Decides by `have`, the bytes up to the
// next tensor, which may include padding.
result<void> check_flavour(const source& from, uint64_t n) {
  const uint64_t have = from.bytes.size();
  const auto fits = [&](uint64_t size) {
    const auto padded = gguf::checked_pad(size, from.alignment);
    return have >= size && padded && have <= *padded;
  };
  const uint64_t own = n / 4 + tail;
  if (fits(own)) return {};
  const std::string advice =
      "; this program reads the I2_S of bitnet.cpp: convert the model again with its converter";
  if (fits((n + 31) / 32 * 10))
    return fail(BITNET_UNSUPPORTED,
                "I2_S of the flavour BitNet32-F16 (a scale in every 32 elements)" + advice);
  if (from.scale_sibling && fits((n + 31) / 32 * 8))
    return fail(BITNET_UNSUPPORTED,
                "I2_S of the flavour Split32 (scales in another tensor)" + advice);
  if (fits((from.k + 255) / 256 * 64 * from.m))
    return fail(BITNET_UNSUPPORTED, "I2_S of the flavour QK256 (no scale)" + advice);
  if (have < own)
    return fail(BITNET_BAD_DATA,
                say("I2_S of ", n, " elements needs ", own, " bytes, the file has ", have,
                    " for it: it is cut off or damaged; download it again"));
  return fail(BITNET_BAD_DATA,
              say("I2_S of ", n, " elements takes ", own, " bytes, but the file reserves ", have,
                  ", as no known writer does", advice));
}

struct place {
  uint64_t byte;
  uint32_t shift;
};

place find(const source& from, uint64_t row, uint64_t column) {
  if (from.i2s_layout == BITNET_I2S_LAYOUT_C)
    return {row / 4 * from.k + column, static_cast<uint32_t>(6 - 2 * (row % 4))};
  const uint64_t planes = from.i2s_layout == BITNET_I2S_LAYOUT_B ? 16 : 32;
  const uint64_t i = row * from.k + column;
  return {i / (4 * planes) * planes + i % planes,
          static_cast<uint32_t>(6 - 2 * (i % (4 * planes) / planes))};
}

bool has_code_3(std::span<const std::byte> packed) {
  constexpr uint64_t low_bits = 0x5555555555555555;
  uint64_t found = 0;
  size_t i = 0;
  for (; i + 8 <= packed.size(); i += 8) {
    const auto word = gguf::load<uint64_t>(packed.subspan(i));
    found |= word & word >> 1 & low_bits;
  }
  for (; i < packed.size(); ++i) {
    const auto byte = std::to_integer<uint64_t>(packed[i]);
    found |= byte & byte >> 1 & low_bits;
  }
  return found != 0;
}

}  // namespace

result<reading> understand_i2s(const source& from) {
  const uint64_t n = from.k * from.m;
  if (auto ok = check_flavour(from, n); !ok) return std::unexpected(ok.error());
  const bool b = from.i2s_layout == BITNET_I2S_LAYOUT_B;
  const bool c = from.i2s_layout == BITNET_I2S_LAYOUT_C;
  const uint64_t unit = b ? 64 : 128;
  if (c && from.m % 4 != 0)
    return fail(BITNET_BAD_DATA, say("I2_S layout C needs a multiple of 4 rows, found ", from.m,
                                     "; the file may be of layout A, the default"));
  if (!c && n % unit != 0)
    return fail(BITNET_BAD_DATA, say("I2_S layout ", b ? "B" : "A", " needs a multiple of ", unit,
                                     " elements, found ", n));
  const auto scale = gguf::load<float>(from.bytes.subspan(n / 4));
  if (!std::isfinite(scale) || scale < 0)
    return fail(
        BITNET_BAD_DATA,
        "the I2_S scale is negative or not finite; the file is damaged or of another flavour");
  reading to;
  to.format = BITNET_FORMAT_TERNARY2;
  to.data_bytes = canonical_bytes(from.k, from.m);
  to.scales = {scale};
  to.verbatim = !b && !c && from.k % group == 0 && !has_code_3(from.bytes.first(n / 4));
  return to;
}

void i2s_codes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  for (size_t j = 0; j < out.size(); ++j) {
    const place at = find(from, row, column + j);
    const auto code =
        static_cast<uint8_t>(std::to_integer<uint32_t>(from.bytes[at.byte]) >> at.shift & 3U);
    out[j] = code == 3 ? 1 : code;  // no writer makes it; zero does least harm
  }
}

}  // namespace bitnet::formats
