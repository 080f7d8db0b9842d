// Each kernel against its definition in bitnet/abi/ops.h, computed slowly here: integers and what
// is only moved or rounded once bit for bit, sums within the error that their order allows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <span>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/program.h"
#include "bitnet/sdk/reference/recurrent.hpp"
#include "bitnet/sdk/reference/rows.hpp"
#include "each_form.hpp"

namespace bitnet::opencl::test {
namespace {

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

struct ternary_row {
  const char* why;
  uint32_t k, m, tokens, scale_group, given;
  bool extreme, add;
};

// A product's numbers, of a matrix of which a binding has only some rows.
struct ternary_product {
  static constexpr uint32_t first_row = 2;
  uint32_t whole_m;
  uint64_t stride, factors;  // of a token, in q and in s
  std::vector<uint8_t> data, part;
  std::vector<int8_t> q;
  std::vector<float> s, scale, residual;

  // Element (t, m) of the result, or nothing where it is not the kernel's to write.
  std::optional<float> expected(const ternary_row& row, uint32_t t, uint32_t m) const {
    if (t == row.tokens || m < first_row || m >= first_row + row.m) return std::nullopt;
    const uint64_t of_row = row.scale_group == 0 ? 0 : row.k / row.scale_group;
    const uint64_t row_bytes = data.size() / whole_m;
    const float y = linear_row(&data[m * row_bytes], &q[t * stride], &s[t * factors],
                               &scale[m * of_row], row.k, row.scale_group, row.given);
    return row.add ? y + residual[uint64_t{t} * whole_m + m] : y;
  }
};

class each_ternary_product : public each_division {
 protected:
  ternary_product product(const ternary_row& row) {
    const sdk::format& f = *sdk::find_format(BITNET_FORMAT_TERNARY2);
    ternary_product p;
    p.whole_m = row.m + 3;
    p.data = matrix(f, row.k, p.whole_m);
    if (row.extreme)
      for (uint64_t i = 0; i < p.data.size(); ++i)
        p.data[i] = i % 2 ? 0xaa : 0x00;  // all 1, all -1
    const uint64_t bytes = sdk::row_bytes(f, row.k);
    p.part.assign(p.data.begin() + static_cast<int64_t>(p.first_row * bytes),
                  p.data.begin() + static_cast<int64_t>((p.first_row + row.m) * bytes));
    p.stride = 4 * gpu::i8_row_words(row.k);
    p.q.resize(row.tokens * p.stride);
    for (uint32_t t = 0; t < row.tokens; ++t)
      for (uint32_t i = 0; i < row.k; ++i)
        p.q[t * p.stride + i] = static_cast<int8_t>(
            row.extreme ? (i % 32 % 2 ? -128 : 127) : static_cast<int>(random_() % 256) - 128);
    p.factors = row.given == 0 ? 1 : row.k / row.given;
    p.s.resize(row.tokens * p.factors);
    p.residual = floats(uint64_t{row.tokens} * p.whole_m, 50);
    for (float& v : p.s) v = uniform(1, 2000);
    p.scale = floats(row.scale_group == 0 ? 1 : uint64_t{p.whole_m} * row.k / row.scale_group);
    return p;
  }
};

TEST_P(each_ternary_product, linear_ternary_is_exact) {
  const ternary_row rows[] = {
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
  for (const ternary_row& row : rows) {
    SCOPED_TRACE(row.why);
    const ternary_product of = product(row);
    for (const auto& [shared, together, deep] : ternary_forms) {
      if (shared > t() || (shared > 1 && (row.scale_group != 0 || row.given != 0))) continue;
      argument h = header(row.tokens), qs = input(of.q), ss = input(of.s), w = input(of.part);
      argument scales = input(of.scale), r = input(of.residual);
      argument y = output(uint64_t{row.tokens + 1} * of.whole_m);
      const gpu::linear_ternary_params p{0,
                                         row.k,
                                         of.whole_m,
                                         static_cast<uint32_t>(of.data.size() / of.whole_m / 4),
                                         of.first_row,
                                         row.m,
                                         row.scale_group,
                                         row.add ? 1u : 0u};
      bench_->run({kernel_id::linear_ternary, {t(), shared, together, deep, row.given}},
                  {&h, &qs, &ss, &w, &scales, &r, &y}, p, 3, 2);
      const std::vector<float> found = values_of<float>(y);
      const argument untouched = output(1);
      for (uint32_t t = 0; t <= row.tokens; ++t)
        for (uint32_t m = 0; m < of.whole_m; ++m) {
          const uint64_t at = uint64_t{t} * of.whole_m + m;
          const std::optional<float> expected = of.expected(row, t, m);
          if (expected)
            ASSERT_EQ(found[at], *expected)
                << "token " << t << " row " << m << ", " << shared << " threads, " << together
                << " tokens, " << deep << " rows";
          else
            ASSERT_EQ(y.words[at], untouched.words[0]) << "element " << at << " is not ours";
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
  EXPECT_EQ(y.words[3 * k], output(1).words[0]) << "a row that was not requested";
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

INSTANTIATE_TEST_SUITE_P(opencl, each_form,
                         testing::Combine(testing::Values(form::as_reported),
                                          testing::ValuesIn(group_sizes)),
                         name_of);
const auto divisions =
    testing::Values(parameters{form::as_reported, 1}, parameters{form::as_reported, 8},
                    parameters{form::modest, 8}, parameters{form::dot_product, 8});
INSTANTIATE_TEST_SUITE_P(opencl, each_division, divisions, name_of);
INSTANTIATE_TEST_SUITE_P(opencl, each_ternary_product, divisions, name_of);

}  // namespace
}  // namespace bitnet::opencl::test
