// Each kernel against its definition in bitnet/abi/ops.h, computed slowly here: integers and what
// is only moved or rounded once bit for bit, sums within the error that their order allows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>

#include "bench.hpp"
#include "bitnet/abi/ops.h"
#include "bitnet/abi/program.h"
#include "bitnet/sdk/reference/recurrent.hpp"
#include "bitnet/sdk/reference/rows.hpp"

namespace bitnet::opencl::test {
namespace {

constexpr float epsilon = 0x1p-24f;  // of rounding one result to nearest

constexpr uint32_t group_sizes[] = {1, 8};  // cores, and what has barriers

constexpr std::pair<uint32_t, uint32_t> kv_pairs[] = {{BITNET_DTYPE_F16, BITNET_DTYPE_F16},
                                                      {BITNET_DTYPE_F32, BITNET_DTYPE_Q8_0},
                                                      {BITNET_DTYPE_Q8_0, BITNET_DTYPE_F32}};
constexpr std::pair<uint32_t, uint32_t> activations[] = {
    {BITNET_OP_RELU2, 1}, {BITNET_OP_SILU, 0}, {BITNET_OP_GELU, 0}, {BITNET_OP_GELU, 1}};

struct ternary_form {
  uint32_t shared, tokens, rows;
};
constexpr ternary_form ternary_forms[] = {{1, 4, 2}, {4, 1, 1}, {4, 4, 2}};

std::vector<uint32_t> tokens_together(uint32_t dense_format) {
  if (dense_format == BITNET_FORMAT_TERNARY2) return {};
  return dense_format == BITNET_FORMAT_F16 ? std::vector{1u, 4u} : std::vector{4u};
}

class each_form : public testing::TestWithParam<std::tuple<form, uint32_t>> {
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

// As kernels.hpp lays it out: rows of whole words, blocks padded to words.
std::vector<uint8_t> on_device(const sdk::format& f, const std::vector<uint8_t>& data, uint64_t k,
                               uint64_t m) {
  const uint64_t row = sdk::row_bytes(f, k), wide = 4 * gpu::row_words(f.id, k);
  std::vector<uint8_t> out(wide * m);
  for (uint64_t r = 0; r < m; ++r) {
    if (f.id == BITNET_FORMAT_Q8_0 || f.id == BITNET_FORMAT_Q4_0) {  // f16, two bytes, quants
      const uint64_t block = f.block_bytes + 2;
      for (uint64_t b = 0; b < k / 32; ++b) {
        const uint8_t* from = &data[r * row + b * f.block_bytes];
        std::copy_n(from, 2, &out[r * wide + b * block]);
        std::copy_n(from + 2, f.block_bytes - 2, &out[r * wide + b * block + 4]);
      }
    } else if (f.id == BITNET_FORMAT_Q6_K) {
      for (uint64_t b = 0; b < k / 256; ++b)
        std::copy_n(&data[r * row + b * 210], 210, &out[r * wide + b * 212]);
    } else {
      std::copy_n(&data[r * row], row, &out[r * wide]);
    }
  }
  return out;
}

argument header(uint32_t tokens, uint32_t outputs = 0, uint32_t window = 0, uint32_t keep = 0) {
  return input<uint32_t>({tokens, outputs, window, keep});
}

TEST_P(each_form, embed_gather_decodes_the_rows_of_the_tokens) {
  for (const sdk::format& f : sdk::formats) {
    const uint32_t k = f.block == 1 ? 37 : f.id == BITNET_FORMAT_TERNARY2 ? 200 : 2 * f.block;
    const uint32_t m = 9, first_row = 3, n_rows = 5, group = f.block == 128 ? 40 : 0;
    SCOPED_TRACE(f.name);
    const std::vector<uint8_t> data = matrix(f, k, m);
    const std::vector<float> scale = floats(m * k / 40);
    const std::vector<int32_t> token = {4, 7, 3, 0, 8, 5};  // two are in another binding
    const uint64_t row = sdk::row_bytes(f, k);
    const std::vector<uint8_t> part(
        data.begin() + static_cast<int64_t>(first_row * row),
        data.begin() + static_cast<int64_t>((first_row + n_rows) * row));
    argument h = header(static_cast<uint32_t>(token.size()) - 1), tokens = input(token);
    argument w = input(on_device(f, part, k, n_rows)), scales = input(scale);
    argument y = output(token.size() * k);
    const gpu::embed_gather_params p{gpu::rows_are_tokens,
                                     k,
                                     static_cast<uint32_t>(gpu::row_words(f.id, k)),
                                     first_row,
                                     n_rows,
                                     group};
    bench_->run({kernel_id::embed_gather, {t(), f.id}}, {&h, &tokens, &w, &scales, &y}, p, 2, 3);
    const std::vector<float> found = values_of<float>(y);
    const argument untouched = output(1);
    for (uint64_t i = 0; i < token.size(); ++i) {
      const auto of = static_cast<uint64_t>(token[i]);
      std::vector<float> expected(k);
      sdk::decode(f.id, &data[of * row], 0, k, expected.data());
      for (uint64_t j = 0; j < k; ++j) {
        if (group != 0) expected[j] *= scale[(of * k + j) / group];
        if (i + 1 == token.size() || of < first_row || of >= first_row + n_rows)
          ASSERT_EQ(y.words[i * k + j], untouched.words[0]) << "row " << i << " is not ours";
        else
          ASSERT_EQ(found[i * k + j], expected[j]) << "row " << i << " element " << j;
      }
    }
  }
}

std::vector<float> norm_of(bench& b, uint32_t t, const std::vector<float>& x,
                           const std::vector<float>& weight, uint32_t rows, float eps,
                           uint32_t heads = 1) {
  const auto k = static_cast<uint32_t>(weight.size());
  argument h = header(rows), in = input(x), w = input(weight), y = output(x.size());
  b.run({kernel_id::rms_norm, {t}}, {&h, &in, &w, &y}, gpu::rms_norm_params{0, k, eps, heads},
        heads == 1 ? 1 : heads - 1, 2);
  return values_of<float>(y);
}

TEST_P(each_division, rms_norm_of_heads_has_the_bits_of_rows) {
  for (const uint32_t k : {1u, 20u, 128u})
    for (const uint32_t heads : {2u, 5u}) {
      const std::vector<float> x = floats(uint64_t{3} * heads * k), w = floats(k);
      EXPECT_EQ(norm_of(*bench_, t(), x, w, 3, 1e-6f, heads),
                norm_of(*bench_, t(), x, w, 3 * heads, 1e-6f))
          << heads << " heads of " << k;
    }
}

TEST_P(each_division, rms_norm_is_near_the_exact_one) {
  for (const uint32_t k : {1u, 7u, 64u, 333u, 2560u}) {
    const uint32_t rows = 3;
    // One large element: a sum in f32 would lose the others.
    std::vector<float> x = floats(uint64_t{rows} * k), w = floats(k);
    x[0] = 3000;
    const std::vector<float> y = norm_of(*bench_, t(), x, w, rows, 1e-5f);
    for (uint32_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (uint32_t i = 0; i < k; ++i) sum += double{x[r * k + i]} * double{x[r * k + i]};
      const double factor = 1 / std::sqrt(sum / k + double{1e-5f});
      for (uint32_t i = 0; i < k; ++i) {
        const double expected = double{x[r * k + i]} * factor * double{w[i]};
        // mean, eps, root (3 ulp), reciprocal (2.5 ulp), two products
        ASSERT_NEAR(double{y[r * k + i]}, expected, 16 * double{epsilon} * std::fabs(expected))
            << "k " << k << " row " << r << " element " << i;
      }
    }
  }
}

struct quantised_rows {
  std::vector<int8_t> q;  // (rows, k)
  std::vector<float> s;
};

// Unpacks rows of stride k / 128, rounded up, and sees that the padding is zero.
quantised_rows unpacked(const argument& q, const argument& s, uint32_t rows, uint32_t k) {
  quantised_rows out;
  const std::vector<int8_t> bytes = values_of<int8_t>(q);
  const uint64_t stride = 4 * gpu::i8_row_words(k);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t i = 0; i < stride; ++i) {
      if (i < k)
        out.q.push_back(bytes[r * stride + i]);
      else
        EXPECT_EQ(bytes[r * stride + i], 0) << "padding of row " << r;
    }
  out.s = values_of<float>(s);
  out.s.resize(rows);
  return out;
}

quantised_rows quantised_by_definition(const std::vector<float>& x, uint32_t rows, uint32_t k) {
  quantised_rows out;
  for (uint64_t r = 0; r < rows; ++r) {
    float a = 0;
    for (uint64_t i = 0; i < k; ++i)
      if (std::fabs(x[r * k + i]) > a) a = std::fabs(x[r * k + i]);
    const float scale = 127.0f / std::max(a, 1e-5f);
    out.s.push_back(scale);
    for (uint64_t i = 0; i < k; ++i)
      out.q.push_back(
          static_cast<int8_t>(std::clamp(std::nearbyint(x[r * k + i] * scale), -128.0f, 127.0f)));
  }
  return out;
}

quantised_rows quantised_on(bench& b, uint32_t t, const std::vector<float>& x, uint32_t rows,
                            uint32_t k) {
  argument h = header(rows), in = input(x);
  argument q = output(rows * gpu::i8_row_words(k)), s = output(rows);
  b.run({kernel_id::act_quant, {t}}, {&h, &in, &q, &s}, gpu::act_quant_params{0, k}, 1, 5);
  return unpacked(q, s, rows, k);
}

TEST_P(each_division, act_quant_is_exact) {
  for (const uint32_t k : {1u, 5u, 128u, 130u, 2560u}) {
    const uint32_t rows = 4;
    std::vector<float> x = floats(uint64_t{rows} * k, 3);
    for (uint32_t i = 0; i < k; ++i) x[i] = 0;           // the floor of 1e-5
    for (uint32_t i = 0; i < k; ++i) x[k + i] *= 1e-9f;  // below the floor
    for (uint32_t i = 0; i < k; ++i)                     // halves, which go to the even one
      x[2 * k + i] = i == 0 ? 127.0f : static_cast<float>(i % 100) + 0.5f;
    const quantised_rows expected = quantised_by_definition(x, rows, k);
    const quantised_rows found = quantised_on(*bench_, t(), x, rows, k);
    EXPECT_EQ(found.s, expected.s) << k;
    EXPECT_EQ(found.q, expected.q) << k;
  }
}

TEST_P(each_division, act_quant_divides_as_the_host_does) {
  // Rows of one element all over the range of f32; the last are its largest, infinity and NaN.
  std::vector<float> x;
  for (uint32_t i = 0; i < 3000; ++i) {
    const uint32_t bits = (110 + i % 145) << 23 | (random_() & 0x7fffffu);
    float v = 0;
    std::memcpy(&v, &bits, 4);
    x.push_back(v);
  }
  for (uint32_t i = 0; i < 64; ++i) x.push_back(std::nextafter(1.0f + static_cast<float>(i), 99.f));
  x.push_back(std::numeric_limits<float>::max());
  x.push_back(INFINITY);
  x.push_back(NAN);
  const auto rows = static_cast<uint32_t>(x.size());
  const quantised_rows found = quantised_on(*bench_, t(), x, rows, 1);
  for (uint32_t r = 0; r + 1 < rows; ++r)
    ASSERT_EQ(found.s[r], 127.0f / std::max(x[r], 1e-5f)) << "of " << x[r];
  EXPECT_EQ(found.s[rows - 1], 127.0f / 1e-5f) << "NaN is passed over";
}

TEST_P(each_division, act_quant_groups_is_exact) {
  for (const auto& [k, group] : {std::pair{32u, 32u}, {160u, 32u}, {320u, 64u}, {640u, 128u}}) {
    const uint32_t rows = 4, groups = k / group;
    std::vector<float> x = floats(uint64_t{rows} * k, 3);
    for (uint32_t i = 0; i < k; ++i) x[i] = 0;            // the floor of 1e-30
    for (uint32_t i = 0; i < k; ++i) x[k + i] *= 1e-31f;  // below the floor
    for (uint32_t i = 0; i < k; ++i) {                    // halves, which go to the even one
      x[2 * k + i] = i % group == 0 ? -127.0f : static_cast<float>(i % 100) + 0.5f;
      // Every size that f32 has, and infinity.
      x[3 * k + i] = std::ldexp(x[3 * k + i], static_cast<int>(i / group * 50) - 100);
    }
    x[3 * k] = INFINITY;
    argument h = header(rows), in = input(x);
    argument q = output(rows * gpu::i8_row_words(k)), d = output(uint64_t{rows} * groups);
    bench_->run({kernel_id::act_quant_groups, {t()}}, {&h, &in, &q, &d},
                gpu::act_quant_groups_params{0, k, group}, 2, 3);
    const quantised_rows found = unpacked(q, d, rows, k);
    const std::vector<float> factors = values_of<float>(d);
    for (uint32_t g = 0; g < rows * groups; ++g) {
      float a = 1e-30f;
      for (uint32_t i = 0; i < group; ++i) a = std::max(a, std::fabs(x[g * group + i]));
      ASSERT_EQ(factors[g], a / 127.0f) << "group " << g << " of " << group;
      for (uint32_t i = g * group; i < (g + 1) * group; ++i) {
        if (!std::isfinite(x[i])) continue;
        ASSERT_EQ(found.q[i], std::nearbyint(x[i] * (127.0f / a))) << "element " << i;
      }
    }
  }
}

// Blocks that are shorter and longer than a tile, rows that end within one.
TEST_P(each_form, hadamard_is_exact) {
  const struct {
    uint32_t k, block, tile;
  } rows[] = {{2, 2, 16},     {24, 8, 16},    {96, 32, 32},    {192, 64, 16},
              {512, 256, 16}, {1024, 512, 8}, {4096, 4096, 64}};
  for (const auto& [k, block, tile] : rows)
    for (const bool first : {true, false}) {
      SCOPED_TRACE(std::to_string(k) + " by " + std::to_string(block));
      const uint32_t tokens = 3;
      const std::vector<float> x = floats(uint64_t{tokens} * k, 4), factors = floats(k, 2);
      const float scale = 1 / std::sqrt(static_cast<float>(block));
      std::vector<float> expected(x.size());
      for (uint32_t t = 0; t < tokens; ++t)
        sdk::reference::hadamard(
            &x[uint64_t{t} * k], factors.data(),
            first ? BITNET_HADAMARD_FACTORS_FIRST : BITNET_HADAMARD_FACTORS_LAST, k, block,
            &expected[uint64_t{t} * k]);
      argument h = header(tokens), in = input(x), w = input(factors), y;
      for (uint32_t from = 1; from < block;) {
        const uint32_t to = std::min(block, from * tile);
        y = output(x.size());
        const gpu::hadamard_params p{
            0, k, from, to, first && from == 1, !first && to == block, to == block ? scale : 1.0f};
        bench_->run({kernel_id::hadamard, {t(), tile}}, {&h, &in, &w, &y}, p, 2, 3);
        in.words = y.words;
        from = to;
      }
      ASSERT_EQ(values_of<float>(y), expected) << (first ? "factors first" : "factors last");
    }
}

// What comes after the integer sums of a row, as ops.h defines it.
float linear_row(const uint8_t* w, const int8_t* q, const float* s, const float* scale, uint32_t k,
                 uint32_t scale_group, uint32_t given) {
  const uint32_t own = scale_group == 0 ? k : scale_group;
  const uint32_t shorter = given == 0 ? own : std::min(own, given), longer = std::max(own, given);
  float inner = 0, outer = 0;
  int32_t sum = 0;
  for (uint32_t i = 0; i < k; ++i) {
    sum += sdk::ternary_at(w, i) * q[i];
    if ((i + 1) % shorter != 0) continue;
    if (given == 0 && scale_group == 0) return static_cast<float>(sum) / s[0] * scale[0];
    const float of_weights = scale[i / own], of_activations = given == 0 ? 1.0f : s[i / given];
    inner += static_cast<float>(sum) * (given != 0 && given <= own ? of_activations : of_weights);
    sum = 0;
    if ((i + 1) % longer != 0) continue;
    outer += given == 0 ? inner : inner * (given <= own ? of_weights : of_activations);
    inner = 0;
  }
  return given == 0 ? outer / s[0] : outer;
}

TEST_P(each_division, linear_ternary_is_exact) {
  const sdk::format& f = *sdk::find_format(BITNET_FORMAT_TERNARY2);
  const struct {
    const char* why;
    uint32_t k, m, tokens, scale_group, given;
    bool extreme, add;
  } rows[] = {
      {"one group", 128, 5, 1, 0, 0, false, false},
      {"a tail of rows and of columns", 200, 13, 3, 0, 0, false, true},
      {"more groups than an int16 can sum", 4224, 3, 5, 0, 0, true, false},
      {"one element", 1, 1, 1, 0, 0, false, false},
      {"small scale groups", 384, 7, 2, 32, 0, false, true},
      {"scale groups of four", 200, 5, 5, 4, 0, false, false},
      {"factors of 32, one scale", 160, 3, 5, 0, 32, false, true},
      {"factors of 32, a scale to each row", 96, 13, 1, 96, 32, false, false},
      {"factors of 64, scales of 32", 320, 5, 3, 32, 64, false, true},
      {"factors as long as scales", 640, 7, 2, 128, 128, true, false},
      {"factors of 32, scales of 256", 1536, 3, 6, 256, 32, true, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const uint32_t whole_m = row.m + 3, first_row = 2;  // of which the binding has row.m
    const std::vector<uint8_t> all = matrix(f, row.k, whole_m);
    std::vector<uint8_t> data = all;
    if (row.extreme)
      for (uint64_t i = 0; i < data.size(); ++i) data[i] = i % 2 ? 0xaa : 0x00;  // all 1, all -1
    const uint64_t bytes = sdk::row_bytes(f, row.k), stride = 4 * gpu::i8_row_words(row.k);
    const std::vector<uint8_t> part(
        data.begin() + static_cast<int64_t>(first_row * bytes),
        data.begin() + static_cast<int64_t>((first_row + row.m) * bytes));
    std::vector<int8_t> q(row.tokens * stride);
    for (uint32_t t = 0; t < row.tokens; ++t)
      for (uint32_t i = 0; i < row.k; ++i)
        q[t * stride + i] = static_cast<int8_t>(
            row.extreme ? (i % 32 % 2 ? -128 : 127) : static_cast<int>(random_() % 256) - 128);
    const uint32_t factors = row.given == 0 ? 1 : row.k / row.given;  // of a token
    std::vector<float> s(row.tokens * factors);
    const std::vector<float> residual = floats(uint64_t{row.tokens} * whole_m, 50);
    for (float& v : s) v = uniform(1, 2000);
    const std::vector<float> scale =
        floats(row.scale_group == 0 ? 1 : uint64_t{whole_m} * row.k / row.scale_group);
    for (const auto& [shared, together, deep] : ternary_forms) {
      if (shared > t() || (shared > 1 && (row.scale_group != 0 || row.given != 0))) continue;
      argument h = header(row.tokens), qs = input(q), ss = input(s), w = input(part);
      argument scales = input(scale), r = input(residual);
      argument y = output(uint64_t{row.tokens + 1} * whole_m);
      const gpu::linear_ternary_params p{
          0,         row.k, whole_m,         static_cast<uint32_t>(bytes / 4),
          first_row, row.m, row.scale_group, row.add ? 1u : 0u};
      bench_->run({kernel_id::linear_ternary, {t(), shared, together, deep, row.given}},
                  {&h, &qs, &ss, &w, &scales, &r, &y}, p, 3, 2);
      const std::vector<float> found = values_of<float>(y);
      const argument untouched = output(1);
      for (uint32_t t = 0; t <= row.tokens; ++t)
        for (uint32_t m = 0; m < whole_m; ++m) {
          const uint64_t at = uint64_t{t} * whole_m + m;
          if (t == row.tokens || m < first_row || m >= first_row + row.m) {
            ASSERT_EQ(y.words[at], untouched.words[0]) << "element " << at << " is not ours";
            continue;
          }
          const uint64_t of_row = row.scale_group == 0 ? 0 : row.k / row.scale_group;
          float expected = linear_row(&data[m * bytes], &q[t * stride], &s[uint64_t{t} * factors],
                                      &scale[m * of_row], row.k, row.scale_group, row.given);
          if (row.add) expected += residual[at];
          ASSERT_EQ(found[at], expected)
              << "token " << t << " row " << m << ", " << shared << " threads, " << together
              << " tokens, " << deep << " rows";
        }
    }
  }
}

TEST_P(each_form, linear_dense_is_near_the_exact_one) {
  for (const sdk::format& f : sdk::formats) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    SCOPED_TRACE(f.name);
    const uint32_t k = f.block == 1 ? 147 : f.block == 32 ? 96 : 512;
    const uint32_t m = 11, first_row = 1, n_rows = 9, tokens = 5;
    const std::vector<uint8_t> data = matrix(f, k, m);
    const uint64_t bytes = sdk::row_bytes(f, k);
    const std::vector<uint8_t> part(
        data.begin() + static_cast<int64_t>(first_row * bytes),
        data.begin() + static_cast<int64_t>((first_row + n_rows) * bytes));
    const std::vector<float> x = floats(uint64_t{tokens} * k);
    std::vector<float> alone;
    for (const uint32_t together : tokens_together(f.id)) {
      argument h = header(0, tokens), in = input(x), w = input(on_device(f, part, k, n_rows));
      argument y = output(uint64_t{tokens} * m);
      const gpu::linear_dense_params p{gpu::rows_are_outputs,
                                       k,
                                       m,
                                       static_cast<uint32_t>(gpu::row_words(f.id, k)),
                                       first_row,
                                       n_rows};
      bench_->run({kernel_id::linear_dense, {t(), t() == 1 ? 1u : 4u, together, f.id}},
                  {&h, &in, &w, &y}, p, 2, 2);
      const std::vector<float> found = values_of<float>(y);
      for (uint32_t r = 0; r < n_rows; ++r) {
        std::vector<float> row(k);
        sdk::decode(f.id, &data[(first_row + r) * bytes], 0, k, row.data());
        for (uint32_t t = 0; t < tokens; ++t) {
          double sum = 0, size = 0;
          for (uint32_t i = 0; i < k; ++i) {
            const double product = double{row[i]} * double{x[t * k + i]};
            sum += product;
            size += std::fabs(product);
          }
          // A lane adds k / 16 products at most, then come 4 + 2 levels of the tree.
          ASSERT_NEAR(double{found[t * m + first_row + r]}, sum,
                      (k / 16.0 + 8) * double{epsilon} * size)
              << "token " << t << " row " << r;
        }
      }
      if (alone.empty()) alone = found;
      for (uint32_t i = 0; i < tokens * m; ++i) {
        if (i % m < first_row || i % m >= first_row + n_rows) continue;
        ASSERT_EQ(found[i], alone[i]) << "not the same bits with other tokens";
      }
    }
  }
}

TEST_P(each_form, rope_turns_pairs) {
  const uint32_t heads = 3, head_dim = 10, tokens = 4;
  const std::vector<float> x = floats(uint64_t{tokens} * heads * head_dim);
  for (const uint32_t pairs : {1u, 3u, 5u})
    for (const uint32_t neox : {0u, 1u}) {
      const std::vector<float> turns = floats(uint64_t{tokens} * pairs * 2);
      argument h = header(tokens), in = input(x), turn = input(turns), y = output(x.size());
      bench_->run({kernel_id::rope, {t()}}, {&h, &in, &turn, &y},
                  gpu::rope_params{0, heads, head_dim, pairs, neox}, 2, 3);
      std::vector<float> expected = x;
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t head = 0; head < heads; ++head)
          for (uint32_t i = 0; i < pairs; ++i) {
            const uint64_t at = (uint64_t{t} * heads + head) * head_dim;
            const uint64_t first = at + (neox ? i : 2 * i), second = first + (neox ? pairs : 1);
            const float c = turns[2 * (t * pairs + i)], s = turns[2 * (t * pairs + i) + 1];
            expected[first] = x[first] * c - x[second] * s;
            expected[second] = x[first] * s + x[second] * c;
          }
      EXPECT_EQ(values_of<float>(y), expected) << pairs << " pairs, neox " << neox;
    }
}

// A head's keys or values of one token, as KV pools keep it, by the definitions of tensor.h; blocks
// of int8 with two bytes of padding.
std::vector<uint8_t> kept(uint32_t dtype, const float* x, uint32_t n) {
  std::vector<uint8_t> out;
  const auto put = [&](const auto& v) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&v);
    out.insert(out.end(), bytes, bytes + sizeof v);
  };
  if (dtype == BITNET_DTYPE_F32)
    for (uint32_t i = 0; i < n; ++i) put(x[i]);
  if (dtype == BITNET_DTYPE_F16) {
    for (uint32_t i = 0; i < n; ++i) put(sdk::f32_to_f16(x[i]));
    if (n % 2) put(uint16_t{0});
  }
  for (uint32_t b = 0; dtype == BITNET_DTYPE_Q8_0 && b < n; b += 32) {
    float largest = 0;
    for (uint32_t i = b; i < b + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const uint16_t d = sdk::f32_to_f16(std::min(largest / 127.0f, 65504.0f));
    put(d);
    put(uint16_t{0});
    const float step = sdk::f16_to_f32(d), inverse = step > 0 ? 1.0f / step : 0;
    for (uint32_t i = b; i < b + 32; ++i)
      put(static_cast<int8_t>(std::clamp(std::nearbyint(x[i] * inverse), -127.0f, 127.0f)));
  }
  return out;
}

