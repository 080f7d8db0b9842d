// Numbers of the trials that compare forms: where the contract fixes the order of a sum, another
// order or other roundings have other bits, and where the hardware decides it, every order has the
// same.

#include "form_trials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "bitnet/sdk/formats.hpp"
#include "gpu-common/simt_kernels.hpp"

namespace bitnet::cuda::test {
namespace {

// Trials of a kernel, on a device that rounds to every format.
std::vector<gpu::trial> trials_of(gpu::kernel_id id) {
  gpu::facts about;
  about.capabilities.precisions = ~0u;
  std::vector<gpu::trial> out;
  for (const gpu::form_trial& one : form_trials(about))
    if (one.of.spec.id == id) out.push_back(one.of);
  return out;
}

float float_at(const std::vector<uint32_t>& words, uint64_t i) {
  float out = 0;
  std::memcpy(&out, &words.at(i), sizeof out);
  return out;
}
float half_at(uint32_t format, const std::vector<uint32_t>& words, uint64_t i) {
  const auto bits = static_cast<uint16_t>(words.at(i / 2) >> i % 2 * 16);
  return format == BITNET_FORMAT_BF16 ? sdk::bf16_to_f32(bits) : sdk::f16_to_f32(bits);
}

struct summing {
  bool descends = false;  // groups are added from the last to the first
  bool fuses = false;     // a product is not rounded before it is added
};

// LINEAR_TERNARY_GROUPED as ops.h has it, or with one factor for each token.
class grouped_product {
 public:
  explicit grouped_product(const gpu::trial& of) : of_(of) {
    std::memcpy(&p_, of.params.data(), sizeof p_);
    own_ = p_.scale_group;
    given_ = of.spec.constants[4];
  }
  float at(uint32_t t, uint32_t r, const summing& how) const {
    const uint32_t own = own_ == 0 ? p_.k : own_, given = given_ == 0 ? p_.k : given_;
    const bool is_own_shorter = own < given;
    const uint32_t shorter = std::min(own, given), longer = std::max(own, given);
    const auto own_at = [&](uint32_t i) { return float_at(of_.memory[4], own_factor(r, i)); };
    const auto given_at = [&](uint32_t i) {
      return float_at(of_.memory[2], t * (p_.k / given) + i / given);
    };
    float total = 0;
    for (uint32_t n = 0; n < p_.k / longer; ++n) {
      const uint32_t first = longer * (how.descends ? p_.k / longer - 1 - n : n);
      float inner = 0;
      for (uint32_t m = 0; m < longer / shorter; ++m) {
        const uint32_t i = first + shorter * (how.descends ? longer / shorter - 1 - m : m);
        add(integers(t, r, i, shorter), is_own_shorter ? own_at(i) : given_at(i), how, inner);
      }
      if (given_ == 0)
        total = inner / given_at(0);
      else
        add(inner, is_own_shorter ? given_at(first) : own_at(first), how, total);
    }
    return total;
  }

 private:
  uint64_t own_factor(uint32_t r, uint32_t i) const {
    return own_ == 0 ? 0 : uint64_t{r} * (p_.k / own_) + i / own_;
  }
  static void add(float a, float b, const summing& how, float& to) {
    const float product = a * b;
    to = how.fuses ? std::fmaf(a, b, to) : to + product;
  }
  float integers(uint32_t t, uint32_t r, uint32_t first, uint32_t n) const {
    const auto* codes = reinterpret_cast<const int8_t*>(of_.memory[1].data()) +
                        uint64_t{4} * t * gpu::i8_row_words(p_.k);
    const auto* row =
        reinterpret_cast<const uint8_t*>(of_.memory[3].data()) + uint64_t{4} * r * p_.row_words;
    int sum = 0;
    for (uint32_t i = first; i < first + n; ++i) sum += sdk::ternary_at(row, i) * codes[i];
    return static_cast<float>(sum);
  }

