#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/wording.hpp"
#include "bitnet/abi/tensor.h"
#include "bitnet/bitnet.h"
#include "formats/ternary.hpp"
#include "gguf/bytes.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t tail = 32;  // bytes behind the codes: the scale and padding

uint8_t code_at(std::byte packed, uint64_t shift) {
  const auto code = static_cast<uint8_t>(std::to_integer<uint32_t>(packed) >> shift & 3U);
  return code == 3 ? 1 : code;  // no writer uses 3; zero does the least harm
}

// Layouts A and B: four planes of `Plane` elements share their bytes, over the flat tensor.
template <uint64_t Plane>
void planes(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const std::byte* packed = from.bytes.data();
  uint64_t i = row * from.k + column;
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t run = std::min(Plane - i % Plane, out.size() - done);
    const std::byte* at = packed + i / (4 * Plane) * Plane + i % Plane;
    const uint64_t shift = 6 - 2 * (i / Plane % 4);
    for (uint64_t j = 0; j < run; ++j) out[done + j] = code_at(at[j], shift);
    done += run;
    i += run;
  }
}

// Layout C: four rows share bytes.
void four_rows(const source& from, uint64_t row, uint64_t column, std::span<uint8_t> out) {
  const std::byte* packed = from.bytes.data() + row / 4 * from.k + column;
  for (uint64_t j = 0; j < out.size(); ++j) out[j] = code_at(packed[j], 6 - 2 * (row % 4));
}

struct layout {
  const char* name;
  uint64_t unit;  // a tensor has a multiple of this many elements
  void (*codes)(const source&, uint64_t row, uint64_t column, std::span<uint8_t> out);
};
// Indexed by BITNET_I2S_LAYOUT_*.
constexpr layout layouts[] = {{"A", 128, planes<32>}, {"B", 64, planes<16>}, {"C", 1, four_rows}};

// The layouts of bitnet.cpp.
result<reading> understand_planes(const source& from, uint64_t n) {
  const layout& l = layouts[from.i2s_layout];
  if (from.i2s_layout == BITNET_I2S_LAYOUT_C && from.m % 4 != 0)
    return fail(BITNET_BAD_DATA, fmt::format("I2_S layout C needs a multiple of 4 rows, found {}; "
                                             "the file may be of layout A, the default",
                                             from.m));
  if (n % l.unit != 0)
    return fail(
        BITNET_BAD_DATA,
        fmt::format("I2_S layout {} needs a multiple of {} elements, found {}", l.name, l.unit, n));
  const auto scale = gguf::load<float>(from.bytes.subspan(n / 4));
  if (!std::isfinite(scale) || scale < 0)
    return fail(
        BITNET_BAD_DATA,
        "the I2_S scale is negative or not finite; the file is damaged or of another flavour");
  reading to = ternary_reading(
      from, l.codes, 0, {scale},
      fmt::format("I2_S of bitnet.cpp, layout {}: type 36 with room for n / 4 + 32 bytes; no field "
                  "of a file names the layout{}",
                  l.name,
                  from.i2s_layout == BITNET_I2S_LAYOUT_A ? ", A is the usual one"
                                                         : ", this one was asked for"));
  to.verbatim = from.i2s_layout == BITNET_I2S_LAYOUT_A && from.k % group == 0 &&
                !has_code_3(from.bytes.first(n / 4));
  return to;
}

}  // namespace

// Decides by the bytes up to the next tensor, which may include padding.
// docs/reference/weights.md#which-i2_s
result<reading> understand_i2s(const source& from) {
  const uint64_t n = from.k * from.m;
  const uint64_t have = from.bytes.size();
  const auto fits = [&](uint64_t size) {
    const auto padded = gguf::checked_pad(size, from.alignment);
    return have >= size && padded && have <= *padded;
  };
  const uint64_t own = n / 4 + tail;
  const uint64_t qk256 = (from.k + 255) / 256 * 64 * from.m;
  const bool qk256_asked = from.i2s_layout == BITNET_I2S_LAYOUT_QK256;
  if (fits(own) && !qk256_asked) return understand_planes(from, n);
  if (fits((n + 31) / 32 * 10) && !qk256_asked) return understand_bitnet32(from);
  if (from.scales.elements != 0 && fits((n + 31) / 32 * 8) && !qk256_asked)
    return understand_split32(from);
  if (fits(qk256)) {
    if (qk256_asked) return understand_qk256(from);
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("I2_S of the flavour QK256 (no scale, no zero), or cut off where the scale "
                    "belongs: convert the model again, or, if BitNet-rs made this file, ask for it "
                    "with {}",
                    say(word::i2s_layout_qk256)));
  }
  if (qk256_asked)
    return fail(BITNET_BAD_DATA, fmt::format("QK256 of {} x {} takes {} bytes, but the file "
                                             "reserves {}: it is of another {}",
                                             from.k, from.m, qk256, have, say(word::i2s_layout)));
  if (have < own)
    return fail(BITNET_BAD_DATA, fmt::format("I2_S of {} elements needs {} bytes, the file has {} "
                                             "for it: it is cut off or damaged; download it again",
                                             n, own, have));
  return fail(
      BITNET_BAD_DATA,
      fmt::format(
          "I2_S of {} elements takes {} bytes, but the file reserves {}, as no known writer does; "
          "convert the model again with the converter of bitnet.cpp or with {}",
          n, own, have, say(word::convert)));
}

}  // namespace bitnet::formats