TEST_P(each_division, kv_write_keeps_the_rows_of_the_slots) {
  for (const auto& [k_type, v_type] : kv_pairs)
    for (const uint32_t head_dim : {64u, 21u}) {
      if (head_dim % 32 != 0 && (k_type == BITNET_DTYPE_Q8_0 || v_type == BITNET_DTYPE_Q8_0))
        continue;
      const uint32_t heads = 2, block_tokens = 4, blocks = 3, tokens = 5;
      std::vector<float> k = floats(uint64_t{tokens} * heads * head_dim, 4), v = k;
      std::reverse(v.begin(), v.end());
      for (uint32_t i = 0; i < head_dim; ++i) k[i] = 0;                  // d is 0
      for (uint32_t i = 0; i < head_dim; ++i) k[head_dim + i] *= 1e-7f;  // d is subnormal
      for (uint32_t i = 0; i < head_dim; ++i) v[head_dim + i] *= 1e7f;   // d is too large for f16
      const std::vector<int32_t> slot = {7, 0, 11, 2, 5};
      argument h = header(tokens), slots = input(slot), in_k = input(k), in_v = input(v);
      const uint64_t k_words = gpu::kv_row_words(k_type, head_dim);
      const uint64_t v_words = gpu::kv_row_words(v_type, head_dim);
      argument keys = output(blocks * heads * block_tokens * k_words);
      argument values = output(blocks * heads * block_tokens * v_words);
      argument expected_k = keys, expected_v = values;
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t head = 0; head < heads; ++head) {
          const auto s = static_cast<uint64_t>(slot[t]);
          const uint64_t row = (s / block_tokens * heads + head) * block_tokens + s % block_tokens;
          const uint64_t from = (uint64_t{t} * heads + head) * head_dim;
          const auto of_k = kept(k_type, &k[from], head_dim),
                     of_v = kept(v_type, &v[from], head_dim);
          std::memcpy(&expected_k.words[row * k_words], of_k.data(), of_k.size());
          std::memcpy(&expected_v.words[row * v_words], of_v.data(), of_v.size());
        }
      bench_->run({kernel_id::kv_write, {t(), k_type, v_type}},
                  {&h, &slots, &in_k, &in_v, &in_k, &keys, &values},
                  gpu::kv_write_params{0, heads, head_dim, block_tokens, 0, 0}, 2, 2);
      EXPECT_EQ(keys.words, expected_k.words) << "type " << k_type << ", heads of " << head_dim;
      EXPECT_EQ(values.words, expected_v.words) << "type " << v_type << ", heads of " << head_dim;
    }
}

