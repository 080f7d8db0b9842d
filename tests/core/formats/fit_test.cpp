// Whether numbers fit the dense types: at the ends of each range, and between them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "formats/fit.hpp"
#include "formats/writing.hpp"

namespace bitnet::formats {
namespace {

constexpr uint64_t k = 256;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Two rows of weights, one of which may be another.
std::string verdict(const char* type, float number, float others = 0.5F) {
  const dense_target& to = *find_dense_target(type);
  std::vector<float> x(2 * k);
  for (uint64_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? -others : others;
  x[k + 7] = number;
  fit all;
  for (uint64_t row = 0; row < 2; ++row)
    all.join(try_out(to, std::span(x).subspan(row * k, k), row * k));
  const auto fits = judge(all, to.name, to.most_error, k);
  return fits ? "fits" : fits.error().message;
}

TEST(fit, nan_and_infinity_fit_no_type) {
  for (const dense_target& to : dense_targets())
    for (const auto& [number, text] : {std::pair{nan, "NaN"}, {inf, "inf"}, {-inf, "-inf"}})
      EXPECT_TRUE(verdict(std::string(to.name).c_str(), number)
                      .starts_with(std::string("element 263 (row 1, column 7) is ") + text))
          << to.name << ": " << verdict(std::string(to.name).c_str(), number);
}

TEST(fit, the_largest_that_each_type_holds) {
  struct row {
    const char* type;
    float holds, too_large;
    const char* why;
  };
  const row rows[] = {
      {"f32", std::numeric_limits<float>::max(), 0, "all floats"},
      {"f16", 65519.996F, 65520.0F, "half way to 2^16 rounds up"},
      {"bf16", 0x1.fefffep127F, 0x1.ffp127F, "half way to 2^128 rounds up"},
      {"q8_0", 127 * 65504.0F, 127 * 65530.0F, "the scale is a 127th"},
      {"q4_0", -8 * 65504.0F, 8 * 65530.0F, "an eighth"},
      {"q6_k", 2e8F, 4e8F, "a scale of scales: about 32 times 128 times 65504"},
  };
  for (const row& r : rows) {
    EXPECT_EQ(verdict(r.type, r.holds), "fits") << r.why;
    if (r.too_large == 0) continue;
    const std::string found = verdict(r.type, r.too_large);
    EXPECT_TRUE(found.contains("more than")) << r.type << ": " << found;
    EXPECT_TRUE(found.starts_with("element 263 "))
        << "the number that is too large, not a neighbour";
  }
}

TEST(fit, a_tensor_that_would_round_to_zero_is_rejected) {
  struct row {
    const char* type;
    float size;
    bool fits;
    const char* why;
  };
  const row rows[] = {
      {"f16", 1e-3F, true, "usual weights"},
      {"f16", 1e-9F, false, "under its smallest"},
      {"bf16", 1e-30F, true, "the range of f32"},
      {"f32", 1e-40F, true, "subnormal ones, too"},
      {"q8_0", 1e-3F, true, "usual weights"},
      {"q8_0", 1e-7F, false, "a scale of 8e-10 is 0"},
      {"q4_0", 1e-3F, true, "usual weights"},
      {"q4_0", 1e-7F, false, "a scale of 1e-8 is 0"},
      {"q6_k", 1e-2F, true, "usual weights"},
      {"q6_k", 1e-5F, false, "a scale of 2e-9 is 0"},
      {"q8_0", 1e-44F, false, "its inverse is no float"},
      {"q4_0", 1e-44F, false, "the same"},
      {"q6_k", 1e-44F, false, "the same"},
  };
  for (const row& r : rows)
    EXPECT_EQ(verdict(r.type, r.size, r.size) == "fits", r.fits)
        << r.type << ", " << r.size << ": " << r.why << ": " << verdict(r.type, r.size, r.size);
}

// Sums of its powers left float's range: numbers of a million became zeros.
TEST(fit, q6_k_is_as_exact_for_any_size) {
  for (const float size : {1e-3F, 1.0F, 1e3F, 1e5F, 1e6F, 1e8F}) {
    std::vector<float> x(k);
    for (uint64_t i = 0; i < k; ++i) x[i] = size * std::sin(static_cast<float>(i));
    EXPECT_LT(try_out(*find_dense_target("q6_k"), x, 0).error(), 0.03) << size;
  }
}

TEST(fit, a_few_small_ones_beside_others_are_rounding) {
  for (const char* type : {"f16", "q8_0", "q4_0", "q6_k"}) EXPECT_EQ(verdict(type, 1e-30F), "fits");
}

TEST(fit, copied_tensors_are_checked_for_nan) {
  const std::vector<float> x = {1, 2, nan, 4};
  const auto bytes = std::as_bytes(std::span(x));
  const fit found = check_copied(0, bytes, 4, 12);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->element, 2U);
  EXPECT_FALSE(check_copied(0, bytes, 0, 8).first) << "the part before it";
  EXPECT_FALSE(check_copied(8, bytes, 0, 16).first) << "blocks: their scales are read elsewhere";
}

}  // namespace
}  // namespace bitnet::formats
