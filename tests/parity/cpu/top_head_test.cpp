// The two-stage head of every instruction set against the full one: the bound holds for each row,
// what it leaves is what the full head gives, and nothing of the largest is missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <random>

#include "forms.hpp"
#include "guarded_memory.hpp"
#include "head_states.hpp"
#include "ops/ops.hpp"
#include "ops/top_head.hpp"
#include "room.hpp"

namespace bitnet::parity {
namespace {

// Of head_states.hpp, as a weight.
struct head {
  head(uint64_t width, uint64_t rows, uint32_t seed)
      : k(width), m(rows), data(head_rows(k, m, seed)) {
    weight = {BITNET_FORMAT_F16, k, m, data.data(), 2 * k, nullptr, 0, &form};
  }
  // Its copy, made by one instruction set in two parts.
  void pack(const cpu::isa_form& isa, cpu::top_head_bits bits) {
    form.own = sdk::memory(cpu::top_head::packed_bytes(weight, bits));
    cpu::top_head::pack(weight, bits, isa, m / 3, m, form.own.data());
    cpu::top_head::pack(weight, bits, isa, 0, m / 3, form.own.data());
    form.data = form.own.data();
  }
  uint64_t k, m;
  std::vector<uint8_t> data;
  sdk::packed_form form;
  sdk::weight weight;
};

std::vector<float> state(const head& h, kind what, std::mt19937& random) {
  return head_state(h.data, h.k, h.m, what, random);
}

// Those that there are kernels for.
std::vector<cpu::top_head_bits> bits_of(const cpu::isa_form& isa) {
  std::vector<cpu::top_head_bits> all{cpu::top_head_bits::eight, cpu::top_head_bits::four};
  if (isa.linear_i6.run != nullptr) all.push_back(cpu::top_head_bits::six);
  return all;
}

struct counted {
  uint64_t exact = 0, rows = 0, beyond = 0;  // rows that are farther off than the margin
};

// One step of `workers`, one after the other. The full head is that of the best form: its bits are
// those of all of them, and some take many times as long.
void check(const cpu::isa_form& isa, const head& h, cpu::top_head& two, uint32_t workers,
           uint32_t top, const std::vector<float>& x, counted& count) {
  std::vector<float> full(h.m), y(h.m), near;
  all_forms().front()->dense({h.weight.format, h.weight.data, h.weight.row_bytes, x.data(), h.k,
                              full.data(), h.m, h.k, h.m, 1});
  // In whole pairs of rows.
  const auto part = [&](uint32_t w) { return w == workers ? h.m : h.m * w / workers / 2 * 2; };
  two.take(0, x.data());
  for (uint32_t w = 0; w < workers; ++w)
    two.approximate(isa, w, 1, top, part(w), part(w + 1), y.data());
  near = y;
  for (uint64_t r = 0; r < h.m; ++r)
    if (!(std::fabs(static_cast<double>(full[r]) - static_cast<double>(near[r])) <=
          static_cast<double>(two.bound(0, r))))
      ++count.beyond;
  for (uint32_t w = 0; w < workers; ++w)
    two.settle(isa, workers, 1, top, x.data(), part(w), part(w + 1), y.data(), product_room());
  bitnet_largest list{};
  uint64_t exact = 0;
  for (uint32_t w = 0; w < workers; ++w)
    exact += two.refine(isa, workers, 1, top, x.data(), part(w), part(w + 1), y.data(),
                        product_room(), &list);
  count.exact += exact;
  ASSERT_EQ(list.count, exact);
  if (list.count <= BITNET_MOST_LARGEST) {
    const std::vector<float> listed = row_of_list(list, h.m);
    ASSERT_EQ(listed.size(), h.m);
    ASSERT_EQ(std::memcmp(listed.data(), y.data(), 4 * h.m), 0);
  }
  count.rows += h.m;
  std::vector<float> sorted = full;
  std::nth_element(sorted.begin(), sorted.begin() + (top - 1), sorted.end(), std::greater<>());
  for (uint64_t r = 0; r < h.m; ++r) {
    if (full[r] < sorted[top - 1] && std::isinf(y[r])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(y[r]), std::bit_cast<uint32_t>(full[r])) << "row " << r;
  }
}

class top_heads : public each_form {};
class head_states : public each_form {};
class top_heads_of_6_bits : public each_form {};

TEST_P(top_heads, take_steps_without_outputs) {
  head h(128, 1024, 3);
  const cpu::top_head_bits bits = cpu::exact_bits(*GetParam());
  h.pack(*GetParam(), bits);
  cpu::top_head two(h.weight, bits, 1);
  two.approximate(*GetParam(), 0, 0, 1, 0, h.m, nullptr);
  two.settle(*GetParam(), 1, 0, 1, nullptr, 0, h.m, nullptr, product_room());
  EXPECT_EQ(two.refine(*GetParam(), 1, 0, 1, nullptr, 0, h.m, nullptr, product_room()), 0u);
}

TEST_P(top_heads, give_the_largest_logits_of_the_full_head) {
  const struct {
    uint64_t k, m;
    uint32_t workers;
    const char* why;
  } shapes[] = {{64, 1024, 1, "the smallest"},
                {100, 1031, 3, "a width past a line, rows that no worker count divides"},
                {2560, 1100, 2, "the width of BitNet b1.58 2B"},
                {8192, 1024, 2, "the widest"},
                {64, 8900, 3, "more rows than a step may ask for"}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.why);
    head h(shape.k, shape.m, 5);
    ASSERT_TRUE(cpu::top_head::fits(h.weight));
    for (const cpu::top_head_bits bits : bits_of(*GetParam())) {
      // Packing takes an emulator seconds: of the wide ones each has one width of bits, or two.
      const bool proven = bits != cpu::top_head_bits::four;
      if (slow() && shape.k > 1000 && proven != (shape.k == cpu::max_i8_width)) continue;
      SCOPED_TRACE(static_cast<int>(bits));
      cpu::top_head two(h.weight, bits, shape.workers);
      h.pack(*GetParam(), bits);
      std::mt19937 random(6);
      for (const auto& [what, name, likely, most] : kinds)
        for (const uint32_t asked : {1u, 40u, cpu::top_head::max_top}) {
          const auto top = static_cast<uint32_t>(std::min<uint64_t>(asked, shape.m - 1));
          if (slow() && (top != 40 || (shape.k > 1000 && what != kind::outliers))) continue;
          if (!proven && !likely) continue;
          SCOPED_TRACE(name);
          counted count;
          ASSERT_NO_FATAL_FAILURE(
              check(*GetParam(), h, two, shape.workers, top, state(h, what, random), count));
          EXPECT_LE(count.beyond, proven ? 0 : count.rows / 500);
        }
    }
  }
}

// A million states take minutes: one form is enough, as others give the same bits.
std::vector<const cpu::isa_form*> forms_of_states() {
  std::vector<const cpu::isa_form*> forms = all_forms();
  if (std::getenv("BITNET_TOP_HEAD_STATES") != nullptr) forms.resize(1);
  return forms;
}

// BITNET_TOP_HEAD_STATES of them by the best form, of a smaller head (scripts/test --lane states);
// else 10 000. The scalar form, which is slow, sees fewer, and so do emulated ones and those with
// sanitizers.
TEST_P(head_states, bound_holds_for_ten_thousand_states) {
  const char* wanted = std::getenv("BITNET_TOP_HEAD_STATES");
  const long asked = wanted != nullptr ? std::strtol(wanted, nullptr, 10) : 0;
  ASSERT_TRUE(wanted == nullptr || asked > 0)
      << "BITNET_TOP_HEAD_STATES is '" << wanted << "'; expected a number of states";
  const bool few = GetParam() == &cpu::scalar_form || slow();
  const long states = asked > 0 ? asked : few ? 60 : 10000;
  head h(asked > 0 ? 128 : 256, asked > 0 ? 1024 : 2048, 7);
  for (const cpu::top_head_bits bits : bits_of(*GetParam())) {
    const bool proven = bits != cpu::top_head_bits::four;
    cpu::top_head two(h.weight, bits, 2);
    h.pack(*GetParam(), bits);
    std::mt19937 random(8);
    const long shares = std::count_if(std::begin(kinds), std::end(kinds),
                                      [&](const named_kind& one) { return proven || one.likely; });
    for (const auto& [what, name, likely, most] : kinds) {
      if (!proven && !likely) continue;
      counted count;
      for (long i = 0; i < states; i += shares)
        ASSERT_NO_FATAL_FAILURE(check(*GetParam(), h, two, 2, 1, state(h, what, random), count));
      const double share = static_cast<double>(count.exact) / static_cast<double>(count.rows);
      const int width = bits == cpu::top_head_bits::eight ? 8
                        : bits == cpu::top_head_bits::six ? 6
                                                          : 4;
      printf("%s, %d bits, %ld states, %s: %.3f %% of the rows recomputed, %.5f %% beyond\n",
             GetParam()->name, width, (states + shares - 1) / shares, name, 100 * share,
             100.0 * static_cast<double>(count.beyond) / static_cast<double>(count.rows));
      EXPECT_LE(share, static_cast<double>(most)) << "a bound so wide saves nothing";
      EXPECT_LE(count.beyond, proven ? 0 : count.rows / 1000);
    }
  }
}

TEST_P(top_heads, leave_a_state_that_is_not_finite_to_the_full_head) {
  head h(64, 1024, 9);
  const cpu::top_head_bits bits = cpu::exact_bits(*GetParam());
  cpu::top_head two(h.weight, bits, 1);
  h.pack(*GetParam(), bits);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(64, 1.0f), y(h.m, 42.0f);
    x[3] = bad;
    two.take(0, x.data());
    two.approximate(*GetParam(), 0, 1, 1, 0, h.m, y.data());
    two.settle(*GetParam(), 1, 1, 1, x.data(), 0, h.m, y.data(), product_room());
    EXPECT_EQ(two.refine(*GetParam(), 1, 1, 1, x.data(), 0, h.m, y.data(), product_room()), h.m);
    for (const float v : y) ASSERT_FALSE(std::isfinite(v) && v == 42.0f);
  }
}

