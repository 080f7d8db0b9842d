// The two-stage head against the full one, and both against sums in double: the bound holds for
// each row, what is written has the bits of the full head, and nothing of the largest is missing.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>

#include "bitnet/sdk/formats.hpp"
#include "head_bench.hpp"
#include "kernel_bench.hpp"
#include "parity/head_states.hpp"

namespace bitnet::cuda::test {
namespace {

using parity::gauss;
using parity::kind;
using parity::kinds;

constexpr float infinity = std::numeric_limits<float>::infinity();

// head_rows() in another format; f32 gets a tail that f16 has not.
matrix head_of(uint32_t format, uint64_t k, uint64_t m, uint32_t seed) {
  const std::vector<uint8_t> halves = parity::head_rows(k, m, seed);
  matrix out{format, k, m, std::vector<uint8_t>(4 * gpu::row_words(format, k) * m)};
  for (uint64_t r = 0; r < m; ++r)
    for (uint64_t i = 0; i < k; ++i) {
      const auto half = sdk::load<uint16_t>(halves.data() + 2 * (r * k + i));
      const float value = sdk::f16_to_f32(half) * (format == BITNET_FORMAT_F16 ? 1.0f : 1.0001f);
      uint8_t* row = out.data.data() + 4 * gpu::row_words(format, k) * r;
      const auto bits = std::bit_cast<uint32_t>(value);
      const auto upper = static_cast<uint16_t>(bits >> 16);
      if (format == BITNET_FORMAT_F32) std::memcpy(row + 4 * i, &bits, 4);
      if (format == BITNET_FORMAT_F16) std::memcpy(row + 2 * i, &half, 2);
      if (format == BITNET_FORMAT_BF16) std::memcpy(row + 2 * i, &upper, 2);
    }
  return out;
}

std::vector<float> row_of(const matrix& h, uint64_t r) {
  std::vector<float> out(h.k);
  sdk::decode(h.format, h.data.data() + 4 * gpu::row_words(h.format, h.k) * r, 0, h.k, out.data());
  return out;
}

struct counted {
  uint64_t exact = 0, asked = 0, rows = 0;
};

float nth_largest(std::vector<float> of, uint64_t n) {
  float* nth = of.data() + n - 1;
  std::nth_element(of.data(), nth, of.data() + of.size(), std::greater<>());
  return *nth;
}

// Of an output row o: the largest are there, and what is there has the bits of the full head. What
// is left out has n rows surely above it, which is more than not to be among the largest.
void check_largest(const step_result& out, uint64_t o, uint64_t m, uint32_t top, counted& count) {
  const float *y = out.largest.data() + o * m, *full = out.full.data() + o * m;
  const float* lower = out.bounds.data() + o * 2 * m;
  const float* upper = lower + m;
  const uint64_t n = std::min<uint64_t>(top, m);
  const float least = nth_largest({full, full + m}, n);
  const float surely = top > m ? -infinity : nth_largest({lower, lower + m}, n);
  for (uint64_t r = 0; r < m; ++r) {
    count.exact += y[r] == -infinity ? 0 : 1;
    if (full[r] < least && upper[r] < surely && y[r] == -infinity) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(y[r]), std::bit_cast<uint32_t>(full[r])) << "row " << r;
  }
  count.rows += m;
  count.asked += n;
}

// The bounds of each row hold what the full head gives and, but for what it rounds, the product.
void check_bounds(const std::vector<std::vector<double>>& rows, const float* x, const float* full,
                  const float* bounds) {
  const uint64_t m = rows.size();
  for (uint64_t r = 0; r < m; ++r) {
    const double* row = rows[r].data();
    const uint64_t k = rows[r].size();
    double sum = 0;
    for (uint64_t i = 0; i < k; ++i) sum += row[i] * static_cast<double>(x[i]);
    const float lower = bounds[r], upper = bounds[m + r];
    ASSERT_LE(lower, full[r]) << "row " << r;
    ASSERT_GE(upper, full[r]) << "row " << r;
    ASSERT_LE(static_cast<double>(lower), sum) << "row " << r;
    ASSERT_GE(static_cast<double>(upper), sum) << "row " << r;
  }
}

class cuda_head : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    platform_ = open_platform(usual_driver, [](uint32_t, const std::string&) {}, why);
    if (!platform_) GTEST_SKIP() << why;
    ASSERT_EQ(platform_->open(0, device_, sdk::reporter(nullptr, "test")), BITNET_OK);
  }
  std::unique_ptr<gpu::platform> platform_;
  std::unique_ptr<gpu::device> device_;
};

