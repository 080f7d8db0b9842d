#pragma once
// What the tests of ternary types share: a tensor that many types can hold, golden vectors, the
// canonical form by its definition, and rows of what is rejected.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "../gguf/gguf_builder.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/reading.hpp"

namespace bitnet::formats {

using tests::bytes;

// docs/reference/weights.md#example-tensor
inline std::vector<int> generated(size_t n) {
  std::vector<int> out;
  uint32_t x = 1;
  for (size_t i = 0; i < n; ++i) {
    x = 1664525 * x + 1013904223;
    out.push_back(static_cast<int>((x >> 16) % 3) - 1);
  }
  return out;
}

// A "bytes NAME SIZE CRC32 HEX" line of tests/golden/vectors.txt.
inline bytes golden(const std::string& name) {
  const char* root = std::getenv("BITNET_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + "/tests/golden/vectors.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string kind, label, crc, hex;
    size_t size = 0;
    if (!(fields >> kind >> label) || kind != "bytes" || label != name) continue;
    fields >> size >> crc >> hex;
    bytes out;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      out.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    EXPECT_EQ(out.size(), size);
    return out;
  }
  ADD_FAILURE() << "no golden vector " << name << "; run from ctest, which sets BITNET_SOURCE_DIR";
  return {};
}

// An "ints NAME COUNT V V ..." line of the same file.
inline std::vector<int> golden_ints(const std::string& name) {
  const char* root = std::getenv("BITNET_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + "/tests/golden/vectors.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string kind, label;
    size_t count = 0;
    if (!(fields >> kind >> label >> count) || kind != "ints" || label != name) continue;
    std::vector<int> out;
    for (int v = 0; fields >> v;) out.push_back(v);
    EXPECT_EQ(out.size(), count);
    return out;
  }
  ADD_FAILURE() << "no golden vector " << name;
  return {};
}

inline bytes canonical(const source& from, const reading& to) {
  if (to.verbatim)
    return {from.bytes.begin(), from.bytes.begin() + static_cast<ptrdiff_t>(to.data_bytes)};
  bytes out(to.data_bytes);
  convert(from, to, 0, out);
  return out;
}

// Element (r, c) of the canonical form by its definition in bitnet/abi/tensor.h.
inline int element(const bytes& form, uint64_t k, uint64_t r, uint64_t c) {
  const uint64_t row_bytes = (k + 127) / 128 * 32;
  const auto byte = std::to_integer<int>(form[r * row_bytes + c / 128 * 32 + c % 32]);
  return (byte >> (6 - 2 * (c % 128 / 32)) & 3) - 1;
}

inline float scale_at(const reading& to, uint64_t k, uint64_t r, uint64_t c) {
  return to.scales[to.scale_group == 0 ? 0 : (r * k + c) / to.scale_group];
}

inline void set_code(bytes& packed, uint64_t byte, uint64_t shift, int t) {
  packed[byte] |= static_cast<std::byte>((t + 1) << shift);
}

inline uint16_t f16_bits(float x) {  // of the few numbers below, exactly
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return 0x7c00;
  if (x == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(x), &exponent);
  return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                               static_cast<int>(fraction * 2048 - 1024));
}

struct rejected {
  const char* why;
  source from;
  const char* says;
  bitnet_status status;
};

inline void expect_rejected(std::span<const rejected> rows) {
  for (const rejected& r : rows) {
    const auto to = understand(r.from);
    ASSERT_FALSE(to) << r.why;
    EXPECT_NE(to.error().message.find(r.says), std::string::npos)
        << r.why << ": " << to.error().message;
    EXPECT_EQ(to.error().status, r.status) << r.why << ": " << to.error().message;
  }
}

}  // namespace bitnet::formats