TEST_P(top_heads, of_other_formats_give_the_logits_of_the_full_head) {
  std::mt19937 random(12);
  for (const sdk::format& f : sdk::formats) {
    SCOPED_TRACE(f.name);
    constexpr uint64_t k = 512, m = 1025;
    sdk::packed_form form;
    std::vector<uint8_t> data(f.block_bytes * (k / f.block) * m);
    for (uint8_t& b : data) b = static_cast<uint8_t>(random());
    // Scales of random bytes could be anything; these are small numbers in f16, f32 and bf16.
    for (uint64_t i = 1; i < data.size(); i += 2)
      data[i] = static_cast<uint8_t>(0x20 | (data[i] & 0x83));
    const sdk::weight w{f.id, k, m, data.data(), f.block_bytes * (k / f.block), nullptr, 0, &form};
    if (!cpu::top_head::fits(w)) continue;
    const cpu::top_head_bits bits = cpu::exact_bits(*GetParam());
    form.own = sdk::memory(cpu::top_head::packed_bytes(w, bits));
    cpu::top_head::pack(w, bits, *GetParam(), 0, m, form.own.data());
    form.data = form.own.data();
    cpu::top_head two(w, bits, 1);
    std::vector<float> x(k), y(m), full(m), scalar(m);
    for (float& v : x) v = gauss(random);
    cpu::linear_dense(*GetParam(), w, x.data(),
                      {.tokens = 1, .first = 0, .last = m, .y = full.data()}, product_room());
    cpu::linear_dense(cpu::scalar_form, w, x.data(),
                      {.tokens = 1, .first = 0, .last = m, .y = scalar.data()}, product_room());
    two.take(0, x.data());
    two.approximate(*GetParam(), 0, 1, 40, 0, m, y.data());
    two.settle(*GetParam(), 1, 1, 40, x.data(), 0, m, y.data(), product_room());
    two.refine(*GetParam(), 1, 1, 40, x.data(), 0, m, y.data(), product_room());
    std::vector<float> sorted = full;
    std::nth_element(sorted.begin(), sorted.begin() + 39, sorted.end(), std::greater<>());
    for (uint64_t r = 0; r < m; ++r) {
      ASSERT_EQ(std::bit_cast<uint32_t>(full[r]), std::bit_cast<uint32_t>(scalar[r])) << r;
      if (full[r] < sorted[39] && std::isinf(y[r])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[r]), std::bit_cast<uint32_t>(full[r])) << r;
    }
  }
}