TEST_F(cuda_head, bounds_hold_for_a_thousand_states) {
  constexpr uint32_t together = 8, rounds = 16;
  const matrix h = head_of(BITNET_FORMAT_F16, 64, 600, 7);
  std::vector<std::vector<double>> rows;
  for (uint64_t r = 0; r < h.m; ++r) {
    const std::vector<float> row = row_of(h, r);
    rows.emplace_back(row.begin(), row.end());
  }
  head_bench bench(*device_, h, together);
  std::mt19937 random(8);
  for (const auto& one : kinds) {
    SCOPED_TRACE(one.name);
    counted count;
    for (uint32_t round = 0; round < rounds; ++round) {
      std::vector<float> x;
      for (uint32_t o = 0; o < together; ++o) {
        const auto next = parity::head_state(h.data, h.k, h.m, one.what, random);
        x.insert(x.end(), next.begin(), next.end());
      }
      const uint32_t top = round % 4 == 3 ? 40 : 1;
      const step_result out = bench.run(x, together, top);
      for (uint32_t o = 0; o < together; ++o) {
        const float* full = out.full.data() + o * h.m;
        ASSERT_NO_FATAL_FAILURE(
            check_bounds(rows, x.data() + o * h.k, full, out.bounds.data() + o * 2 * h.m));
        ASSERT_NO_FATAL_FAILURE(check_largest(out, o, h.m, top, count));
      }
    }
    const double share =
        static_cast<double>(count.exact - count.asked) / static_cast<double>(count.rows);
    std::printf("%u states, %s: %.3f %% of the rows computed beside those asked for\n",
                together * rounds, one.name, 100 * share);
    EXPECT_LE(share, static_cast<double>(one.most)) << "a bound so wide saves nothing";
  }
}

TEST_F(cuda_head, of_any_shape_gives_the_largest_of_the_full_head) {
  const struct {
    uint32_t format;
    uint64_t k, m;
    uint32_t outputs;
    const char* why;
  } shapes[] = {{BITNET_FORMAT_F16, 64, 1024, 1, "the smallest"},
                {BITNET_FORMAT_BF16, 100, 1031, 3, "a width and a height that nothing divides"},
                {BITNET_FORMAT_F16, 101, 1030, 2, "rows that end within a word"},
                {BITNET_FORMAT_F32, 100, 1025, 5, "two rounds of outputs"},
                {BITNET_FORMAT_F16, 2560, 1040, 1, "the width of BitNet b1.58 2B"},
                {BITNET_FORMAT_BF16, 8192, 1024, 1, "the widest"},
                {BITNET_FORMAT_F16, 64, 8900, 1, "more rows than a step may ask for"}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.why);
    const matrix h = head_of(shape.format, shape.k, shape.m, 5);
    const std::vector<uint8_t> rows = parity::head_rows(shape.k, shape.m, 5);
    head_bench bench(*device_, h, shape.outputs);
    std::mt19937 random(6);
    for (const auto& one : kinds)
      for (const uint32_t top : {1u, 40u, gpu::head_most_top}) {
        if (shape.m > 8000 && one.what != kind::tied && one.what != kind::gaussian) continue;
        if (shape.k > 2000 && top != 1) continue;
        SCOPED_TRACE(std::string(one.name) + ", " + std::to_string(top));
        std::vector<float> x;
        for (uint32_t o = 0; o < shape.outputs; ++o) {
          const auto next = parity::head_state(rows, h.k, h.m, one.what, random);
          x.insert(x.end(), next.begin(), next.end());
        }
        const step_result out = bench.run(x, shape.outputs, top);
        counted count;
        for (uint32_t o = 0; o < shape.outputs; ++o)
          ASSERT_NO_FATAL_FAILURE(check_largest(out, o, h.m, top, count));
      }
  }
}

