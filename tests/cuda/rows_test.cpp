// Norms, quantisation, the gated activation and the state of the head by four times as many
// threads, and rows that bit_linear keeps: the bits of the kernels that they stand in for.

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "bitnet/abi/ops.h"
#include "kernel_bench.hpp"
#include "kernel_table.hpp"
#include "stand_in.hpp"

namespace bitnet::cuda::test {
namespace {

using gpu::kernel_id;

constexpr float infinite = std::numeric_limits<float>::infinity(), nan = NAN;
constexpr uint32_t canary = 0xcdcdcdcdu, guard = 16;  // words behind what is written

// A row whose sum of squares depends on its order. A sum number `chain` of the 512 (four of each
// of 128 threads) gets a square and half a unit of its last place, which ends in what rounding took
// from it. Two squares beside it are lost if they reach it one after the other, and turn the result
// up if they were added up before: which of both is so depends on which of two exchanges is first.
// Where a and b are the same, all are elements of one sum.
constexpr uint32_t of_tie = 2048;  // elements, four of a sum
void put_tie(float* row, uint32_t chain, uint32_t a, uint32_t b, std::mt19937& random) {
  const uint32_t near = a == b ? chain : chain ^ 1u << a, far = a == b ? chain : near ^ 1u << b;
  row[chain] = 1 + static_cast<float>(random() % 400) / 1024;  // its square is exact and even
  row[chain + 512] = 0x1p-12f;
  row[near + 1024] = row[far + 1536] = 0x1.cp-25f;
}

// Of each two exchanges of the 512 sums, and of the elements of one sum.
constexpr uint32_t exchanges = 9;
std::vector<float> ties(uint32_t rows, std::mt19937& random) {
  std::vector<float> out(uint64_t{rows} * of_tie);
  for (uint32_t r = 0; r < rows; ++r)
    put_tie(&out[uint64_t{r} * of_tie], random() % 512, r / exchanges % exchanges, r % exchanges,
            random);
  return out;
}

// The same of sums of doubles. They end in a norm of f32, so the larger result must be the first
// double with the next norm.
constexpr uint32_t of_norm_tie = 2560;  // elements, five of a sum
float norm_of(double squares) {
  return static_cast<float>(1.001f * std::sqrt(squares) + 1.401298464e-45);
}
// Three numbers whose squares add up to the last double with a norm below that of `near`.
double put_before_next_norm(double near, float* row) {
  double low = near / 2, high = near;
  while (std::nextafter(low, high) != high) {
    const double middle = low + (high - low) / 2;
    (norm_of(middle) < norm_of(near) ? low : high) = middle;
  }
  double left = low, sum = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    auto x = static_cast<float>(std::sqrt(left));
    if (double{x} * x > left) x = std::nextafter(x, 0.0f);
    row[512 * i] = x;
    left -= double{x} * x;
    sum += double{x} * x;
  }
  return sum == low ? low : 0;
}
std::vector<float> norm_ties(uint32_t rows, std::mt19937& random) {
  std::vector<float> out(uint64_t{rows} * of_norm_tie);
  for (uint32_t r = 0; r < rows; ++r) {
    float* row = &out[uint64_t{r} * of_norm_tie];
    const uint32_t chain = random() % 512, a = r / exchanges % exchanges, b = r % exchanges;
    const uint32_t near = a == b ? chain : chain ^ 1u << a, far = a == b ? chain : near ^ 1u << b;
    double sum = 0;
    while (sum == 0)
      sum = put_before_next_norm(1.25 + static_cast<double>(random() % 4096) / 8192, row + chain);
    row[near + 1536] = row[far + 2048] =
        static_cast<float>(std::sqrt(0.4 * (std::nextafter(sum, 2.0) - sum)));
  }
  return out;
}

// Rows, one behind the other, of which each has something else in it.
std::vector<float> rows_of(uint32_t count, uint32_t k, std::mt19937& random) {
  constexpr float rare[] = {nan,    infinite, -infinite, 1e30f,
                            -3e38f, 1e-42f,   -0.0f,     std::numeric_limits<float>::max()};
  std::vector<float> out(uint64_t{count} * k);
  for (uint32_t r = 0; r < count; ++r) {
    float* row = &out[uint64_t{r} * k];
    for (uint32_t i = 0; i < k; ++i)
      row[i] = std::ldexp(static_cast<float>(static_cast<int>(random() % 65537) - 32768),
                          static_cast<int>(random() % 12) - 20);
    if (r % 2 == 1) row[random() % k] = rare[r / 2 % std::size(rare)];
    if (r % 8 == 1) row[k - 1] = nan;
  }
  return out;
}

// As words, with all NaNs alike: their bits depend on the processor. Of each `row` words the first
// `codes` are no floats.
std::vector<uint32_t> words_of(const std::vector<uint32_t>& words, bool floats, uint64_t row = 1,
                               uint64_t codes = 0) {
  std::vector<uint32_t> out = words;
  for (size_t i = 0; i < out.size(); ++i) {
    float x;
    std::memcpy(&x, &out[i], sizeof x);
    if (floats && i % row >= codes && std::isnan(x)) out[i] = 0x7fc00000u;
  }
  return out;
}

struct shape {
  uint32_t k, rows;
  uint32_t offset = 0;  // words before the first row, not before weights
};

class rows : public testing::Test {
 protected:
  void SetUp() override { bench_.open(); }