  const gpu::trial& of_;
  gpu::linear_ternary_params p_{};
  uint32_t own_ = 0, given_ = 0;  // elements to a factor
};

TEST(form_trials, products_with_factors_show_an_order) {
  const struct {
    const char* why;
    summing how;
  } rows[] = {{"from the last group", {.descends = true}}, {"fused", {.fuses = true}}};
  uint32_t seen = 0;
  for (const gpu::trial& one : trials_of(gpu::kernel_id::linear_ternary)) {
    if (!gpu::has_factors(one.spec) && one.memory[4].size() == 1) continue;
    ++seen;
    const grouped_product of(one);
    for (const auto& row : rows) {
      uint32_t other = 0;
      for (uint32_t t = 0; t < one.memory[0][0]; ++t)
        for (uint32_t r = 0; r < 16; ++r) other += of.at(t, r, row.how) != of.at(t, r, {}) ? 1 : 0;
      // At least one: the smallest trial has one token.
      EXPECT_GT(other, 0u) << row.why << ", trial " << seen;
    }
  }
  EXPECT_GE(seen, 9u);
}

// A product of a row and a key is two sums: kernels.hpp.
TEST(form_trials, scores_show_an_order) {
  uint32_t seen = 0;
  for (const gpu::trial& one : trials_of(gpu::kernel_id::attn_tiles)) {
    ++seen;
    const uint32_t width = one.spec.constants[4];
    uint32_t other = 0;
    for (uint32_t row = 0; row < 16; ++row) {
      float halves[2] = {}, whole = 0;
      for (uint32_t d = 0; d < width; ++d) {
        const float q = float_at(one.memory[1], row * width + d),
                    key = half_at(BITNET_FORMAT_F16, one.memory[5], d);
        float& half = halves[d / 16 % 2];
        half = std::fmaf(key, q, half);
        whole = std::fmaf(key, q, whole);
      }
      other += halves[0] + halves[1] != whole ? 1 : 0;
    }
    EXPECT_GT(other, 4u) << "heads of " << width;
  }
  EXPECT_EQ(seen, 3u);
}

// Squares of a row are added with what each addition loses. Their sum in f32 is another number.
TEST(form_trials, norms_show_what_sums_lose) {
  for (const auto id : {gpu::kernel_id::rms_norm, gpu::kernel_id::norm_quant,
                        gpu::kernel_id::norm_quant_groups, gpu::kernel_id::bit_linear})
    for (const gpu::trial& one : trials_of(id)) {
      const uint32_t k = one.params[1];  // of all these kernels
      double exact = 0;
      float sum = 0;
      for (uint32_t i = 0; i < k; ++i) {
        const float x = float_at(one.memory[1], i), square = x * x;
        exact += double{x} * double{x};
        sum += square;
      }
      const auto factor = [&](float of) {
        return 1.0f / std::sqrt(of / static_cast<float>(k) + 1e-5f);
      };
      EXPECT_NE(factor(static_cast<float>(exact)), factor(sum)) << k;
    }
}

// From the last element to the first and in double: no sum is rounded.
TEST(form_trials, products_of_rounded_factors_have_one_answer) {
  uint32_t seen = 0;
  for (const gpu::trial& one : trials_of(gpu::kernel_id::linear_dense_rounded)) {
    gpu::linear_dense_rounded_params p{};
    std::memcpy(&p, one.params.data(), sizeof p);
    const uint32_t format = one.spec.constants[3], tokens = one.memory[0][0];
    const uint64_t stride = gpu::rounded_row_words(p.k);
    ASSERT_EQ(one.wanted.size(), uint64_t{tokens} * p.m);
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t r = 0; r < p.m; ++r, ++seen) {
        float sum = 0;
        double exact = 0;
        for (uint32_t i = p.k; i-- > 0;) {
          const float w = half_at(format, one.memory[2], uint64_t{2} * r * p.row_words + i),
                      x = half_at(format, one.memory[1], 2 * t * stride + i), product = w * x;
          sum += product;
          exact += double{w} * double{x};
        }
        const double factor{float_at(one.memory[1], t * stride + stride - 4)};
        ASSERT_EQ(double{sum}, exact);
        ASSERT_EQ(double{float_at(one.wanted, uint64_t{t} * p.m + r)}, exact * factor);
      }
  }
  EXPECT_GT(seen, 20000u);
}

}  // namespace
}  // namespace bitnet::cuda::test