TEST_F(cuda_head, lists_the_largest_or_gives_the_row) {
  const struct {
    uint64_t k, m;
    uint32_t outputs;
    const char* why;
  } shapes[] = {{64, 1024, 1, "one row"},
                {100, 1031, 3, "rows together, a height that nothing divides"},
                {64, 8900, 2, "more rows than a list has room for"}};
  uint32_t listed = 0, too_long = 0;
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.why);
    const matrix h = head_of(BITNET_FORMAT_F16, shape.k, shape.m, 5);
    head_bench bench(*device_, h, shape.outputs);
    std::mt19937 random(6);
    for (const auto& one : kinds)
      for (const uint32_t top : {1u, 40u, BITNET_MOST_LARGEST}) {
        if (shape.m > 8000 && one.what != kind::tied && one.what != kind::gaussian) continue;
        SCOPED_TRACE(std::string(one.name) + ", " + std::to_string(top));
        std::vector<float> x;
        for (uint32_t o = 0; o < shape.outputs; ++o) {
          const auto next = parity::head_state(h.data, h.k, h.m, one.what, random);
          x.insert(x.end(), next.begin(), next.end());
        }
        const step_result plain = bench.run(x, shape.outputs, top);
        for (const bitnet_largest& list : bench.lists) ASSERT_EQ(list.count, BITNET_NONE);
        const step_result found = bench.run(x, shape.outputs, top, true);
        const std::vector<float> entries = bench.found(shape.outputs);
        for (uint32_t o = 0; o < shape.outputs; ++o) {
          const float* expected = plain.largest.data() + o * h.m;
          const bitnet_largest& list = bench.lists[o];
          if (list.count != BITNET_NONE) {
            ++listed;
            const std::vector<float> row = parity::row_of_list(list, h.m);
            ASSERT_EQ(row.size(), h.m);
            ASSERT_EQ(std::memcmp(row.data(), expected, 4 * h.m), 0);
            // Each output row has its own: groups of several run at the same time.
            const auto first = std::bit_cast<int32_t>(entries[o * 2 * h.m]);
            ASSERT_EQ(list.ids[0], first);
            continue;
          }
          ++too_long;
          ASSERT_GT(std::count_if(expected, expected + h.m, [](float y) { return y != -infinity; }),
                    static_cast<std::ptrdiff_t>(BITNET_MOST_LARGEST));
          ASSERT_EQ(std::memcmp(found.largest.data() + o * h.m, expected, 4 * h.m), 0);
        }
      }
  }
  EXPECT_GT(listed, 20u);
  EXPECT_GT(too_long, 0u);
}

// A state that is not finite gets all its logits, and its neighbours no other ones for it.
TEST_F(cuda_head, of_a_state_that_is_not_finite_is_the_full_one) {
  const matrix h = head_of(BITNET_FORMAT_F16, 96, 1024, 9);
  const float bad[] = {std::nanf(""), infinity, -infinity, 2e38f, 1e31f};
  head_bench bench(*device_, h, 3), alone(*device_, h, 1);
  for (const float what : bad)
    for (const uint32_t where : {0u, 1u, 2u}) {
      SCOPED_TRACE(std::to_string(what) + " in output " + std::to_string(where));
      std::mt19937 random(10);
      std::vector<float> x(3 * h.k);
      for (float& v : x) v = gauss(random);
      for (uint64_t i = 3; i < 20; ++i) x[where * h.k + i] = what;
      const step_result out = bench.run(x, 3, 1);
      for (uint32_t o = 0; o < 3; ++o) {
        const float* y = out.largest.data() + o * h.m;
        counted count;
        if (o == where) {
          ASSERT_EQ(std::memcmp(y, out.full.data() + o * h.m, 4 * h.m), 0);
          continue;
        }
        ASSERT_NO_FATAL_FAILURE(check_largest(out, o, h.m, 1, count));
        const float* mine = x.data() + o * h.k;
        const auto one = alone.run({mine, mine + h.k}, 1, 1);
        ASSERT_EQ(std::memcmp(y, one.largest.data(), 4 * h.m), 0) << "together as alone";
        EXPECT_LT(count.exact, h.m / 5);
      }
    }
}

// Rows of f32 can be anything. What has no bound is computed, and hides no other row.
TEST_F(cuda_head, of_rows_without_a_bound_computes_those) {
  matrix h = head_of(BITNET_FORMAT_F32, 128, 1024, 11);
  const float odd[] = {std::nanf(""), infinity, 3e38f, 1e30f, 1e-30f, 1e-42f};
  auto* elements = reinterpret_cast<float*>(h.data.data());
  for (uint64_t i = 0; i < std::size(odd); ++i)
    for (uint64_t e = 0; e < h.k; e += 2) elements[(100 * i + 31) * h.k + e] = odd[i];
  head_bench bench(*device_, h, 1);
  std::mt19937 random(12);
  for (int i = 0; i < 20; ++i) {
    std::vector<float> x(h.k);
    for (float& v : x) v = gauss(random) * (i < 10 ? 1.0f : 1e9f);
    const step_result out = bench.run(x, 1, 3);
    std::vector<float> known;  // without those that are no numbers
    for (const float v : out.full)
      if (std::isfinite(v)) known.push_back(v);
    std::ranges::sort(known, std::greater<>());
    for (uint64_t r = 0; r < h.m; ++r) {
      if (out.largest[r] == -infinity && out.full[r] < known[2]) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(out.largest[r]), std::bit_cast<uint32_t>(out.full[r])) << r;
    }
    for (const uint64_t r : {31u, 131u, 231u}) {
      ASSERT_EQ(out.bounds[r], -infinity) << r;
      ASSERT_EQ(out.bounds[h.m + r], infinity) << r;
    }
  }
}

