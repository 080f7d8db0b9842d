// The primitives against the golden rows, and against what their definitions say at the edges.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "golden.hpp"
#include "ops/ops.hpp"

namespace bitnet::parity {
namespace {

TEST(act_quant, equals_the_golden_rows) {
  const struct {
    const char* name;
    const char* why;
  } rows[] = {{"quant_half_even", "exact halves go to the even neighbour"},
              {"quant_no_clamp", "15.875 rounds up"},
              {"quant_zeros", "the floor of 1e-5 keeps the scale finite"},
              {"quant_tiny", "below the floor"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const std::string name = row.name;
    const auto x = golden_as<float>(name + "_x");
    std::vector<int8_t> q(x.size());
    float s = 0;
    cpu::act_quant_scalar(x.data(), x.size(), q.data(), &s);
    EXPECT_EQ(q, golden_as<int8_t>(name + "_q"));
    EXPECT_FLOAT_EQ(s, golden_as<float>(name + "_s")[0]);
  }
}

TEST(act_quant, what_is_no_number_stays_defined) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {std::nanf(""), infinity, -infinity, 1.0f};
  int8_t q[4] = {};
  float s = -1;
  cpu::act_quant_scalar(x, 4, q, &s);
  EXPECT_EQ(s, 0.0f);
  EXPECT_EQ(q[3], 0);
}

TEST(rms_norm, equals_the_golden_row) {
  const auto x = golden_as<float>("rmsnorm_x"), w = golden_as<float>("rmsnorm_w");
  const auto expected = golden_as<float>("rmsnorm_y");
  std::vector<float> y(x.size());
  cpu::rms_norm_scalar(x.data(), w.data(), 1e-5f, x.size(), y.data());
  for (uint64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 2e-7 * std::fabs(y[i]));
}

TEST(rope, equals_the_golden_rows) {
  const auto x = golden_as<float>("rope_x");
  for (const int mode : {BITNET_ROPE_NEOX, BITNET_ROPE_INTERLEAVED}) {
    sdk::call c{};
    c.ints[0] = 1;
    c.ints[1] = c.ints[2] = 4;
    c.ints[3] = mode;
    c.floats[0] = 10000.0f;
    c.floats[1] = 1.0f;
    cpu::rope_angles angles{};
    std::vector<float> y(4);
    cpu::rope_row(cpu::scalar_form, x.data(), 0, 3, c, angles, y.data());
    const auto expected =
        golden_as<float>(mode == BITNET_ROPE_NEOX ? "rope_neox_y" : "rope_norm_y");
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 3e-7 * std::fabs(y[i])) << mode;
  }
}

TEST(rope, dimensions_past_the_rotated_ones_are_copied) {
  const float x[] = {1, 2, 3, 4, 5, 6};
  sdk::call c{};
  c.ints[0] = 1;
  c.ints[1] = 6;
  c.ints[2] = 4;
  c.floats[0] = 10000.0f;
  c.floats[1] = 1.0f;
  cpu::rope_angles angles{};
  float y[6] = {};
  cpu::rope_row(cpu::scalar_form, x, 0, 3, c, angles, y);
  EXPECT_EQ(y[4], 5.0f);
  EXPECT_EQ(y[5], 6.0f);
  EXPECT_NE(y[0], 1.0f);
}

// What a worker keeps of the angles of 70 tokens changes no bit, whatever it knew before: of other
// positions, of other frequencies, of tokens in the same place.
TEST(rope, known_angles_are_those_of_the_token) {
  std::vector<float> x(128), y(128), expected(128);
  for (uint64_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i) - 0.5f;
  const auto known = std::make_unique<cpu::rope_angles>();
  const auto none = std::make_unique<cpu::rope_angles>();
  for (int step = 0; step < 6; ++step) {
    sdk::call c{};
    c.ints[0] = 1;
    c.ints[1] = c.ints[2] = 128;
    c.floats[0] = step % 3 == 2 ? 1e6f : 10000.0f;
    c.floats[1] = 1.0f;
    for (uint64_t t = 0; t < 70; ++t) {
      const auto position = static_cast<int32_t>(step / 2 + 17 * (t % 5));
      *none = {};
      cpu::rope_row(cpu::scalar_form, x.data(), t, position, c, *none, expected.data());
      cpu::rope_row(cpu::scalar_form, x.data(), t, position, c, *known, y.data());
      ASSERT_EQ(y, expected) << "step " << step << ", token " << t;
    }
  }
}

TEST(relu2, equals_the_golden_row) {
  const auto gate = golden_as<float>("relu2_gate"), up = golden_as<float>("relu2_up");
  std::vector<float> y(gate.size());
  cpu::relu2_scalar(gate.data(), gate.size(), y.data());
  cpu::mul_scalar(y.data(), up.data(), up.size(), y.data());
  EXPECT_EQ(y, golden_as<float>("relu2_y"));
}

TEST(silu, has_known_values) {
  const float x[] = {0.0f, 1.0f, -1.0f, 100.0f, -100.0f};
  float y[5] = {};
  cpu::silu_scalar(x, 5, y);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_NEAR(y[1], 0.731058579f, 1e-7);
  EXPECT_NEAR(y[2], -0.268941421f, 1e-7);
  EXPECT_EQ(y[3], 100.0f);
  EXPECT_NEAR(y[4], 0.0f, 1e-37);
}

// By the form with tanh, computed with 40 digits.
TEST(gelu, has_known_values) {
  const float x[] = {0.0f, 1.0f, -1.0f, 0.5f, -3.0f, 100.0f, -100.0f};
  float y[7] = {};
  cpu::gelu_scalar(x, 7, y);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_NEAR(y[1], 0.841191990608f, 1e-7);
  EXPECT_NEAR(y[2], -0.158808009392f, 3e-8);
  EXPECT_NEAR(y[3], 0.345714009825f, 6e-8);
  EXPECT_NEAR(y[4], -0.00363739208f, 3e-9);
  EXPECT_EQ(y[5], 100.0f);
  EXPECT_NEAR(y[6], 0.0f, 1e-37);
}

TEST(embed_gather, ternary_rows_carry_their_scales) {
  uint8_t row[64];
  for (uint8_t& b : row) b = 0x86;  // codes 2, 0, 1, 2: +1, -1, 0, +1
  const float scales[] = {0.5f, 0.25f, 2.0f, 4.0f};
  const sdk::weight table{BITNET_FORMAT_TERNARY2, 128, 2, row, 32, scales, 64};
  float y[128];
  cpu::embed_row(table, 1, y);
  EXPECT_EQ(y[0], 2.0f);
  EXPECT_EQ(y[32], -2.0f);
  EXPECT_EQ(y[64], 0.0f);
  EXPECT_EQ(y[96], 4.0f);
}

}  // namespace
}  // namespace bitnet::parity
