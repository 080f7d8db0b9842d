#include <algorithm>
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
    return fail(
        BITNET_UNSUPPORTED,
        "I2_S of the flavour QK256 (no scale), or cut off where the scale belongs" + advice);
  if (have < own)
    return fail(BITNET_BAD_DATA,
                say("I2_S of ", n, " elements needs ", own, " bytes, the file has ", have,
                    " for it: it is cut off or damaged; download it again"));
  return fail(BITNET_BAD_DATA,
              say("I2_S of ", n, " elements takes ", own, " bytes, but the file reserves ", have,
                  ", as no known writer does", advice));
}

uint8_t code_at(std::byte packed, uint64_t shift) {
  const auto code = static_cast<uint8_t>(std::to_integer<uint32_t>(packed) >> shift & 3U);
  return code == 3 ? 1 : code;  // no writer makes it; zero does least harm
}

// Layouts A and B: four planes of `Plane` elements share as many bytes, over the flat tensor.
template <uint64_t Plane>
void planes(const std::byte* packed, uint64_t i, std::span<uint8_t> out) {
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t run = std::min(Plane - i % Plane, out.size() - done);
    const std::byte* from = packed + i / (4 * Plane) * Plane + i % Plane;
    const uint64_t shift = 6 - 2 * (i / Plane % 4);
    for (uint64_t j = 0; j < run; ++j) out[done + j] = code_at(from[j], shift);
    done += run;
    i += run;
  }
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
  const std::byte* packed = from.bytes.data();
  if (from.i2s_layout == BITNET_I2S_LAYOUT_C)  // four rows share the bytes of one
    for (uint64_t j = 0; j < out.size(); ++j)
      out[j] = code_at(packed[row / 4 * from.k + column + j], 6 - 2 * (row % 4));
  else if (from.i2s_layout == BITNET_I2S_LAYOUT_B)
    planes<16>(packed, row * from.k + column, out);
  else
    planes<32>(packed, row * from.k + column, out);
}

}  // namespace bitnet::formats