// Rows of all sizes that f32 has, where squares are lost, or steps, and some that are no numbers.
TEST_P(top_heads, bound_holds_for_rows_of_every_size) {
  constexpr uint64_t k = 256, m = 1027;
  constexpr float sizes[] = {1,      1e-6f,  1e-16f, 1e-19f, 1e-21f, 1e-24f, 1e-29f,
                             1e-31f, 1e-38f, 1e-43f, 1e12f,  1e20f,  1e29f,  1e33f};
  std::mt19937 random(15);
  std::vector<float> w(k * m), x(k), y(m), full(m);
  for (float& v : x) v = gauss(random);
  for (uint64_t i = 0; i < w.size(); ++i) w[i] = sizes[i / k % std::size(sizes)] * gauss(random);
  w[7 * k + 3] = std::nanf("");
  w[8 * k + 3] = std::numeric_limits<float>::infinity();
  sdk::packed_form form;
  const sdk::weight head{
      BITNET_FORMAT_F32, k, m,    reinterpret_cast<const uint8_t*>(w.data()), 4 * k,
      nullptr,           0, &form};
  cpu::linear_dense(*GetParam(), head, x.data(),
                    {.tokens = 1, .first = 0, .last = m, .y = full.data()}, product_room());
  for (const cpu::top_head_bits bits : bits_of(*GetParam())) {
    if (bits == cpu::top_head_bits::four) continue;
    form.own = sdk::memory(cpu::top_head::packed_bytes(head, bits));
    cpu::top_head::pack(head, bits, *GetParam(), 0, m, form.own.data());
    form.data = form.own.data();
    cpu::top_head two(head, bits, 1);
    two.take(0, x.data());
    two.approximate(*GetParam(), 0, 1, 40, 0, m, y.data());
    for (uint64_t r = 0; r < m; ++r) {
      const auto off = std::fabs(static_cast<double>(full[r]) - static_cast<double>(y[r]));
      const float bound = two.bound(0, r);
      EXPECT_FALSE(off > static_cast<double>(bound)) << "row " << r << ", " << full[r];
      if (std::fabs(full[r]) < 1e12f) {
        EXPECT_TRUE(std::isfinite(bound)) << "row " << r << " is computed whatever it is";
      }
    }
    two.settle(*GetParam(), 1, 1, 40, x.data(), 0, m, y.data(), product_room());
    two.refine(*GetParam(), 1, 1, 40, x.data(), 0, m, y.data(), product_room());
    std::vector<float> sorted;
    std::copy_if(full.begin(), full.end(), std::back_inserter(sorted),
                 [](float v) { return !std::isnan(v); });
    std::nth_element(sorted.begin(), sorted.begin() + 39, sorted.end(), std::greater<>());
    for (uint64_t r = 0; r < m; ++r) {
      if (full[r] < sorted[39] && std::isinf(y[r])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[r]), std::bit_cast<uint32_t>(full[r])) << "row " << r;
    }
  }
}

