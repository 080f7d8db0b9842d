#pragma once
// Heads and states for two-stage heads: what their bounds have to hold for.

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/formats.hpp"

namespace bitnet::parity {

// Nearly normal, of deviation 1: the sum of four bytes. The library's distribution takes
// logarithms, which took an emulator most of the tests' time.
inline float gauss(std::mt19937& random) {
  const auto four = static_cast<uint32_t>(random());
  const uint32_t sum = (four & 255) + (four >> 8 & 255) + (four >> 16 & 255) + (four >> 24);
  return (static_cast<float>(sum) - 510.0f) / 147.8f;
}

// Gaussian rows in f16, some of them with outliers, tiny, zero, equal to another, or equal but for
// the last bit of one element: k elements, 2 bytes each, of m rows.
inline std::vector<uint8_t> head_rows(uint64_t k, uint64_t m, uint32_t seed) {
  std::vector<uint8_t> data(2 * k * m);
  std::mt19937 random(seed);
  for (uint64_t r = 0; r < m; ++r) {
    const float size = r % 97 == 5 ? 1e-6f : r % 89 == 7 ? 0.0f : 0.05f;
    for (uint64_t i = 0; i < k; ++i) {
      const float outlier = r % 53 == 3 && i % 61 == 0 ? 40.0f : 1.0f;
      const uint16_t half = sdk::f32_to_f16(size * outlier * gauss(random));
      std::memcpy(data.data() + 2 * (r * k + i), &half, 2);
    }
    const bool nearly = r % 103 == 13;
    if (r % 101 == 11 || nearly)
      std::copy_n(data.data() + 2 * (r - 1) * k, 2 * k, data.data() + 2 * r * k);
    if (nearly) data[2 * (r * k + random() % k)] ^= 1;
  }
  return data;
}

enum class kind : uint8_t {
  gaussian,
  outliers,
  aligned,
  tied,      // with a row that another nearly equals
  channels,  // two elements are always large, as in trained models
  single,    // one element is all there is
  tiny,
  denormal,
  huge,
  zero
};
struct named_kind {
  kind what;
  const char* name;
  bool likely;     // the margin of 4 bits is one of chance, for states like these
  float most = 1;  // share of rows that may be computed again
};
inline constexpr named_kind kinds[] = {{kind::gaussian, "gaussian", true, 0.2f},
                                       {kind::outliers, "outliers", true, 0.2f},
                                       {kind::aligned, "along a row", true, 0.2f},
                                       {kind::tied, "along two rows", false, 0.2f},
                                       {kind::channels, "large channels", true, 0.2f},
                                       {kind::single, "one element", false, 0.2f},
                                       {kind::tiny, "tiny", false, 0.2f},
                                       {kind::denormal, "denormal", false},
                                       {kind::huge, "huge", false, 0.2f},
                                       {kind::zero, "zero", false}};

inline float times(kind what) {
  switch (what) {
    case kind::tiny:
      return 1e-20f;
    case kind::denormal:
      return 1e-39f;
    case kind::huge:
      return 1e27f;
    case kind::zero:
      return 0.0f;
    default:
      return 1.0f;
  }
}

// A state for rows as head_rows() makes them.
inline std::vector<float> head_state(const std::vector<uint8_t>& rows, uint64_t k, uint64_t m,
                                     kind what, std::mt19937& random) {
  std::vector<float> x(k);
  for (float& v : x) v = gauss(random);
  if (what == kind::outliers)
    for (int i = 0; i < 4; ++i) x[random() % k] *= 200.0f;
  if (what == kind::aligned || what == kind::tied) {
    uint64_t r = random() % m;
    if (what == kind::tied) r = std::min(r / 103 * 103 + 12 + random() % 2, m - 1);
    for (uint64_t i = 0; i < k; ++i)
      x[i] =
          0.1f * x[i] + 20.0f * sdk::f16_to_f32(sdk::load<uint16_t>(rows.data() + 2 * (r * k + i)));
  }
  if (what == kind::channels) {
    x[1] = 80.0f + x[1];
    x[k / 2] = 30.0f * x[k / 2] - 500.0f;
  }
  if (what == kind::single) {
    const uint64_t at = random() % k;
    for (uint64_t i = 0; i < k; ++i) x[i] = i == at ? 7.0f * x[i] : 0.0f;
  }
  for (float& v : x) v *= times(what);
  return x;
}

// A list of the largest of m logits as the row that it stands for; empty: nothing is listed, or an
// id is not one or stands there twice.
inline std::vector<float> row_of_list(const bitnet_largest& list, uint64_t m) {
  constexpr float unset = -std::numeric_limits<float>::infinity();
  std::vector<float> row(m, unset);
  if (list.count > BITNET_MOST_LARGEST) return {};
  for (uint32_t i = 0; i < list.count; ++i) {
    const auto id = static_cast<uint64_t>(list.ids[i]);
    if (id >= m || row[id] != unset) return {};
    row[id] = list.logits[i];
  }
  return row;
}

}  // namespace bitnet::parity
