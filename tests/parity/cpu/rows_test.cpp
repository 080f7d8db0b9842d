// The row kernels of every instruction set against the scalar form, bit for bit, and the scalar
// form against arithmetic in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "bitnet/sdk/formats.hpp"
#include "bitnet/sdk/reference/attention.hpp"
#include "forms.hpp"
#include "guarded_memory.hpp"

namespace bitnet::parity {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

enum class fill : uint8_t { usual, huge, tiny, zero, special };

struct row {
  uint64_t k;
  fill contents;
  const char* why;
};
constexpr row rows[] = {
    {1, fill::usual, "a single element"},
    {7, fill::usual, "less than any vector"},
    {15, fill::usual, "one short of the partials"},
    {16, fill::usual, "the partials exactly"},
    {33, fill::usual, "one past two vectors"},
    {100, fill::usual, "heads of 100"},
    {2560, fill::usual, "the width of BitNet b1.58 2B"},
    {6912, fill::usual, "its feed-forward width"},
    {8640, fill::usual, "the feed-forward width of the 3B"},
    {320, fill::huge, "squares past the range of f32"},
    {320, fill::tiny, "denormals, and less than the floor of 1e-5"},
    {48, fill::zero, "zeros"},
    {48, fill::special, "infinities and NaN stay defined"},
};

float value(fill contents, std::mt19937& random) {
  const float usual = static_cast<float>(static_cast<int>(random() % 40001) - 20000) / 1777.0f;
  switch (contents) {
    case fill::usual:
      return usual;
    case fill::huge:
      return usual * 1e37f;
    case fill::tiny:
      return usual * 1e-38f;
    case fill::zero:
      return 0;
    case fill::special:
      break;
  }
  const float some[] = {usual, infinity, -infinity, std::nanf(""), -0.0f};
  return some[random() % 5];
}

class row_forms : public each_form {};

template <class T>
void expect_same(guarded_memory<T>& found, guarded_memory<T>& expected) {
  for (uint64_t i = 0; i < expected.size(); ++i) {
    if constexpr (std::is_same_v<T, float>) {
      if (std::isnan(expected[i]) && std::isnan(found[i])) continue;  // whichever NaN it is
      ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
          << "at " << i << ": " << found[i] << ", expected " << expected[i];
    } else {
      ASSERT_EQ(found[i], expected[i]) << "at " << i;
    }
  }
}

// Memory of its own for each input and output of a case: nothing is read or written past an end.
struct operands {
  explicit operands(const row& r) : a(r.k), b(r.k) {
    std::mt19937 random(static_cast<uint32_t>(r.k * 7));
    for (uint64_t i = 0; i < r.k; ++i) a[i] = value(r.contents, random);
    for (uint64_t i = 0; i < r.k; ++i) b[i] = value(fill::usual, random);
  }
  guarded_memory<float> a, b;
};

TEST_P(row_forms, functions_of_one_input_equal_the_scalar_form) {
  using kernel = void (*cpu::row_kernels::*)(const float*, uint64_t, float*);
  for (const kernel f : {kernel{&cpu::row_kernels::relu2}, kernel{&cpu::row_kernels::silu},
                         kernel{&cpu::row_kernels::gelu}, kernel{&cpu::row_kernels::sigmoid}})
    for (const row& r : rows) {
      SCOPED_TRACE(r.why);
      operands x(r);
      guarded_memory<float> y(r.k), expected(r.k);
      (cpu::scalar_form.rows.*f)(x.a.data(), r.k, expected.data());
      (GetParam()->rows.*f)(x.a.data(), r.k, y.data());
      expect_same(y, expected);
    }
}

TEST_P(row_forms, functions_of_two_inputs_equal_the_scalar_form) {
  using kernel = void (*cpu::row_kernels::*)(const float*, const float*, uint64_t, float*);
  for (const kernel f : {kernel{&cpu::row_kernels::add}, kernel{&cpu::row_kernels::mul}})
    for (const row& r : rows) {
      SCOPED_TRACE(r.why);
      operands x(r);
      guarded_memory<float> y(r.k), expected(r.k);
      (cpu::scalar_form.rows.*f)(x.a.data(), x.b.data(), r.k, expected.data());
      (GetParam()->rows.*f)(x.a.data(), x.b.data(), r.k, y.data());
      expect_same(y, expected);
    }
}

// Columns in whole blocks of vectors, in single ones and by themselves.
TEST_P(row_forms, the_delta_rule_equals_the_scalar_form) {
  for (const uint64_t d_v : {1u, 16u, 24u, 77u, 128u, 200u})
    for (const uint64_t d_k : {1u, 33u, 128u}) {
      SCOPED_TRACE(std::to_string(d_k) + " x " + std::to_string(d_v));
      std::mt19937 random(static_cast<uint32_t>(d_k + 7 * d_v));
      const auto fill = [&](guarded_memory<float>& x) {
        for (uint64_t i = 0; i < x.size(); ++i)
          x[i] = static_cast<float>(random() % 2001) / 1000 - 1;
      };
      guarded_memory<float> q(d_k), k(d_k), v(d_v), state(d_k * d_v), other(d_k * d_v);
      guarded_memory<float> y(d_v), expected(d_v);
      for (guarded_memory<float>* x : {&q, &k, &v, &state}) fill(*x);
      std::copy_n(state.data(), state.size(), other.data());
      const cpu::delta_token t{.q = q.data(),
                               .k = k.data(),
                               .v = v.data(),
                               .q_factor = 0.3f,
                               .k_factor = 0.7f,
                               .decay = 0.9f,
                               .beta = 0.6f};
      cpu::scalar_form.rows.delta_rule(t, d_k, d_v, state.data(), expected.data());
      GetParam()->rows.delta_rule(t, d_k, d_v, other.data(), y.data());
      expect_same(y, expected);
      expect_same(other, state);
    }
}

TEST_P(row_forms, scale_equals_the_scalar_form) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    operands x(r);
    guarded_memory<float> y(r.k), expected(r.k);
    cpu::scalar_form.rows.scale(x.a.data(), 50.596443f, r.k, expected.data());
    GetParam()->rows.scale(x.a.data(), 50.596443f, r.k, y.data());
    expect_same(y, expected);
  }
}