TEST_P(each_division, keys_are_turned_as_rope_does) {
  for (const auto& [k_type, v_type] : kv_pairs)
    for (const auto& [pairs, neox] : {std::pair{32u, 1u}, {32u, 0u}, {10u, 1u}, {10u, 0u}}) {
      const uint32_t heads = 2, head_dim = 64, block_tokens = 4, blocks = 2, tokens = 3;
      const std::vector<float> k = floats(uint64_t{tokens} * heads * head_dim, 4);
      const std::vector<float> v = floats(uint64_t{tokens} * heads * head_dim, 4);
      argument h = header(tokens), slots = input(std::vector<int32_t>{7, 0, 5});
      argument in_k = input(k), in_v = input(v);
      argument turns = input(floats(uint64_t{tokens} * pairs * 2)), turned = output(k.size());
      bench_->run({kernel_id::rope, {t()}}, {&h, &in_k, &turns, &turned},
                  gpu::rope_params{0, heads, head_dim, pairs, neox}, 2, 3);
      turned.written = false;
      const uint64_t rows = uint64_t{blocks} * heads * block_tokens;
      argument keys = output(rows * gpu::kv_row_words(k_type, head_dim));
      argument values = output(rows * gpu::kv_row_words(v_type, head_dim));
      argument found_k = keys, found_v = values;
      bench_->run({kernel_id::kv_write, {t(), k_type, v_type}},
                  {&h, &slots, &turned, &in_v, &turns, &keys, &values},
                  gpu::kv_write_params{0, heads, head_dim, block_tokens, 0, 0}, 2, 2);
      bench_->run({kernel_id::kv_write, {t(), k_type, v_type, 1}},
                  {&h, &slots, &in_k, &in_v, &turns, &found_k, &found_v},
                  gpu::kv_write_params{0, heads, head_dim, block_tokens, pairs, neox}, 2, 2);
      EXPECT_EQ(found_k.words, keys.words) << "type " << k_type << ", " << pairs << " pairs";
      EXPECT_EQ(found_v.words, values.words) << "type " << v_type;
    }
}