TEST_P(top_heads, copies_are_the_same_bytes_from_every_form) {
  for (const cpu::top_head_bits bits : bits_of(*GetParam())) {
    head ours(100, 1031, 5), scalar(100, 1031, 5);
    ours.pack(*GetParam(), bits);
    scalar.pack(cpu::scalar_form, bits);
    ASSERT_EQ(ours.form.own.size(), scalar.form.own.size());
    EXPECT_TRUE(std::equal(ours.form.own.data(), ours.form.own.data() + ours.form.own.size(),
                           scalar.form.own.data()));
  }
}

TEST(top_head, has_no_form_for_what_it_would_not_help) {
  sdk::weight w{BITNET_FORMAT_F16, 2560, 128256, nullptr, 5120, nullptr, 0};
  EXPECT_TRUE(cpu::top_head::fits(w));
  w.format = BITNET_FORMAT_Q8_0;
  EXPECT_FALSE(cpu::top_head::fits(w)) << "as small as the copy";
  w.format = BITNET_FORMAT_Q6_K;
  EXPECT_TRUE(cpu::top_head::fits(w)) << "slower to decode than the copy to read";
  w.format = BITNET_FORMAT_F16;
  w.k = 8193;
  EXPECT_FALSE(cpu::top_head::fits(w)) << "sums past int32";
}