TEST_P(row_forms, rms_norm_equals_the_scalar_form) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    operands x(r);
    guarded_memory<float> y(r.k), expected(r.k);
    cpu::scalar_form.rows.rms_norm(x.a.data(), x.b.data(), 1e-5f, r.k, expected.data());
    GetParam()->rows.rms_norm(x.a.data(), x.b.data(), 1e-5f, r.k, y.data());
    expect_same(y, expected);
  }
}

TEST_P(row_forms, act_quant_equals_the_scalar_form) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    operands x(r);
    guarded_memory<int8_t> q(r.k), expected(r.k);
    float s = 0, expected_s = 0;
    cpu::scalar_form.rows.act_quant(x.a.data(), r.k, expected.data(), &expected_s);
    GetParam()->rows.act_quant(x.a.data(), r.k, q.data(), &s);
    EXPECT_EQ(s, expected_s);
    expect_same(q, expected);
  }
}

TEST_P(row_forms, act_quant_rounds_half_to_even) {
  // 127 / 127 = 1: every value is its own code, so the halves are seen as they are.
  const float x[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f};
  const int8_t expected[] = {127, 0, 2, 2, 0, -2, -2, 126, -126};
  int8_t q[9];
  float s = 0;
  GetParam()->rows.act_quant(x, 9, q, &s);
  EXPECT_EQ(s, 1.0f);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(q[i], expected[i]) << x[i];
}

TEST_P(row_forms, act_quant_in_groups_equals_the_scalar_form) {
  for (const uint64_t group : {32u, 64u, 128u}) {
    constexpr uint64_t k = 1280;
    operands x({k, fill::usual, ""});
    guarded_memory<int8_t> q(k), expected(k);
    guarded_memory<float> d(k / group), expected_d(k / group);
    cpu::scalar_form.rows.act_quant_groups(x.a.data(), k, group, expected.data(),
                                           expected_d.data());
    GetParam()->rows.act_quant_groups(x.a.data(), k, group, q.data(), d.data());
    expect_same(d, expected_d);
    expect_same(q, expected);
  }
}