float kept_element(uint32_t dtype, const uint8_t* row, uint32_t i) {
  if (dtype == BITNET_DTYPE_F32) return sdk::load<float>(row + uint64_t{4} * i);
  if (dtype == BITNET_DTYPE_F16) return sdk::f16_to_f32(sdk::load<uint16_t>(row + uint64_t{2} * i));
  const uint8_t* block = row + i / 32 * uint64_t{36};
  return sdk::f16_to_f32(sdk::load<uint16_t>(block)) *
         static_cast<float>(static_cast<int8_t>(block[4 + i % 32]));
}

TEST_P(each_form, attn_paged_is_near_the_exact_one) {
  const struct {
    const char* why;
    uint32_t head_dim, heads, kv_heads, window, keep, own_window = 0;
  } rows[] = {
      {"one head", 64, 1, 1, 0, 0},
      {"four heads on two", 64, 4, 2, 0, 0},
      {"a head that is no multiple of a vector", 20, 2, 1, 0, 0},
      {"a window", 64, 2, 1, 5, 0},
      {"a window, and some kept", 64, 2, 2, 3, 6},
      {"everything kept", 64, 2, 1, 1, ~0u},
      {"a layer's window", 64, 2, 1, 0, 0, 7},
      {"a layer's window of everything", 64, 2, 1, 0, 0, INT32_MAX},
      {"a layer's window within the step's", 64, 2, 2, 9, 2, 4},
      {"a layer's window that leaves some of those kept", 64, 2, 2, 3, 14, 10},
  };
  const uint32_t block_tokens = 4, max_blocks = 12, blocks = 30;
  for (const auto& row : rows)
    for (const auto& [k_type, v_type] : kv_pairs) {
      if (row.head_dim % 32 != 0 && (k_type == BITNET_DTYPE_Q8_0 || v_type == BITNET_DTYPE_Q8_0))
        continue;
      SCOPED_TRACE(row.why);
      const std::vector<int32_t> position = {0, 41, 16, 7}, sequence = {1, 0, 1, 0};
      const auto tokens = static_cast<uint32_t>(position.size());
      std::vector<int32_t> table(uint64_t{2} * max_blocks);
      for (uint32_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<int32_t>((7 * i + 3) % blocks);
      const uint64_t n_rows = uint64_t{blocks} * row.kv_heads * block_tokens;
      std::vector<uint8_t> keys, values;
      std::vector<float> one = floats(row.head_dim);
      for (uint64_t r = 0; r < n_rows; ++r) {
        one = floats(row.head_dim, 2);
        const auto k = kept(k_type, one.data(), row.head_dim);
        one = floats(row.head_dim);
        const auto v = kept(v_type, one.data(), row.head_dim);
        keys.insert(keys.end(), k.begin(), k.end());
        values.insert(values.end(), v.begin(), v.end());
      }
      const std::vector<float> q = floats(uint64_t{tokens} * row.heads * row.head_dim, 3);
      const float scale = 1 / std::sqrt(static_cast<float>(row.head_dim));
      argument h = header(tokens, 0, row.window, row.keep), in = input(q);
      argument positions = input(position), sequences = input(sequence), tables = input(table);
      argument in_keys = input(keys), in_values = input(values), y = output(q.size());
      bench_->run({kernel_id::attn_paged,
                   {this->t(), k_type, v_type, (row.head_dim + this->t() - 1) / this->t()}},
                  {&h, &in, &positions, &sequences, &tables, &in_keys, &in_values, &y},
                  gpu::attn_paged_params{0, row.heads, row.kv_heads, row.head_dim, block_tokens,
                                         max_blocks, scale, row.own_window},
                  2, 3);
      const std::vector<float> found = values_of<float>(y);
      const uint64_t k_bytes = 4 * gpu::kv_row_words(k_type, row.head_dim);
      const uint64_t v_bytes = 4 * gpu::kv_row_words(v_type, row.head_dim);
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t head = 0; head < row.heads; ++head) {
          const uint64_t at = (uint64_t{t} * row.heads + head) * row.head_dim;
          std::vector<double> score;
          std::vector<uint64_t> seen;
          double largest = -HUGE_VAL, largest_error = 0;
          for (uint32_t p = 0; p <= static_cast<uint32_t>(position[t]); ++p) {
            const bool sees = row.window == 0 ||
                              uint64_t{p} + row.window > static_cast<uint64_t>(position[t]) ||
                              p < row.keep;
            const bool sees_too = row.own_window == 0 ||
                                  uint64_t{p} + row.own_window > static_cast<uint64_t>(position[t]);
            if (!sees || !sees_too) continue;
            const auto block = static_cast<uint64_t>(
                table[static_cast<uint64_t>(sequence[t]) * max_blocks + p / block_tokens]);
            const uint64_t r =
                (block * row.kv_heads + head / (row.heads / row.kv_heads)) * block_tokens +
                p % block_tokens;
            double sum = 0, size = 0;
            for (uint32_t i = 0; i < row.head_dim; ++i) {
              const double product =
                  double{q[at + i]} * double{kept_element(k_type, &keys[r * k_bytes], i)};
              sum += product;
              size += std::fabs(product);
            }
            seen.push_back(r);
            score.push_back(sum * double{scale});
            largest = std::max(largest, score.back());
            largest_error = std::max(
                largest_error, (row.head_dim / 16.0 + 8) * double{epsilon} * size * double{scale});
          }
          double total = 0;
          for (double& p : score) total += p = std::exp(p - largest);
          for (uint32_t i = 0; i < row.head_dim; ++i) {
            double expected = 0, size = 0;
            for (uint64_t j = 0; j < seen.size(); ++j) {
              const double term =
                  score[j] / total * double{kept_element(v_type, &values[seen[j] * v_bytes], i)};
              expected += term;
              size += std::fabs(term);
            }
            // Scores are off by largest_error and so are weights, relatively; exp is off by 3 ulp,
            // a tile's sums are scaled by one more exp; then the sums, above and below.
            const double tiles = static_cast<double>(seen.size()) / this->t() + 1;
            const double relative =
                2 * largest_error +
                (2 * static_cast<double>(seen.size()) + 8 * tiles + 16) * double{epsilon};
            ASSERT_NEAR(double{found[at + i]}, expected, relative * size)
                << "token " << t << " head " << head << " element " << i << " types " << k_type
                << " " << v_type;
          }
        }
    }
}