// The copy is what the bound's proof says of it.
TEST_F(cuda_head, copy_has_the_norms_of_what_it_leaves) {
  for (const uint32_t format : {BITNET_FORMAT_F32, BITNET_FORMAT_F16, BITNET_FORMAT_BF16}) {
    const matrix h = head_of(format, 100, 1024, 13);
    head_bench bench(*device_, h, 1);
    const std::vector<float> norms = bench.norms();
    const std::vector<int8_t> codes = bench.codes();
    const uint64_t stride = 4 * gpu::i8_row_words(h.k);
    for (uint64_t r = 0; r < h.m; ++r) {
      const std::vector<float> row = row_of(h, r);
      double error = 0, size = 0;
      for (uint64_t i = 0; i < stride; ++i) {
        const double near = static_cast<double>(norms[r]) * codes[r * stride + i];
        const double off = (i < h.k ? static_cast<double>(row[i]) : 0.0) - near;
        error += off * off;
        size += near * near;
        ASSERT_LE(std::fabs(off), static_cast<double>(norms[r]) * 0.5001) << r << ", " << i;
      }
      const double e = std::sqrt(error), s = std::sqrt(size);
      ASSERT_GE(static_cast<double>(norms[h.m + r]), e);
      ASSERT_LE(static_cast<double>(norms[h.m + r]), 1.0011 * e + 3e-45);
      ASSERT_GE(static_cast<double>(norms[2 * h.m + r]), s + e);
      ASSERT_LE(static_cast<double>(norms[2 * h.m + r]), 1.0022 * (s + e) + 9e-45);
    }
  }
}

// Floats in the order of their size as whole numbers, and back: head_order() of the kernels.
uint32_t order_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
float of_order(uint32_t order) {
  return std::bit_cast<float>(order >> 31 ? order ^ 0x80000000u : ~order);
}

// Lower bounds, which upper ones equal: of one size, of many sizes, with gaps, with ties.
std::vector<float> bounds_of(uint32_t which, uint32_t m, std::mt19937& random) {
  std::vector<float> out(m);
  for (float& x : out) {
    x = gauss(random);
    if (which == 1) x = std::ldexp(x, static_cast<int>(random() % 240) - 120);
    if (which == 2) x = random() % 3 == 0 ? 1e30f * x : random() % 2 == 0 ? x : -infinity;
    if (which == 3) x = static_cast<float>(static_cast<int>(4 * x));
  }
  return out;
}

// Each row is left out whose bound is below the bin of the n-th largest, and no other. The counts
// of the second output are not aligned to loads of 16 bytes.
TEST(cuda_head_rows, below_the_bin_of_the_nth_largest_bound_are_left_out) {
  constexpr uint32_t m = 2000, k = 32, outputs = 2, kinds_of_bounds = 4;
  kernel_bench bench;
  bench.open();
  std::mt19937 random(14);
  for (uint32_t which = 0; which < kinds_of_bounds; ++which) {
    std::vector<float> bounds;
    std::vector<uint32_t> counts(outputs * gpu::head_count_words);
    for (uint32_t o = 0; o < outputs; ++o) {
      const std::vector<float> lower = bounds_of(which, m, random);
      for (uint32_t i = 0; i < 2; ++i) bounds.insert(bounds.end(), lower.begin(), lower.end());
      for (const float x : lower) ++counts[o * gpu::head_count_words + (order_of(x) >> 22)];
    }
    for (const uint32_t top : {1u, 2u, 3u, 7u, 40u, 333u, 1000u, 1500u, m - 1, m, m + 1}) {
      SCOPED_TRACE(std::to_string(which) + ", " + std::to_string(top));
      const gpu::binding header = bench.put(std::vector<uint32_t>{1, outputs, 0, 0, top, 0});
      const gpu::binding seen = bench.put(bounds), counted = bench.put(counts);
      const gpu::binding y = bench.put(std::vector<float>(outputs * m, 7.0f));
      bench.add({kernel_id::head_count, {128}}, {header, seen, counted},
                gpu::head_count_params{1, m}, 3, outputs);
      bench.add({kernel_id::head_exact, {128, 32, 0, BITNET_FORMAT_F32}},
                {header, bench.put(std::vector<float>(outputs * k)),
                 bench.put(std::vector<float>(m * k)), seen, counted, y, seen, seen},
                gpu::head_exact_params{1, k, m, k}, 5, outputs);
      bench.run();
      const std::vector<float> found = bench.get<float>(y);
      for (uint32_t o = 0; o < outputs; ++o) {
        const float* bound = bounds.data() + uint64_t{o} * 2 * m;
        const float threshold =
            top > m ? -infinity
                    : of_order(order_of(nth_largest({bound, bound + m}, top)) >> 12 << 12);
        for (uint32_t r = 0; r < m; ++r)
          ASSERT_EQ(found[o * m + r], bound[r] < threshold ? -infinity : 0.0f) << o << ", " << r;
      }
      bench.clear();
    }
  }
}

}  // namespace
}  // namespace bitnet::cuda::test
