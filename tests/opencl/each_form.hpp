#pragma once
// What tests of kernels share: numbers, and the form of the driver and the size that they run in.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "bench.hpp"

namespace bitnet::opencl::test {

constexpr float epsilon = 0x1p-24f;  // of rounding one result to nearest

inline constexpr uint32_t group_sizes[] = {1, 8};  // cores, and what has barriers

using parameters = std::tuple<form, uint32_t>;
inline std::string name_of(const testing::TestParamInfo<parameters>& i) {
  const auto& [f, size] = i.param;
  const char* kind = f == form::modest        ? "modest_"
                     : f == form::dot_product ? "dot_product_"
                                              : "reported_";
  return kind + std::to_string(size);
}

class each_form : public testing::TestWithParam<parameters> {
 protected:
  void TearDown() override { EXPECT_EQ(bench::warnings(), 0); }
  void SetUp() override {
    std::string why;
    bench_ = bench::of(std::get<0>(GetParam()), why);
    if (!bench_) GTEST_SKIP() << why;
  }
  uint32_t t() const { return std::get<1>(GetParam()); }
  float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }
  std::vector<float> floats(uint64_t n, float size = 1) {
    std::vector<float> out(n);
    for (float& v : out) v = uniform(-size, size);
    return out;
  }
  // Bytes of a matrix in its file format, all values finite.
  std::vector<uint8_t> matrix(const sdk::format& f, uint64_t k, uint64_t m) {
    std::vector<uint8_t> out(sdk::row_bytes(f, k) * m);
    for (uint8_t& b : out) b = static_cast<uint8_t>(random_());
    const auto put_f16 = [&](uint64_t at) {
      const uint16_t half = sdk::f32_to_f16(uniform(-0.1f, 0.1f));
      std::memcpy(&out[at], &half, 2);
    };
    const uint64_t blocks = out.size() / f.block_bytes;
    for (uint64_t b = 0; b < blocks; ++b) {
      const uint64_t at = b * f.block_bytes;
      switch (f.id) {
        case BITNET_FORMAT_F32: {
          const float v = uniform(-1, 1);
          std::memcpy(&out[at], &v, 4);
          break;
        }
        case BITNET_FORMAT_BF16:
          out[at + 1] = static_cast<uint8_t>((out[at + 1] & 0x80) | 0x3e);
          break;
        case BITNET_FORMAT_Q4_K:
          put_f16(at);
          put_f16(at + 2);
          break;
        case BITNET_FORMAT_Q6_K:
          put_f16(at + 208);
          break;
        case BITNET_FORMAT_TERNARY2:
          for (uint64_t i = at; i < at + 32; ++i) {
            uint32_t byte = 0;
            for (int j = 0; j < 4; ++j) byte = byte << 2 | random_() % 3;
            out[i] = static_cast<uint8_t>(byte);
          }
          break;
        default:
          put_f16(at);
      }
    }
    return out;
  }

  bench* bench_ = nullptr;
  std::mt19937 random_{7};
};

// Also without doubles and without exact division.
class each_division : public each_form {};

inline argument header(uint32_t tokens, uint32_t outputs = 0, uint32_t window = 0,
                       uint32_t keep = 0) {
  return input<uint32_t>({tokens, outputs, window, keep});
}

}  // namespace bitnet::opencl::test