TEST_P(row_forms, hadamard_equals_the_scalar_form) {
  for (const uint64_t block : {2u, 4u, 8u, 16u, 32u, 1024u})
    for (const int with : {0, 1, 2}) {  // factors: none, first, last
      SCOPED_TRACE(block);
      const uint64_t k = 3 * block;
      operands x({k, fill::usual, ""});
      guarded_memory<float> y(k), expected(k);
      const float* factors = with == 0 ? nullptr : x.b.data();
      cpu::scalar_form.rows.hadamard(x.a.data(), factors, with == 1, k, block, expected.data());
      GetParam()->rows.hadamard(x.a.data(), factors, with == 1, k, block, y.data());
      expect_same(y, expected);
    }
}

// Sums of products with the matrix itself, in whole numbers: exact however they are added.
TEST_P(row_forms, hadamard_is_the_matrix) {
  constexpr uint64_t block = 1024;  // 1 / sqrt(1024) is a power of two
  std::vector<float> x(block), signs(block), y(block);
  for (uint64_t i = 0; i < block; ++i) {
    x[i] = (static_cast<float>((37 * i) % 64) - 32) / 32;
    signs[i] = 5 * i / 3 % 2 == 0 ? 1.0f : -1.0f;
  }
  GetParam()->rows.hadamard(x.data(), signs.data(), true, block, block, y.data());
  const float first[] = {-0.1875f, -0.1875f, 0.33203125f, -0.70703125f, -0.71484375f, 0.16796875f};
  for (uint64_t i = 0; i < std::size(first); ++i) EXPECT_EQ(y[i], first[i]) << i;
  for (uint64_t i = 0; i < block; ++i) {
    double sum = 0;
    for (uint64_t j = 0; j < block; ++j)
      sum += (std::popcount(i & j) % 2 == 0 ? 1 : -1) * static_cast<double>(x[j] * signs[j]);
    EXPECT_EQ(static_cast<double>(y[i]), sum / 32) << i;
  }
}

TEST_P(row_forms, softmax_equals_the_scalar_form) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    operands x(r), y(r);
    const float expected = cpu::scalar_form.rows.softmax(x.a.data(), r.k, 0.0883883f);
    const float sum = GetParam()->rows.softmax(y.a.data(), r.k, 0.0883883f);
    if (!std::isnan(expected) || !std::isnan(sum)) {
      EXPECT_EQ(sum, expected);
    }
    expect_same(y.a, x.a);
  }
}

TEST_P(row_forms, rotate_equals_the_scalar_form) {
  const struct {
    uint64_t pairs, heads, head_dim;
    const char* why;
  } shapes[] = {{64, 20, 128, "BitNet b1.58 2B"},
                {48, 3, 96, "heads of 96"},
                {50, 2, 100, "of 100"},
                {3, 2, 9, "a part of the head, which is odd"},
                {0, 1, 4, "nothing turns"}};
  for (const bool neox : {true, false})
    for (const auto& shape : shapes) {
      SCOPED_TRACE(shape.why);
      const uint64_t k = shape.heads * shape.head_dim;
      operands x({k, fill::usual, ""});
      guarded_memory<float> c(shape.pairs), s(shape.pairs), y(k), expected(k);
      for (uint64_t i = 0; i < shape.pairs; ++i) {
        c[i] = std::cos(static_cast<float>(i));
        s[i] = std::sin(static_cast<float>(i));
      }
      const cpu::rotation r{c.data(), s.data(), shape.pairs, shape.heads, shape.head_dim, neox};
      cpu::scalar_form.rows.rotate(x.a.data(), r, expected.data());
      GetParam()->rows.rotate(x.a.data(), r, y.data());
      expect_same(y, expected);
    }
}

TEST_P(row_forms, halves_equal_those_of_the_scalar_form) {
  for (const row& r : rows) {
    if (r.contents == fill::special) continue;  // which NaN it is depends on the processor
    SCOPED_TRACE(r.why);
    operands x(r);
    guarded_memory<uint8_t> y(2 * r.k), expected(2 * r.k);
    cpu::scalar_form.rows.halves(x.a.data(), r.k, expected.data());
    GetParam()->rows.halves(x.a.data(), r.k, y.data());
    expect_same(y, expected);
  }
}