std::vector<float> element_by_element(bench& b, uint32_t t, uint32_t op,
                                      const std::vector<float>& a, const std::vector<float>& other,
                                      uint32_t rows, float factor = 0) {
  argument h = header(rows), in = input(a), second = input(other), y = output(a.size());
  b.run({kernel_id::elementwise, {t, op}}, {&h, &in, &second, &y},
        gpu::elementwise_params{0, static_cast<uint32_t>(a.size()) / rows, factor}, 3, 2);
  return values_of<float>(y);
}

TEST_P(each_form, elementwise_ops_are_what_they_say) {
  const uint32_t rows = 3, k = 37;
  std::vector<float> a = floats(rows * k, 20);
  const std::vector<float> b = floats(rows * k);
  a[1] = -0.0f;
  a[2] = 100;  // exp overflows no further than silu allows
  a[3] = -100;
  const auto sum = element_by_element(*bench_, t(), BITNET_OP_ADD, a, b, rows);
  const auto product = element_by_element(*bench_, t(), BITNET_OP_MUL, a, b, rows);
  const auto square = element_by_element(*bench_, t(), BITNET_OP_RELU2, a, b, rows);
  const auto silu = element_by_element(*bench_, t(), BITNET_OP_SILU, a, b, rows);
  const auto gelu = element_by_element(*bench_, t(), BITNET_OP_GELU, a, b, rows);
  const auto sigmoid = element_by_element(*bench_, t(), BITNET_OP_SIGMOID, a, b, rows);
  const float factor = 50.596443f;  // no power of two
  const auto scaled = element_by_element(*bench_, t(), BITNET_OP_SCALE, a, b, rows, factor);
  for (uint32_t i = 0; i < rows * k; ++i) {
    ASSERT_EQ(sum[i], a[i] + b[i]);
    ASSERT_EQ(product[i], a[i] * b[i]);
    ASSERT_EQ(scaled[i], a[i] * factor);
    ASSERT_EQ(square[i], std::max(a[i], 0.0f) * std::max(a[i], 0.0f));
    const double expected = double{a[i]} / (1 + std::exp(-double{a[i]}));
    // exp 3 ulp, sum, quotient 2.5 ulp
    ASSERT_NEAR(double{silu[i]}, expected, 14 * double{epsilon} * std::fabs(expected) + 1e-37)
        << a[i];
    const double share = 1 / (1 + std::exp(-double{a[i]}));
    ASSERT_NEAR(double{sigmoid[i]}, share, 14 * double{epsilon} * share + 1e-37) << a[i];
    const double x{a[i]};
    const double inner = 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    const double curve = x / (1 + std::exp(-inner));
    // The argument: six roundings, of which the exponential makes as many times its size.
    const double size = (14 + 8 * std::fabs(inner)) * double{epsilon};
    ASSERT_NEAR(double{gelu[i]}, curve, size * std::fabs(curve) + 1e-37) << a[i];
  }
}

