// Cosines and sines that are kept by position are those that are computed each time.

#include "gpu-common/program/rotations.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace bitnet::gpu::test {
namespace {

const std::vector<double> frequencies{1.0, 0.31, 1e-4};

std::vector<float> expected(const std::vector<int32_t>& positions) {
  std::vector<float> out;
  for (const int32_t position : positions)
    for (const double frequency : frequencies) {
      out.push_back(static_cast<float>(std::cos(position * frequency)));
      out.push_back(static_cast<float>(std::sin(position * frequency)));
    }
  return out;
}
std::vector<float> written(rotations& by, const std::vector<int32_t>& positions) {
  std::vector<float> out(positions.size() * frequencies.size() * 2, -7.0f);
  by.write(positions, out.data());
  return out;
}

TEST(rotations, are_those_of_each_position) {
  rotations by(frequencies);
  // Within a chunk, at its ends, again, and past what is kept.
  const std::vector<std::vector<int32_t>> steps{
      {0}, {63, 64, 65}, {5, 0, 5}, {65535, 65536, 200000}, {65535, 64}, {}};
  for (const std::vector<int32_t>& positions : steps)
    EXPECT_EQ(written(by, positions), expected(positions));
}
TEST(rotations, positions_in_any_order_get_their_own_angles) {
  rotations by(frequencies);
  std::mt19937 random(1);
  for (int step = 0; step < 50; ++step) {
    std::vector<int32_t> positions(random() % 7);
    for (int32_t& one : positions) one = static_cast<int32_t>(random() % 70000);
    EXPECT_EQ(written(by, positions), expected(positions));
  }
}
TEST(rotations, computed_before_they_are_needed_are_the_same) {
  rotations by(frequencies);
  const std::vector<int32_t> positions{7, 64, 65535, 65536, 0};
  by.prepare(positions);
  EXPECT_EQ(written(by, positions), expected(positions));
}
TEST(rotations, of_no_frequency_are_none) {
  rotations by({});
  float untouched = 3;
  by.write(std::vector<int32_t>{1, 2}, &untouched);
  EXPECT_EQ(untouched, 3);
}

}  // namespace
}  // namespace bitnet::gpu::test