TEST_P(row_forms, halves_round_to_even_at_every_edge) {
  // Each half, what lies in the middle between it and the next one, and their neighbours.
  std::vector<float> x;
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const float half = sdk::f16_to_f32(static_cast<uint16_t>(i));
    const float next = i == 0x7bff ? 65536.0f : sdk::f16_to_f32(static_cast<uint16_t>(i + 1));
    const float middle = (half + next) / 2;
    for (const float v : {half, std::nextafter(middle, 0.0f), middle, std::nextafter(middle, next)})
      for (const float sign : {1.0f, -1.0f}) x.push_back(sign * v);
  }
  for (const float v : {1e-45f, 1e-38f, 65519.0f, 65535.0f, 65536.0f, 1e6f, 3e38f, infinity})
    for (const float sign : {1.0f, -1.0f}) x.push_back(sign * v);
  std::vector<uint16_t> y(x.size());
  GetParam()->rows.halves(x.data(), x.size(), reinterpret_cast<uint8_t*>(y.data()));
  for (uint64_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], sdk::f32_to_f16(x[i])) << x[i];
  const float nan[] = {std::nanf(""), -std::nanf(""), std::bit_cast<float>(0x7f800001u)};
  GetParam()->rows.halves(nan, 3, reinterpret_cast<uint8_t*>(y.data()));
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(sdk::f16_to_f32(y[i]))) << i;
}

TEST_P(row_forms, each_half_is_widened_exactly) {
  guarded_memory<uint8_t> x(2 * 65536);
  guarded_memory<float> y(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    x[2 * i] = static_cast<uint8_t>(i);
    x[2 * i + 1] = static_cast<uint8_t>(i >> 8);
  }
  for (const uint64_t k : {65536u, 13u, 1u}) {
    GetParam()->rows.widen(x.data(), k, y.data());
    for (uint32_t i = 0; i < k; ++i) {
      const float expected = sdk::f16_to_f32(static_cast<uint16_t>(i));
      if (std::isnan(expected) && std::isnan(y[i])) continue;
      ASSERT_EQ(y[i], expected) << i;
    }
  }
}

TEST_P(row_forms, blocks_are_decoded_as_the_format_says) {
  const struct {
    uint32_t format;
    void (*cpu::row_kernels::*decode)(const uint8_t*, uint64_t, float*);
  } all[] = {{BITNET_FORMAT_Q4_0, &cpu::row_kernels::from_q4_0},
             {BITNET_FORMAT_Q4_K, &cpu::row_kernels::from_q4_k},
             {BITNET_FORMAT_Q6_K, &cpu::row_kernels::from_q6_k}};
  std::mt19937 random(4);
  for (const auto& one : all)
    for (const uint64_t k : {256u, 512u, 2560u}) {
      SCOPED_TRACE(one.format);
      guarded_memory<uint8_t> x(sdk::row_bytes(*sdk::find_format(one.format), k));
      guarded_memory<float> y(k);
      std::vector<float> expected(k);
      for (uint64_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(random());
      (GetParam()->rows.*one.decode)(x.data(), k, y.data());
      sdk::decode(one.format, x.data(), 0, k, expected.data());
      for (uint64_t i = 0; i < k; ++i) {
        if (std::isnan(expected[i]) && std::isnan(y[i])) continue;  // scales are random bytes too
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << i;
      }
    }
}

TEST_P(row_forms, q8_0_equals_the_scalar_form_and_is_within_half_a_step) {
  for (const fill contents : {fill::usual, fill::huge, fill::tiny, fill::zero, fill::special})
    for (const uint64_t k : {32u, 96u, 640u}) {
      operands x({k, contents, ""});
      guarded_memory<uint8_t> y(k / 32 * 34), expected(k / 32 * 34);
      cpu::scalar_form.rows.q8_0(x.a.data(), k, expected.data());
      GetParam()->rows.q8_0(x.a.data(), k, y.data());
      expect_same(y, expected);
      if (contents != fill::usual) continue;
      for (uint64_t i = 0; i < k; i += 32) {
        float largest = 0, back[32];
        for (uint64_t j = i; j < i + 32; ++j) largest = std::max(largest, std::fabs(x.a[j]));
        sdk::detail::decode_q8_0(y.data() + i / 32 * 34, back);
        // Half a step, and what f16 loses of the step: 127 times 2^-11 of it at most.
        for (uint64_t j = 0; j < 32; ++j)
          EXPECT_NEAR(back[j], x.a[i + j], largest / 127 * (0.5f + 0.063f)) << j;
      }
    }
}

TEST_P(row_forms, q8_0_keeps_the_largest_and_rounds_half_to_even) {
  float x[32] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, -127.0f};
  uint8_t y[34];
  GetParam()->rows.q8_0(x, 32, y);
  EXPECT_EQ(sdk::f16_to_f32(sdk::load<uint16_t>(y)), 1.0f);
  const int expected[] = {127, 0, 2, 2, 0, -2, -2, 126, -126, -127, 0};
  for (int i = 0; i < 11; ++i) EXPECT_EQ(static_cast<int8_t>(y[2 + i]), expected[i]) << x[i];
  x[0] = 1e30f;  // past the largest f16 step: saturates, stays finite
  GetParam()->rows.q8_0(x, 32, y);
  EXPECT_EQ(sdk::f16_to_f32(sdk::load<uint16_t>(y)), 65504.0f);
  EXPECT_EQ(static_cast<int8_t>(y[2]), 127);
}