TEST_P(each_form, columns_are_what_is_asked_for) {
  const struct {
    uint32_t k, part, first, inner, inner_stride, outer, outer_stride;
  } rows[] = {{20, 5, 3, 1, 0, 1, 0},
              {24, 2, 1, 2, 6, 2, 12},
              {9, 1, 0, 3, 1, 3, 3},
              {10, 10, 0, 1, 0, 1, 0},
              {7, 2, 5, 3, 0, 1, 0}};
  for (const auto& [k, part, first, inner, inner_stride, outer, outer_stride] : rows) {
    const uint32_t tokens = 4, m = part * inner * outer;
    const std::vector<float> x = floats(uint64_t{tokens} * k);
    const int32_t ints[] = {static_cast<int32_t>(part),  static_cast<int32_t>(first),
                            static_cast<int32_t>(inner), static_cast<int32_t>(inner_stride),
                            static_cast<int32_t>(outer), static_cast<int32_t>(outer_stride)};
    argument h = header(tokens - 1), in = input(x), y = output(uint64_t{tokens} * m);
    bench_->run({kernel_id::columns, {t()}}, {&h, &in, &y},
                gpu::columns_params{0, k, m, part, first, inner, inner_stride, outer_stride}, 2, 2);
    for (uint64_t r = 0; r + 1 < tokens; ++r) {
      std::vector<float> expected(m);
      sdk::reference::columns(&x[r * k], ints, expected.data());
      const std::vector<float> all = values_of<float>(y);
      const std::vector<float> found(all.begin() + static_cast<int64_t>(r * m),
                                     all.begin() + static_cast<int64_t>((r + 1) * m));
      ASSERT_EQ(found, expected) << "row " << r << " of " << k << " columns";
    }
    EXPECT_EQ(y.words[uint64_t{tokens - 1} * m], output(1).words[0]) << "a row past the count";
  }
}

// A step of several sequences: two go on and two begin, one of these with one token.
struct sequences_of_a_step {
  std::vector<int32_t> positions = {7, 8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 0};
  std::vector<int32_t> sequences = {2, 2, 2, 2, 2, 0, 0, 0, 0, 3, 3, 1};
  std::vector<int32_t> states = {4, 0, 2, 1};  // of each sequence
  uint32_t n_states = 5;
  uint32_t tokens = 12;

  // Calls each(first token, end, state, fresh) for each sequence.
  template <class Each>
  void for_each(Each each) const {
    for (uint32_t t = 0, end = 0; t < tokens; t = end) {
      while (end < tokens && sequences[end] == sequences[t]) ++end;
      each(t, end, static_cast<uint64_t>(states[static_cast<uint64_t>(sequences[t])]),
           positions[t] == 0);
    }
  }
};