  struct output {
    uint64_t words;
    bool floats;
    uint64_t row = 1, codes = 0;  // words_of()
  };
  // What the kernel writes, by the forms that there are and without any.
  template <class Params>
  void expect_same(const gpu::kernel_spec& spec, const std::vector<std::vector<float>>& given,
                   const shape& of, const Params& p, const std::vector<output>& written) {
    std::vector<std::vector<uint32_t>> results[2];
    for (const bool plain : {false, true}) {
      bench_.without = plain ? optional_forms() : forms{};
      std::vector<gpu::binding> bound = {bench_.put(std::vector<uint32_t>{of.rows, 0, 0, 0})};
      for (const std::vector<float>& one : given) {
        const uint32_t offset = one.size() == of.k ? 0 : of.offset;
        std::vector<float> words(offset, 7.0f);
        words.insert(words.end(), one.begin(), one.end());
        bound.push_back(bench_.put(words));
        bound.back().offset += 4 * offset;
        bound.back().bytes -= 4 * offset;
      }
      const size_t first = bound.size();
      for (const output& one : written)
        bound.push_back(bench_.put(std::vector<uint32_t>(one.words + guard, canary)));
      bench_.add(spec, bound, p, 1, std::min((of.rows + 1) / 2, 8u));  // several rows to a group
      bench_.run();
      for (size_t i = 0; i < written.size(); ++i)
        results[plain ? 1 : 0].push_back(words_of(bench_.get<uint32_t>(bound[first + i]),
                                                  written[i].floats, written[i].row,
                                                  written[i].codes));
      bench_.clear();
    }
    for (size_t i = 0; i < written.size(); ++i) {
      ASSERT_EQ(results[0][i], results[1][i]) << "result " << i;
      for (uint32_t w = 0; w < guard; ++w)
        ASSERT_EQ(results[0][i][written[i].words + w], canary) << "written past the end";
    }
  }
  void expect_gated(const shape& of) {
    for (const uint32_t op : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
      for (const uint32_t norm : {0u, 1u}) {
        SCOPED_TRACE(std::to_string(of.k) + ", op " + std::to_string(op) + (norm ? " norm" : ""));
        std::mt19937 random(of.k + op);
        const auto gate = rows_of(of.rows, of.k, random), up = rows_of(of.rows, of.k, random);
        const std::vector<float> scratch(gate.size());
        expect_same({kernel_id::glu_quant, {group_threads, op, norm, 0, 0}},
                    {gate, up, weights(of.k), scratch}, of, gpu::glu_quant_params{0, of.k, 1e-6f},
                    quantised(of));
      }
  }
  void expect_states(const shape& of, const std::vector<float>& x) {
    const uint64_t row = gpu::head_state_words(of.k);
    expect_same(
        {kernel_id::head_state, {group_threads, 0, 0, 0, 0}}, {x}, of,
        gpu::head_state_params{0, of.k},
        {{of.rows * row, true, row, row - 4}, {uint64_t{of.rows} * gpu::head_count_words, false}});
  }
  enum class by : uint8_t { two_kernels, one_kernel, tiles };
  // y of bit_linear, or of the kernels that it stands in for, with each of some matrices of so many
  // rows. Products of one row are one launch.
  std::vector<uint32_t> product(const shape& of, uint32_t norm, by how,
                                const std::vector<uint32_t>& matrices) {
    const auto row_words = static_cast<uint32_t>(gpu::row_words(BITNET_FORMAT_TERNARY2, of.k));
    const auto words = static_cast<uint32_t>(gpu::i8_row_words(of.k));
    const uint32_t add = 1 - norm;
    std::mt19937 random(of.k + norm);
    std::vector<float> x(of.offset, 7.0f);
    if (of.k == of_tie)
      x = ties(of.rows, random);
    else
      for (const float value : rows_of(of.rows, of.k, random)) x.push_back(value);
    bench_.without = optional_forms();
    if (how == by::tiles) std::erase(bench_.without, "bit_linear_tiles_one");
    const gpu::binding header = bench_.put(std::vector<uint32_t>{of.rows, 0, 0, 0});
    gpu::binding in = bench_.put(x);
    in.offset += 4 * of.offset;
    in.bytes -= 4 * of.offset;
    const gpu::binding weight = bench_.put(weights(of.k));
    const gpu::binding scale = bench_.put(std::vector<float>{0.75f});
    const gpu::binding q = bench_.put(std::vector<uint32_t>(uint64_t{of.rows} * words));
    const gpu::binding s = bench_.put(std::vector<float>(of.rows));
    if (how == by::two_kernels) add_codes(of, norm, {header, in, weight, q, s});
    std::vector<gpu::binding> results;
    for (const uint32_t m : matrices) {
      const gpu::binding matrix = bench_.put(codes(uint64_t{m} * row_words, random));
      const gpu::binding residual = bench_.put(rows_of(of.rows, m, random));
      const gpu::binding y = bench_.put(std::vector<uint32_t>(of.rows * m + guard, canary));
      const gpu::bit_linear_params p{0, of.k, m, row_words, 0, m, add, 1e-6f};
      const std::vector<gpu::binding> bound = {header, in, weight, matrix, scale, residual, y};
      const uint32_t groups = (m + 15) / 16;
      if (how == by::two_kernels)
        bench_.add({kernel_id::linear_ternary, {group_threads, 32, 1, 4, 0}},
                   {header, q, s, matrix, scale, residual, y},
                   gpu::linear_ternary_params{0, of.k, m, row_words, 0, m, 0, add}, groups,
                   of.rows);
      else if (results.empty())
        bench_.add({kernel_id::bit_linear, {group_threads, 32, norm, 4, words}}, bound, p, groups,
                   of.rows);
      else
        bench_.add_beside(bound, p, groups);
      results.push_back(y);
    }
    bench_.run();
    std::vector<uint32_t> out;
    for (const gpu::binding& y : results)
      for (const uint32_t word : words_of(bench_.get<uint32_t>(y), true)) out.push_back(word);
    bench_.clear();
    return out;
  }
  // Quantises the rows, after their norm if they have one. `bound`: header, x, weights, q, s.
  void add_codes(const shape& of, uint32_t norm, const std::vector<gpu::binding>& bound) {
    if (norm != 0)
      bench_.add({kernel_id::norm_quant, {group_threads, 0, 0, 0, 0}}, bound,
                 gpu::norm_quant_params{0, of.k, 1e-6f}, 1, of.rows);
    else
      bench_.add({kernel_id::act_quant, {group_threads, 0, 0, 0, 0}},
                 {bound[0], bound[1], bound[3], bound[4]}, gpu::act_quant_params{0, of.k}, 1,
                 of.rows);
  }
  static std::vector<uint32_t> codes(uint64_t words, std::mt19937& random) {
    std::vector<uint32_t> out(words);
    for (uint32_t& word : out) {
      word = static_cast<uint32_t>(random());
      word &= ~(word >> 1 & 0x55555555u);  // 0 to 2
    }
    return out;
  }
  // Codes and factors of groups of rows that are normed, by one kernel or by two.
  std::vector<std::vector<uint32_t>> in_groups(const shape& of, uint32_t group, bool together) {
    std::mt19937 random(of.k + group);
    std::vector<float> x(of.offset, 7.0f);
    for (const float value : rows_of(of.rows, of.k, random)) x.push_back(value);
    const gpu::binding header = bench_.put(std::vector<uint32_t>{of.rows, 0, 0, 0});
    gpu::binding in = bench_.put(x);
    in.offset += 4 * of.offset;
    in.bytes -= 4 * of.offset;
    const gpu::binding weight = bench_.put(weights(of.k));
    const uint64_t codes = of.rows * gpu::i8_row_words(of.k);
    const uint64_t factors = uint64_t{of.rows} * (of.k / group);
    const gpu::binding q = bench_.put(std::vector<uint32_t>(codes + guard, canary));
    const gpu::binding d = bench_.put(std::vector<uint32_t>(factors + guard, canary));
    if (together) {
      bench_.add({kernel_id::norm_quant_groups, {group_threads, 0, 0, 0, 0}},
                 {header, in, weight, q, d}, gpu::norm_quant_groups_params{0, of.k, 1e-6f, group},
                 1, (of.rows + 1) / 2);
    } else {
      const gpu::binding y = bench_.put(std::vector<float>(uint64_t{of.rows} * of.k));
      bench_.add({kernel_id::rms_norm, {group_threads, 0, 0, 0, 0}}, {header, in, weight, y},
                 gpu::rms_norm_params{0, of.k, 1e-6f, 1}, 1, of.rows);
      bench_.add({kernel_id::act_quant_groups, {group_threads, 0, 0, 0, 0}}, {header, y, q, d},
                 gpu::act_quant_groups_params{0, of.k, group}, 2, of.rows);
    }
    bench_.run();
    std::vector<std::vector<uint32_t>> out = {bench_.get<uint32_t>(q), bench_.get<uint32_t>(d)};
    bench_.clear();
    for (uint64_t w = 0; w < guard; ++w) {
      EXPECT_EQ(out[0][codes + w], canary) << "codes are written past the end";
      EXPECT_EQ(out[1][factors + w], canary) << "factors are written past the end";
    }
    return out;
  }
  // Codes and factors of groups of an activation times something else, by one kernel or by three.
  std::vector<std::vector<uint32_t>> gated_groups(const shape& of, uint32_t op, uint32_t group,
                                                  bool together) {
    std::mt19937 random(of.k + group + op);
    const std::vector<float> gates = rows_of(of.rows, of.k, random);
    const gpu::binding header = bench_.put(std::vector<uint32_t>{of.rows, 0, 0, 0});
    const gpu::binding gate = bench_.put(gates);
    const gpu::binding up = bench_.put(rows_of(of.rows, of.k, random));
    const uint64_t codes = of.rows * gpu::i8_row_words(of.k);
    const uint64_t factors = uint64_t{of.rows} * (of.k / group);
    const gpu::binding q = bench_.put(std::vector<uint32_t>(codes + guard, canary));
    const gpu::binding d = bench_.put(std::vector<uint32_t>(factors + guard, canary));
    if (together) {
      bench_.add({kernel_id::glu_quant_groups, {group_threads, op, 0, 0, 0}},
                 {header, gate, up, q, d}, gpu::glu_quant_groups_params{0, of.k, group}, 3,
                 (of.rows + 1) / 2);
    } else {
      const gpu::binding active = bench_.put(std::vector<float>(gates.size()));
      const gpu::binding both = bench_.put(std::vector<float>(gates.size()));
      const gpu::elementwise_params p{0, of.k, 0};
      bench_.add({kernel_id::elementwise, {group_threads, op, 0, 0, 0}},
                 {header, gate, gate, active}, p, 2, of.rows);
      bench_.add({kernel_id::elementwise, {group_threads, BITNET_OP_MUL, 0, 0, 0}},
                 {header, active, up, both}, p, 2, of.rows);
      bench_.add({kernel_id::act_quant_groups, {group_threads, 0, 0, 0, 0}}, {header, both, q, d},
                 gpu::act_quant_groups_params{0, of.k, group}, 1, of.rows);
    }
    bench_.run();
    std::vector<std::vector<uint32_t>> out = {bench_.get<uint32_t>(q), bench_.get<uint32_t>(d)};
    bench_.clear();
    for (uint64_t w = 0; w < guard; ++w) {
      EXPECT_EQ(out[0][codes + w], canary) << "codes are written past the end";
      EXPECT_EQ(out[1][factors + w], canary) << "factors are written past the end";
    }
    return out;
  }
  static std::vector<float> weights(uint32_t k) {
    std::mt19937 random(k);
    std::vector<float> out(k);
    for (float& x : out) x = std::uniform_real_distribution<float>(-2, 2)(random);
    return out;
  }
  static std::vector<output> quantised(const shape& of) {
    return {{of.rows * gpu::i8_row_words(of.k), false}, {of.rows, true}};
  }
  kernel_bench bench_;
};

// One element more than the plain kernel's threads take in a turn, widths of models, the most that
// a form takes, and rows that no load of four elements is aligned to.
constexpr shape shapes[] = {{513, 4},  {1024, 8},    {2560, 1},    {2560, 8, 1}, {2563, 8},
                            {4095, 7}, {5120, 2, 3}, {6909, 5, 2}, {8191, 3},    {8192, 4}};

TEST_F(rows, norms_have_the_bits_of_fewer_threads) {
  for (const shape& of : shapes)
    for (const float eps : {1e-30f, 1e-5f}) {
      SCOPED_TRACE(of.k);
      std::mt19937 random(of.k);
      expect_same({kernel_id::rms_norm, {group_threads, 0, 0, 0, 0}},
                  {rows_of(of.rows, of.k, random), weights(of.k)}, of,
                  gpu::rms_norm_params{0, of.k, eps, 1}, {{uint64_t{of.rows} * of.k, true}});
    }
}
TEST_F(rows, sums_of_squares_keep_their_order) {
  std::mt19937 random(1);
  const shape of{of_tie, exchanges * exchanges * 8};
  expect_same({kernel_id::rms_norm, {group_threads, 0, 0, 0, 0}},
              {ties(of.rows, random), std::vector<float>(of.k, 1.0f)}, of,
              gpu::rms_norm_params{0, of.k, 1e-30f, 1}, {{uint64_t{of.rows} * of.k, true}});
}
TEST_F(rows, codes_have_the_bits_of_fewer_threads) {
  for (const shape& of : shapes) {
    SCOPED_TRACE(of.k);
    std::mt19937 random(of.k + 1);
    expect_same({kernel_id::act_quant, {group_threads, 0, 0, 0, 0}},
                {rows_of(of.rows, of.k, random)}, of, gpu::act_quant_params{0, of.k},
                quantised(of));
    expect_same({kernel_id::norm_quant, {group_threads, 0, 0, 0, 0}},
                {rows_of(of.rows, of.k, random), weights(of.k)}, of,
                gpu::norm_quant_params{0, of.k, 1e-6f}, quantised(of));
  }
}
TEST_F(rows, gated_codes_have_the_bits_of_fewer_threads) {
  for (const shape& of : {shape{515, 7}, {2562, 3, 1}, {6912, 1}, {8192, 2}}) expect_gated(of);
}
TEST_F(rows, long_gated_rows) {
  for (const shape& of : {shape{8193, 3}, {12288, 2, 2}, {17408, 2}}) expect_gated(of);
}
TEST_F(rows, states_of_the_head_have_the_bits_of_fewer_threads) {
  for (const shape& of : shapes) {
    SCOPED_TRACE(of.k);
    std::mt19937 random(of.k + 2);
    expect_states(of, rows_of(of.rows, of.k, random));
  }
}
TEST_F(rows, norms_of_states_keep_the_order_of_their_sums) {
  std::mt19937 random(2);
  const shape of{of_norm_tie, exchanges * exchanges * 8};
  expect_states(of, norm_ties(of.rows, random));
}

// A row that a thread keeps, one that is too long for it, and rows without alignment, by the
// kernels that also multiply and by two kernels. On eight processors a group takes three times 32
// rows of the larger matrix.
TEST_F(rows, products_quantise_with_the_same_bits) {
  const struct {
    shape of;
    uint32_t m;
  } cases[] = {{{128, 2}, 35},   {{515, 3}, 35},     {{516, 3}, 35},
               {{2560, 6}, 35},  {{2560, 3, 1}, 35}, {{of_tie, exchanges * exchanges * 10}, 8},
               {{5120, 6}, 35},  {{5124, 3}, 35},    {{384, 1}, 1},
               {{1152, 2}, 1100}};
  for (const auto& one : cases)
    for (const uint32_t norm : {0u, 1u}) {
      SCOPED_TRACE(std::to_string(one.of.k) + (norm ? " norm" : ""));
      const std::vector<uint32_t> wanted = product(one.of, norm, by::two_kernels, {one.m});
      EXPECT_EQ(product(one.of, norm, by::one_kernel, {one.m}), wanted);
      EXPECT_EQ(product(one.of, norm, by::tiles, {one.m}), wanted);
    }
}
// As q, k and v are; in tiles, groups of the three take twice 32 rows.
TEST_F(rows, joined_products_quantise_with_the_same_bits) {
  const auto kernels = reinterpret_cast<decltype(bitnet_stand_in_nodes)*>(
      dlsym(dlopen(usual_driver, RTLD_NOW | RTLD_NOLOAD), "bitnet_stand_in_nodes"));
  ASSERT_NE(kernels, nullptr);
  const std::vector<uint32_t> matrices = {700, 33, 200};
  for (const shape& of : {shape{2560, 1}, {384, 1}, {5124, 1}})
    for (const uint32_t norm : {0u, 1u}) {
      SCOPED_TRACE(std::to_string(of.k) + (norm ? " norm" : ""));
      const std::vector<uint32_t> wanted = product(of, norm, by::two_kernels, matrices);
      EXPECT_EQ(kernels(0), 4u);
      for (const by how : {by::one_kernel, by::tiles}) {
        EXPECT_EQ(product(of, norm, how, matrices), wanted);
        EXPECT_EQ(kernels(0), 1u);
      }
    }
}

// Groups of products that quantise the row: at most two to a processor, of all that are one launch.
TEST(rows_table, groups_of_products_that_quantise) {
  const char *tiles = "bit_linear_tiles_one", *plain = "bit_linear";
  const struct {
    const char* why;
    uint32_t k, rows, all_rows, processors, x;
    const char* function;
    forms off = {};
  } cases[] = {
      {"q of 2B-4T", 2560, 2560, 3840, 132, 80, tiles},
      {"its k and v", 2560, 640, 3840, 132, 20, tiles},
      {"gate and up: twice 32 rows", 2560, 6912, 13824, 132, 108, tiles},
      {"the same alone", 2560, 6912, 0, 132, 216, tiles},
      {"one processor", 2560, 97, 0, 1, 2, tiles},
      {"one row", 128, 1, 0, 132, 1, tiles},
      {"the longest row", 5120, 64, 0, 132, 2, tiles},
      {"too long", 5124, 64, 0, 132, 4, plain},
      {"no more groups than there can be", 128, 65536 * 32 + 1, 0, 1 << 20, 65535, tiles},
      {"off", 2560, 64, 0, 132, 4, plain, {tiles}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.why);
    const gpu::kernel_spec spec{
        kernel_id::bit_linear,
        {group_threads, 32, 1, 4, static_cast<uint32_t>(gpu::i8_row_words(one.k))}};
    kernel_form form;
    ASSERT_TRUE(find_form(spec, one.off, form));
    const gpu::bit_linear_params p{0, one.k, one.rows, 0, 0, one.rows, 0, 0};
    uint32_t params[gpu::max_params] = {};
    std::memcpy(params, &p, sizeof p);
    const grid how =
        grid_of(form, spec, params, (one.rows + 15) / 16, 1, one.processors, one.all_rows);
    EXPECT_STREQ(how.tiled ? how.tiled->function : form.function.c_str(), one.function);
    EXPECT_EQ(how.x, one.x);
    EXPECT_EQ(how.y, 1u);
  }
}

// By one kernel, with and without its form for few rows, and by two kernels: rows that are no
// whole blocks of codes, that end within a turn of the form, the longest that it takes, and one
// that is longer; rows without alignment.
TEST_F(rows, norms_and_groups_are_one_kernel_with_the_same_bits) {
  for (const shape& of : {shape{128, 3},
                          {544, 6},
                          {1408, 8},
                          {2560, 1},
                          {2560, 5, 1},
                          {4096, 8},
                          {8192, 3},
                          {8320, 2}})
    for (const uint32_t group : {32u, 64u, 128u}) {
      if (of.k % group != 0) continue;
      SCOPED_TRACE(std::to_string(of.k) + " by " + std::to_string(group));
      bench_.without = optional_forms();
      const auto expected = in_groups(of, group, false);
      EXPECT_EQ(in_groups(of, group, true), expected);
      bench_.without = {};
      EXPECT_EQ(in_groups(of, group, true), expected);
    }
}

TEST_F(rows, gates_and_groups_are_one_kernel_with_the_same_bits) {
  for (const uint32_t op : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
    for (const shape& of : {shape{128, 3}, {544, 6}, {1408, 8}, {12288, 2}})
      for (const uint32_t group : {32u, 64u, 128u}) {
        if (of.k % group != 0) continue;
        SCOPED_TRACE(std::to_string(of.k) + " by " + std::to_string(group) + ", op " +
                     std::to_string(op));
        EXPECT_EQ(gated_groups(of, op, group, true), gated_groups(of, op, group, false));
      }
}

// Which kernel runs.
TEST(rows_table, each_step_has_its_kernel) {
  const struct {
    const char* why;
    kernel_id id;
    uint32_t k, x, y;
    const char* function;
    forms off = {};
  } cases[] = {
      {"a row", kernel_id::rms_norm, 2560, 1, 1, "rms_norm_one"},
      {"short rows", kernel_id::rms_norm, 512, 1, 1, "rms_norm"},
      {"a few elements more", kernel_id::rms_norm, 513, 1, 1, "rms_norm_one"},
      {"the longest", kernel_id::rms_norm, 8192, 1, 1, "rms_norm_one"},
      {"too long", kernel_id::rms_norm, 8193, 1, 1, "rms_norm"},
      {"a row for each processor", kernel_id::act_quant, 2560, 1, 4, "act_quant_one"},
      {"more rows", kernel_id::act_quant, 2560, 1, 5, "act_quant"},
      {"more heads", kernel_id::rms_norm, 1024, 5, 1, "rms_norm"},
      {"a row", kernel_id::norm_quant, 2560, 1, 1, "norm_quant_one"},
      {"a row", kernel_id::norm_quant_groups, 4096, 1, 1, "norm_quant_groups_one"},
      {"too long", kernel_id::norm_quant_groups, 8320, 1, 1, "norm_quant_groups"},
      {"more rows", kernel_id::norm_quant_groups, 4096, 1, 5, "norm_quant_groups"},
      {"a row", kernel_id::glu_quant, 8192, 1, 1, "glu_quant_one"},
      {"a long row", kernel_id::glu_quant, 8193, 1, 1, "glu_quant_one_long"},
      {"the longest", kernel_id::glu_quant, 17408, 1, 1, "glu_quant_one_long"},
      {"too long", kernel_id::glu_quant, 17409, 1, 1, "glu_quant"},
      {"a row", kernel_id::head_state, 2560, 1, 1, "head_state_one"},
      {"the longest of all heads", kernel_id::head_state, 8192, 1, 1, "head_state_one"},
      {"off", kernel_id::head_state, 2560, 1, 1, "head_state", {"head_state_one"}},
      {"off", kernel_id::glu_quant, 6912, 1, 1, "glu_quant", {"glu_quant_one"}},
      {"off", kernel_id::glu_quant, 12288, 1, 1, "glu_quant", {"glu_quant_one_long"}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(std::string(one.function) + ": " + one.why);
    const gpu::kernel_spec spec{one.id, {group_threads, BITNET_OP_SILU, 1, 0, 0}};
    kernel_form form;
    ASSERT_TRUE(find_form(spec, one.off, form));
    const uint32_t params[gpu::max_params] = {0, one.k};
    const grid how = grid_of(form, spec, params, one.x, one.y, 4);
    EXPECT_EQ(how.tiled ? how.tiled->function : form.function, one.function);
    EXPECT_EQ(how.x, one.x);
    EXPECT_EQ(how.y, one.y);
  }
}

}  // namespace
}  // namespace bitnet::cuda::test