TEST_P(row_forms, q4_0_equals_the_scalar_form_and_is_within_its_steps) {
  for (const fill contents : {fill::usual, fill::huge, fill::tiny, fill::zero, fill::special})
    for (const uint64_t k : {32u, 96u, 640u}) {
      operands x({k, contents, ""});
      guarded_memory<uint8_t> y(k / 32 * 18), expected(k / 32 * 18);
      cpu::scalar_form.rows.q4_0(x.a.data(), k, expected.data());
      GetParam()->rows.q4_0(x.a.data(), k, y.data());
      expect_same(y, expected);
      std::vector<uint8_t> of_sdk(y.size());
      sdk::reference::kv_write(x.a.data(), k, BITNET_DTYPE_Q4_0, of_sdk.data());
      EXPECT_EQ(std::memcmp(of_sdk.data(), y.data(), y.size()), 0);
      if (contents != fill::usual) continue;
      for (uint64_t i = 0; i < k; i += 32) {
        float largest = 0, back[32];
        for (uint64_t j = i; j < i + 32; ++j) largest = std::max(largest, std::fabs(x.a[j]));
        sdk::detail::decode_q4_0(y.data() + i / 32 * 18, back);
        // Half a step, a whole one at the end that has seven codes, and what f16 loses of 8 steps.
        for (uint64_t j = 0; j < 32; ++j)
          EXPECT_NEAR(back[j], x.a[i + j], largest / 8 * (1.0f + 8 * 0x1p-11f)) << j;
        for (uint64_t j = 0; j < 32; ++j)
          if (std::fabs(back[j]) < largest * 0.8f) {
            EXPECT_NEAR(back[j], x.a[i + j], largest / 8 * (0.5f + 8 * 0x1p-11f)) << j;
          }
      }
    }
}

TEST_P(row_forms, q4_0_keeps_the_largest_and_rounds_halves_up) {
  const auto codes = [](const float* x) {
    uint8_t y[18];
    GetParam()->rows.q4_0(x, 32, y);
    std::vector<int> out(32);
    for (size_t i = 0; i < 32; ++i) out[i] = (y[2 + i % 16] >> (i < 16 ? 0 : 4) & 15) - 8;
    out.push_back(y[0] | y[1] << 8);
    return out;
  };
  float x[32] = {-8.0f, 0.5f, 1.5f, -0.5f, -1.5f, 7.5f, 6.49f, -7.51f};
  x[16] = 3.0f;  // in the upper half of the first byte
  x[31] = 8.0f;  // as large as the first, which says the sign
  std::vector<int> found = codes(x);
  const int expected[] = {-8, 1, 2, 0, -1, 7, 6, -8, 0};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(found[i], expected[i]) << x[i];
  EXPECT_EQ(found[16], 3);
  EXPECT_EQ(found[31], 7);
  EXPECT_EQ(sdk::f16_to_f32(static_cast<uint16_t>(found[32])), 1.0f);
  x[0] = 8.0f;
  found = codes(x);
  EXPECT_EQ(sdk::f16_to_f32(static_cast<uint16_t>(found[32])), -1.0f);
  EXPECT_EQ(found[0], -8);
  EXPECT_EQ(found[1], 0);
  EXPECT_EQ(found[3], 1);
  x[0] = 1e30f;  // past the largest f16 step: saturates, stays finite
  found = codes(x);
  EXPECT_EQ(sdk::f16_to_f32(static_cast<uint16_t>(found[32])), -65504.0f);
  EXPECT_EQ(found[0], -8);
  // No step at all: zeros of either sign, and what is too small for f16.
  for (const float none : {0.0f, -0.0f, 1e-9f}) {
    std::fill(std::begin(x), std::end(x), none);
    found = codes(x);
    EXPECT_EQ(found[32], 0x8000) << "-8 goes into 0 as -0";
    EXPECT_EQ(std::count(found.begin(), found.end(), 0), 32) << none;
  }
}