// Where a step is cut into commands: not at all, in each sequence, at every token.
const std::vector<uint32_t> cuts[] = {
    {0, 99}, {0, 3, 7, 12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};

TEST_P(each_form, short_conv_goes_on_from_the_state) {
  const sequences_of_a_step step;
  for (const uint32_t n : {2u, 4u, 7u})
    for (const uint32_t k : {5u, 37u})
      for (const auto& cut : cuts) {
        SCOPED_TRACE(std::to_string(n) + " rows of " + std::to_string(k) + ", " +
                     std::to_string(cut.size() - 1) + " commands");
        const uint32_t element = 3, words = element + (n - 1) * k + 2;
        const std::vector<float> x = floats(uint64_t{step.tokens + 1} * k);
        const std::vector<float> w = floats(uint64_t{k} * n);
        const std::vector<float> before = floats(uint64_t{step.n_states} * words);
        std::vector<float> after = before, expected(uint64_t{step.tokens} * k);
        step.for_each([&](uint32_t first, uint32_t end, uint64_t state, bool fresh) {
          float* past = &after[state * words + element];
          for (uint32_t t = first; t < end; ++t)
            sdk::reference::short_conv(&x[uint64_t{first} * k], fresh ? nullptr : past, w.data(),
                                       t - first, k, n, 0, k, &expected[uint64_t{first} * k]);
          sdk::reference::short_conv_keep(&x[uint64_t{first} * k], end - first, k, n, 0, k, fresh,
                                          past);
        });
        argument h = header(step.tokens), in = input(x), weight = input(w);
        argument positions = input(step.positions), sequences = input(step.sequences);
        argument states = input(step.states), state = input(before), y = output(x.size());
        state.written = true;
        for (uint64_t i = 0; i + 1 < cut.size(); ++i)
          bench_->run({kernel_id::short_conv, {t(), n}},
                      {&h, &in, &weight, &positions, &sequences, &states, &state, &y},
                      gpu::short_conv_params{0, k, element, words, cut[i], cut[i + 1]}, 2, 3);
        const std::vector<float> found = values_of<float>(y);
        ASSERT_EQ(std::vector(found.begin(), found.begin() + step.tokens * k), expected);
        ASSERT_EQ(values_of<float>(state), after);
        EXPECT_EQ(y.words[uint64_t{step.tokens} * k], output(1).words[0]) << "past the count";
      }
}

TEST_P(each_form, delta_gates_are_near_the_exact_ones) {
  const uint32_t rows = 3, heads = 11;
  std::vector<float> a = floats(uint64_t{rows} * heads, 6), b = floats(uint64_t{rows} * heads, 20);
  std::vector<float> w = floats(uint64_t{2} * heads, 4);
  a[0] = 80;  // softplus is its argument, and almost nothing
  a[1] = -80;
  b[0] = 100;
  b[1] = -100;
  for (uint32_t i = 0; i < heads; ++i) w[i] = -std::fabs(w[i]);
  argument h = header(rows), in = input(a), other = input(b), weight = input(w);
  argument y = output(uint64_t{2} * rows * heads);
  bench_->run({kernel_id::delta_gates, {t()}}, {&h, &in, &other, &weight, &y},
              gpu::delta_gates_params{0, heads}, 2, 2);
  const std::vector<float> found = values_of<float>(y);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t i = 0; i < heads; ++i) {
      // The sum is rounded once, which the exponent sees as it is.
      const double z = double{a[r * heads + i] + w[heads + i]};
      const double exponent =
          double{w[i]} * (std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z))));
      const double decay = std::exp(exponent), beta = 1 / (1 + std::exp(-double{b[r * heads + i]}));
      const double unit = double{epsilon};
      ASSERT_NEAR(double{found[2 * r * heads + i]}, decay,
                  (8 + 16 * std::fabs(exponent)) * unit * decay + 1e-37)
          << z << " times " << w[i];
      ASSERT_NEAR(double{found[(2 * r + 1) * heads + i]}, beta, 14 * unit * beta + 1e-37)
          << b[r * heads + i];
    }
}