// Activations of some outputs as the first pass takes them.
struct integers {
  integers(uint64_t outputs, uint64_t width, bool extreme, std::mt19937& random)
      : k(width), n(outputs), x(n * k), high(n * k), low(n * k), sums(n) {
    for (uint64_t i = 0; i < n * k; ++i) {
      const int z = extreme ? 16256 : static_cast<int>(random() % 32513) - 16256;
      x[i] = static_cast<int16_t>(z);
      high[i] = static_cast<int8_t>((z + 64) >> 7);
      low[i] = static_cast<int8_t>(z - 128 * high[i]);
      sums[i / k] += z;
    }
  }
  // The sums (outputs, rows) by one form, with room for three more of each output.
  std::vector<int64_t> multiply(const cpu::tile_kernel<cpu::i8_tile>& by,
                                guarded_memory<uint8_t>& w, uint64_t rows, uint64_t row_bytes) {
    std::vector<int64_t> out(n * (rows + 3), -1);
    by({w.data(), row_bytes, x.data(), high.data(), low.data(), k, sums.data(), out.data(),
        rows + 3, k, rows, n});
    return out;
  }
  // The same of 6 bits.
  std::vector<int64_t> multiply(const cpu::tile_kernel<cpu::i6_tile>& by,
                                guarded_memory<uint8_t>& w, guarded_memory<uint8_t>& multipliers,
                                uint64_t rows) {
    std::vector<int64_t> out(n * (rows + 3), -1);
    guarded_memory<int32_t> starts(n * 16);
    for (uint64_t i = 0; i < starts.size(); ++i) starts[i] = 0;
    for (uint64_t i = 0; i < n * k; ++i) starts[i / k * 16 + i % k / 4 % 16] -= 32 * x[i];
    by({w.data(), multipliers.data(), high.data(), low.data(), k, starts.data(), out.data(),
        rows + 3, k, rows, n});
    return out;
  }
  uint64_t k, n;
  guarded_memory<int16_t> x;
  guarded_memory<int8_t> high, low;
  std::vector<int64_t> sums;
};

TEST_P(top_heads, integer_sums_equal_those_of_the_scalar_form) {
  std::mt19937 random(3);
  const cpu::isa_form& scalar = cpu::scalar_form;
  for (const uint64_t k : {64u, 128u, 2560u, 8192u})
    for (const uint64_t rows : {1u, 4u, 7u})
      for (const uint64_t outputs : {1u, 2u, 4u, 7u})
        for (const bool extreme : {false, true}) {
          integers x(outputs, k, extreme, random);
          guarded_memory<uint8_t> w(rows * k);
          for (uint64_t i = 0; i < w.size(); ++i)
            w[i] = static_cast<uint8_t>(extreme ? 255 : 1 + random() % 255);
          SCOPED_TRACE(std::to_string(k) + " by " + std::to_string(rows) + " by " +
                       std::to_string(outputs));
          EXPECT_EQ(x.multiply(GetParam()->linear_i8, w, rows, k),
                    x.multiply(scalar.linear_i8, w, rows, k));
          if (k % 128 != 0) continue;
          // Half of the bytes, and guarded behind: codes of 4 bits are never 0.
          guarded_memory<uint8_t> pairs(rows * k / 2);
          for (uint64_t i = 0; i < pairs.size(); ++i)
            pairs[i] = static_cast<uint8_t>(
                extreme ? 255 : (1 + random() % 15) << 4 | (1 + random() % 15));
          EXPECT_EQ(x.multiply(GetParam()->linear_i4, pairs, rows, k / 2),
                    x.multiply(scalar.linear_i4, pairs, rows, k / 2));
        }
}