// How far quant_error may be from the sum in double. q / s has two roundings, of 1 / s and of the
// product; a third one stands for their second order. So each difference is off by 3 u of q / s,
// and the sum of squares by 2 * 3 u * sum(|difference| * |q / s|) + (3 u)^2 * size, where by
// Cauchy-Schwarz the sum is at most sqrt(exact * size). Beside that, a term has 3 roundings and
// goes through k / 16 + 5 additions.
double quant_error_tolerance(double exact, double size, uint64_t k) {
  constexpr double u = 0x1p-24;
  const double roundings = static_cast<double>(k) / 16 + 8;
  return 6 * u * std::sqrt(exact * size) + 9 * u * u * size + roundings * u * exact;
}

TEST_P(row_forms, the_error_of_quantising_equals_its_definition) {
  for (const row& r : rows) {
    if (r.contents != fill::usual && r.contents != fill::zero) continue;
    SCOPED_TRACE(r.why);
    operands x(r);
    guarded_memory<int8_t> q(r.k);
    float s = 0, error = -1, size = -1, expected_error = -1, expected_size = -1;
    cpu::scalar_form.rows.act_quant(x.a.data(), r.k, q.data(), &s);
    cpu::scalar_form.rows.quant_error(x.a.data(), q.data(), 1 / s, r.k, &expected_error,
                                      &expected_size);
    GetParam()->rows.quant_error(x.a.data(), q.data(), 1 / s, r.k, &error, &size);
    EXPECT_EQ(error, expected_error);
    EXPECT_EQ(size, expected_size);
    double exact = 0;
    for (uint64_t i = 0; i < r.k; ++i)
      exact += std::pow(double{x.a[i]} - static_cast<double>(q[i]) / double{s}, 2);
    EXPECT_NEAR(error, exact, quant_error_tolerance(exact, double{size}, r.k));
  }
}

// Against the double of the C library. softmax(x, 1, s) is exp(0) = 1, so a zero stands before
// each.
TEST_P(row_forms, exponentials_are_within_two_units_in_the_last_place) {
  for (float x = 0; x >= -80.0f; x = x * 1.0003f - 1e-4f) {
    float pair[2] = {0, x};
    GetParam()->rows.softmax(pair, 2, 1.0f);
    ASSERT_EQ(pair[0], 1.0f);
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(pair[1] / exact, 1, 2.0 / (1 << 23)) << x;
  }
  for (const float x : {-80.01f, -100.0f, -200.0f, -infinity}) {
    float low[2] = {0, x};
    GetParam()->rows.softmax(low, 2, 1.0f);
    EXPECT_EQ(low[1], 0.0f) << x << ": no denormal number";
  }
  const float x[] = {-100.0f, 100.0f, -88.0f, -infinity};
  float y[4];
  GetParam()->rows.silu(x, 4, y);
  EXPECT_NEAR(y[0], 0, 1e-37);  // less than the smallest normal: the quotient is 0
  EXPECT_EQ(y[1], 100.0f);
  EXPECT_NEAR(y[2] / (-88.0 * std::exp(-88.0)), 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(variants, row_forms, testing::ValuesIn(all_forms()), form_name);

}  // namespace
}  // namespace bitnet::parity