TEST_P(each_division, delta_rule_goes_on_from_the_state) {
  const sequences_of_a_step step;
  const struct {
    uint32_t n_k, n_v, d_k, d_v, turns;
  } rows[] = {
      {1, 1, 8, 16, 0}, {2, 4, 20, 13, 0}, {2, 4, 20, 13, 1}, {1, 3, 1, 1, 0}, {3, 3, 64, 37, 1}};
  for (const auto& [n_k, n_v, d_k, d_v, turns] : rows)
    for (const auto& cut : cuts) {
      SCOPED_TRACE(std::to_string(n_k) + " and " + std::to_string(n_v) + " heads of " +
                   std::to_string(d_k) + " and " + std::to_string(d_v) + (turns ? ", turns" : "") +
                   ", " + std::to_string(cut.size() - 1) + " commands");
      const uint32_t width = 2 * n_k * d_k + n_v * d_v, out = n_v * d_v, element = 2;
      const uint32_t words = element + n_v * d_k * d_v + 1;
      const float scale = 1 / std::sqrt(static_cast<float>(d_k)), eps = 1e-6f;
      const std::vector<float> x = floats(uint64_t{step.tokens} * width);
      std::vector<float> gates = floats(uint64_t{step.tokens} * 2 * n_v);
      for (float& g : gates) g = std::fabs(g);
      const std::vector<float> before = floats(uint64_t{step.n_states} * words);
      std::vector<float> after = before, expected(uint64_t{step.tokens} * out);
      step.for_each([&](uint32_t first, uint32_t end, uint64_t state, bool fresh) {
        for (uint32_t head = 0; head < n_v; ++head) {
          float* held = &after[state * words + element + head * d_k * d_v];
          if (fresh) std::fill_n(held, d_k * d_v, 0.0f);
          const uint32_t key = turns ? head % n_k : head / (n_v / n_k);
          for (uint64_t t = first; t < end; ++t) {
            const float* row = &x[t * width];
            sdk::reference::delta_rule(row + key * d_k, row + (n_k + key) * d_k,
                                       row + 2 * n_k * d_k + head * d_v, gates[2 * t * n_v + head],
                                       gates[2 * t * n_v + n_v + head], scale, eps, d_k, d_v, held,
                                       &expected[t * out + head * d_v]);
          }
        }
      });
      argument h = header(step.tokens), in = input(x), g = input(gates);
      argument positions = input(step.positions), sequences = input(step.sequences);
      argument states = input(step.states), state = input(before);
      argument y = output(uint64_t{step.tokens} * out);
      state.written = true;
      const uint32_t tiles = t() == 1 ? 1 : (d_v + t() - 1) / t();
      for (uint64_t i = 0; i + 1 < cut.size(); ++i)
        bench_->run({kernel_id::delta_rule, {t(), d_k}},
                    {&h, &in, &g, &positions, &sequences, &states, &state, &y},
                    gpu::delta_rule_params{0, element, words, n_k, n_v, d_v, turns, tiles, scale,
                                           eps, cut[i], cut[i + 1]},
                    2, 3);
      // Both are in the same order; 1 / sqrt may be off by a few ulp, and what was learned from
      // five tokens has that error in it. Nothing here is larger than 4.
      const double near = 400 * double{epsilon};
      const std::vector<float> found = values_of<float>(y), kept = values_of<float>(state);
      for (uint64_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(double{found[i]}, double{expected[i]}, near) << "element " << i;
      for (uint64_t i = 0; i < after.size(); ++i)
        ASSERT_NEAR(double{kept[i]}, double{after[i]}, near) << "element " << i << " of states";
    }
}

TEST_P(each_form, gather_rows_takes_the_rows_that_are_wanted) {
  const uint32_t k = 19;
  const std::vector<float> x = floats(uint64_t{6} * k);
  const std::vector<int32_t> wanted = {5, 0, 3, 3};
  argument h = header(6, 3), rows = input(wanted), in = input(x), y = output(uint64_t{4} * k);
  bench_->run({kernel_id::gather_rows, {t()}}, {&h, &rows, &in, &y},
              gpu::gather_rows_params{gpu::rows_are_outputs, k}, 2, 4);
  const std::vector<float> found = values_of<float>(y);
  for (uint64_t o = 0; o < 3; ++o)
    for (uint64_t i = 0; i < k; ++i)
      ASSERT_EQ(found[o * k + i], x[static_cast<uint64_t>(wanted[o]) * k + i]);
  EXPECT_EQ(y.words[3 * k], output(1).words[0]) << "a row that nobody asked for";
}

TEST_P(each_division, norm_quant_has_the_bits_of_its_parts) {
  for (const uint32_t k : {5u, 130u, 640u}) {
    const uint32_t rows = 3;
    const std::vector<float> x = floats(uint64_t{rows} * k), weight = floats(k);
    const quantised_rows expected =
        quantised_by_definition(norm_of(*bench_, t(), x, weight, rows, 1e-5f), rows, k);
    argument h = header(rows), in = input(x), w = input(weight);
    argument q = output(rows * gpu::i8_row_words(k)), s = output(rows);
    bench_->run({kernel_id::norm_quant, {t()}}, {&h, &in, &w, &q, &s},
                gpu::norm_quant_params{0, k, 1e-5f}, 1, 2);
    const quantised_rows found = unpacked(q, s, rows, k);
    EXPECT_EQ(found.s, expected.s) << k;
    EXPECT_EQ(found.q, expected.q) << k;
  }
}

TEST_P(each_form, glu_quant_has_the_bits_of_its_parts) {
  for (const auto& [op, norm] : activations)
    for (const uint32_t k : {5u, 130u}) {
      const uint32_t rows = 3;
      const std::vector<float> gate = floats(uint64_t{rows} * k), up = floats(uint64_t{rows} * k);
      const std::vector<float> weight = floats(k);
      std::vector<float> mid =
          element_by_element(*bench_, t(), BITNET_OP_MUL,
                             element_by_element(*bench_, t(), op, gate, up, rows), up, rows);
      if (norm) mid = norm_of(*bench_, t(), mid, weight, rows, 1e-6f);
      const quantised_rows expected = quantised_by_definition(mid, rows, k);
      argument h = header(rows), g = input(gate), u = input(up), w = input(weight);
      argument scratch = output(uint64_t{rows} * k);
      argument q = output(rows * gpu::i8_row_words(k)), s = output(rows);
      bench_->run({kernel_id::glu_quant, {t(), op, norm}}, {&h, &g, &u, &w, &scratch, &q, &s},
                  gpu::glu_quant_params{0, k, 1e-6f}, 1, 2);
      const quantised_rows found = unpacked(q, s, rows, k);
      EXPECT_EQ(found.s, expected.s) << "op " << op << " norm " << norm << " k " << k;
      EXPECT_EQ(found.q, expected.q) << "op " << op << " norm " << norm << " k " << k;
    }
}

TEST_P(each_division, bit_linear_has_the_bits_of_its_parts) {
  const sdk::format& f = *sdk::find_format(BITNET_FORMAT_TERNARY2);
  for (const auto& [norm, k, m, add] : {std::tuple{0u, 5u, 3u, 0u}, {1u, 200u, 13u, 1u}}) {
    const uint32_t rows = 2, first_row = 2, whole_m = m + 3;
    const std::vector<float> x = floats(uint64_t{rows} * k), weight = floats(k);
    const std::vector<float> residual = floats(uint64_t{rows} * whole_m), scale = floats(1);
    const std::vector<uint8_t> data = matrix(f, k, m);
    const auto row_words = static_cast<uint32_t>(sdk::row_bytes(f, k) / 4);
    const auto stride = static_cast<uint32_t>(gpu::i8_row_words(k));
    const std::vector<float> mid = norm ? norm_of(*bench_, t(), x, weight, rows, 1e-5f) : x;
    argument h = header(rows), in = input(x), w = input(weight), mat = input(data);
    argument sc = input(scale), r = input(residual), z = input(mid);
    argument q = output(uint64_t{rows} * stride), s = output(rows);
    bench_->run({kernel_id::act_quant, {t()}}, {&h, &z, &q, &s}, gpu::act_quant_params{0, k}, 1, 2);
    q.written = s.written = false;
    for (const auto& [shared, together, deep] : ternary_forms) {
      if (shared > t()) continue;
      argument expected = output(uint64_t{rows} * whole_m), found = expected;
      bench_->run({kernel_id::linear_ternary, {t(), shared, together, deep}},
                  {&h, &q, &s, &mat, &sc, &r, &expected},
                  gpu::linear_ternary_params{0, k, whole_m, row_words, first_row, m, 0, add}, 3, 2);
      bench_->run({kernel_id::bit_linear, {t(), shared, norm, deep, stride}},
                  {&h, &in, &w, &mat, &sc, &r, &found},
                  gpu::bit_linear_params{0, k, whole_m, row_words, first_row, m, add, 1e-5f}, 3, 2);
      EXPECT_EQ(found.words, expected.words)
          << "norm " << norm << " k " << k << " " << shared << " threads, " << deep << " rows";
    }
  }
}

using parameters = std::tuple<form, uint32_t>;
std::string name_of(const testing::TestParamInfo<parameters>& i) {
  const auto& [f, size] = i.param;
  const char* kind = f == form::modest        ? "modest_"
                     : f == form::dot_product ? "dot_product_"
                                              : "reported_";
  return kind + std::to_string(size);
}
INSTANTIATE_TEST_SUITE_P(opencl, each_form,
                         testing::Combine(testing::Values(form::as_reported),
                                          testing::ValuesIn(group_sizes)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(opencl, each_division,
                         testing::Values(parameters{form::as_reported, 1},
                                         parameters{form::as_reported, 8},
                                         parameters{form::modest, 8},
                                         parameters{form::dot_product, 8}),
                         name_of);

}  // namespace
}  // namespace bitnet::opencl::test