TEST_P(top_heads_of_6_bits, sums_equal_those_of_the_scalar_form) {
  std::mt19937 random(4);
  for (const uint64_t k : {256u, 2560u, 8192u})
    for (const uint64_t rows : {1u, 4u, 7u})
      for (const uint64_t outputs : {1u, 2u, 4u, 7u})
        for (const bool extreme : {false, true}) {
          integers x(outputs, k, extreme, random);
          guarded_memory<uint8_t> w(rows * k / 4 * 3), multipliers(rows * 16);
          for (uint64_t i = 0; i < w.size(); ++i)
            w[i] = static_cast<uint8_t>(extreme ? 255 : random());
          for (uint64_t i = 0; i < multipliers.size(); ++i)
            multipliers[i] = static_cast<uint8_t>(extreme ? 255 : random());
          SCOPED_TRACE(std::to_string(k) + " by " + std::to_string(rows) + " by " +
                       std::to_string(outputs));
          EXPECT_EQ(x.multiply(GetParam()->linear_i6, w, multipliers, rows),
                    x.multiply(cpu::scalar_form.linear_i6, w, multipliers, rows));
        }
}

// What an output gets does not depend on the other outputs of the step.
TEST_P(top_heads, outputs_together_are_what_each_is_alone) {
  head h(200, 1100, 13);
  for (const cpu::top_head_bits bits : bits_of(*GetParam()))
    for (const uint64_t outputs : {2u, 5u, cpu::top_head::max_outputs}) {
      if (slow() && outputs == cpu::top_head::max_outputs) continue;
      SCOPED_TRACE(std::to_string(outputs) + " outputs");
      cpu::top_head together(h.weight, bits, 2), alone(h.weight, bits, 1);
      h.pack(*GetParam(), bits);
      std::mt19937 random(14);
      std::vector<float> x, y(outputs * h.m), one(h.m);
      for (uint64_t o = 0; o < outputs; ++o) {
        std::vector<float> next = state(h, kinds[o % std::size(kinds)].what, random);
        if (o % 7 == 4) next[1] = std::nanf("");
        x.insert(x.end(), next.begin(), next.end());
        together.take(o, x.data() + o * h.k);
      }
      const uint64_t n = h.m / 3 / 2 * 2;
      together.approximate(*GetParam(), 0, outputs, 3, 0, n, y.data());
      together.approximate(*GetParam(), 1, outputs, 3, n, h.m, y.data());
      together.settle(*GetParam(), 2, outputs, 3, x.data(), 0, n, y.data(), product_room());
      together.settle(*GetParam(), 2, outputs, 3, x.data(), n, h.m, y.data(), product_room());
      uint64_t exact =
          together.refine(*GetParam(), 2, outputs, 3, x.data(), 0, n, y.data(), product_room());
      exact +=
          together.refine(*GetParam(), 2, outputs, 3, x.data(), n, h.m, y.data(), product_room());
      for (uint64_t o = 0; o < outputs; ++o) {
        alone.take(0, x.data() + o * h.k);
        alone.approximate(*GetParam(), 0, 1, 3, 0, h.m, one.data());
        alone.settle(*GetParam(), 1, 1, 3, x.data() + o * h.k, 0, h.m, one.data(), product_room());
        exact -= alone.refine(*GetParam(), 1, 1, 3, x.data() + o * h.k, 0, h.m, one.data(),
                              product_room());
        for (uint64_t r = 0; r < h.m; ++r)
          ASSERT_EQ(std::bit_cast<uint32_t>(y[o * h.m + r]), std::bit_cast<uint32_t>(one[r]))
              << "output " << o << ", row " << r;
      }
      EXPECT_EQ(exact, 0) << "as many rows exact together as alone";
    }
}

INSTANTIATE_TEST_SUITE_P(variants, top_heads, testing::ValuesIn(all_forms()), form_name);
INSTANTIATE_TEST_SUITE_P(variants, head_states, testing::ValuesIn(forms_of_states()), form_name);
INSTANTIATE_TEST_SUITE_P(variants, top_heads_of_6_bits,
                         testing::ValuesIn(those_with(has_linear_i6, all_forms())), form_name);

}  // namespace
}  // namespace bitnet::parity
