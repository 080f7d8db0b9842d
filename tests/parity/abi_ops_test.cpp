// Each op, format and odd shape through the exported symbol of a plugin, against plain arithmetic
// here: x comes in as rows of an f32 embedding, what the op makes of it goes out as logits.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "bitnet/sdk/formats.hpp"
#include "model/formats.hpp"
#include "runner.hpp"
#include "targets.hpp"

namespace bitnet::parity {
namespace {

constexpr double ulp = 0x1p-23;  // of f32, relative

using row = std::vector<float>;
using rows = std::vector<row>;

// A graph of an f32 embedding with the rows x, some ops, and the rows of their result.
class by_ops : public model {
 public:
  by_ops(const rows& x, const tiny_shape& shape) : n_(x.size()) {
    kv_layers = static_cast<uint32_t>(shape.layers);
    kv_heads = static_cast<uint32_t>(shape.kv_heads);
    head_dim = static_cast<uint32_t>(shape.head_dim);
    const auto k = static_cast<int64_t>(x[0].size());
    std::vector<uint8_t> data;
    for (const row& r : x) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(r.data());
      data.insert(data.end(), bytes, bytes + 4 * r.size());
    }
    x_ = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
    op(BITNET_OP_EMBED_GATHER, {}, {x_}, {matrix(BITNET_FORMAT_F32, k, data)});
  }

  uint32_t x() const { return x_; }
  uint64_t n() const { return n_; }

  uint32_t matrix(uint32_t format, int64_t k, std::vector<uint8_t> data,
                  std::vector<float> scales = {}, uint64_t group = 0) {
    const auto m = static_cast<int64_t>(
        data.size() / sdk::row_bytes(*sdk::find_format(format), static_cast<uint64_t>(k)));
    const uint32_t index = tensor(format, k, m, std::move(data), std::move(scales), group);
    tensors[index].desc.rank = 2;  // of one row, too
    return index;
  }
  uint32_t vector(const row& w) { return matrix_f32(static_cast<int64_t>(w.size()), 1, w); }
  // An op with one f32 result of this width; nothing written if it is 0.
  uint32_t then(uint32_t id, const indices& in, int64_t width, const indices& weights = {},
                const std::vector<int32_t>& ints = {}, const std::vector<float>& floats = {}) {
    indices out;
    if (width != 0) out.push_back(value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width));
    bitnet_op& o = op(id, in, out, weights);
    std::copy(ints.begin(), ints.end(), o.ints);
    std::copy(floats.begin(), floats.end(), o.floats);
    return out.empty() ? 0 : out[0];
  }
  uint32_t ternary(uint32_t from, int64_t m, uint32_t weight) {
    const uint32_t q = value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, values[from].dims[1]);
    const uint32_t s = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
    op(BITNET_OP_ACT_QUANT_I8, {from}, {q, s});
    return then(BITNET_OP_LINEAR_TERNARY, {q, s}, m, {weight});
  }
  // The result: from here on nothing is added.
  const by_ops& give(uint32_t from) {
    logits = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, values[from].dims[1]);
    op(BITNET_OP_GATHER_ROWS, {from}, {logits});
    return *this;
  }

 private:
  uint32_t x_ = 0;
  uint64_t n_;
};

class each_op : public testing::TestWithParam<target> {
 protected:
  void SetUp() override {
    uint32_t n = 0;
    const outcome o = attempt(
        [&](bitnet_error* e) { return backend_.table.device_count(backend_.table.self, &n, e); });
    if (o.status == BITNET_UNAVAILABLE) GTEST_SKIP() << o.message;
    ASSERT_EQ(o.status, BITNET_OK) << o.message;
  }

  static runner_options room_for(uint64_t tokens) {
    runner_options o;
    o.max_tokens = o.max_outputs = static_cast<uint32_t>(tokens);
    o.max_blocks = static_cast<uint32_t>(tokens / o.block_tokens + 1);
    o.max_sequences = 1;
    o.n_blocks = o.max_blocks + 5;
    while (o.n_blocks % 7 == 0) ++o.n_blocks;  // so that the scattered blocks differ
    return o;
  }
  static std::vector<token_in> all_rows(uint64_t n) {
    std::vector<token_in> in;
    for (uint64_t i = 0; i < n; ++i) in.push_back({static_cast<int32_t>(i)});
    return in;
  }
  // Row after row; all of them in one step.
  std::vector<float> run(const by_ops& m) {
    runner r(backend_.table, m, room_for(m.n()));
    return r.run(all_rows(m.n()));
  }

  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(random_() % (1u << 24)) / 16777216.0f;
  }
  rows random_rows(uint64_t n, uint64_t k, float size = 1) {
    rows out(n, row(k));
    for (row& r : out)
      for (float& v : r) v = uniform(-size, size);
    return out;
  }
  std::vector<int8_t> random_trits(uint64_t n) {
    std::vector<int8_t> out(n);
    for (int8_t& t : out) t = static_cast<int8_t>(static_cast<int>(random_() % 3) - 1);
    return out;
  }

  std::mt19937 random_{7};
  tiny_host host_{2};
  plugin backend_{GetParam().path, host_};
};

// Integers up to 127 are their own quantised form, with s = 1; all products and sums are whole.
rows whole_rows(std::mt19937& random, uint64_t n, uint64_t k) {
  rows out(n, row(k));
  for (uint64_t r = 0; r < n; ++r) {
    for (float& v : out[r]) v = static_cast<float>(static_cast<int>(random() % 255) - 127);
    if (r == 0) std::fill(out[r].begin(), out[r].end(), 127.0f);   // the largest sums
    if (r == 1) std::fill(out[r].begin(), out[r].end(), -127.0f);  // and the smallest
    out[r][random() % k] = random() % 2 ? 127.0f : -127.0f;
  }
  return out;
}

TEST_P(each_op, ternary_sums_are_exact) {
  const struct {
    const char* why;
    uint64_t n, k, m;
  } shapes[] = {
      {"one weight", 1, 1, 1},
      {"less than a word of each", 3, 3, 3},
      {"an element less than a group", 2, 127, 5},
      {"one group, more rows than a work group has", 5, 128, 300},
      {"an element more than a group", 4, 129, 33},
      {"rows and tokens that fill no tile", 7, 200, 7},
      {"long rows, where 16-bit halves would overflow", 3, 2560, 17},
      {"a row of BitNet b1.58 2B's widest", 2, 6912, 9},
  };
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.why);
    const rows x = whole_rows(random_, shape.n, shape.k);
    std::vector<int8_t> t = random_trits(shape.k * shape.m);
    std::fill_n(t.begin(), shape.k, int8_t{1});
    if (shape.m > 1) std::fill_n(t.begin() + static_cast<int64_t>(shape.k), shape.k, int8_t{-1});
    by_ops m(x, {});
    const uint32_t w = m.matrix(BITNET_FORMAT_TERNARY2, static_cast<int64_t>(shape.k),
                                pack_ternary(t, shape.k, shape.m), {1.0f});
    const std::vector<float> y = run(m.give(m.ternary(m.x(), static_cast<int64_t>(shape.m), w)));
    for (uint64_t r = 0; r < shape.n; ++r) {
      for (uint64_t o = 0; o < shape.m; ++o) {
        int64_t sum = 0;
        for (uint64_t i = 0; i < shape.k; ++i)
          sum += int64_t{t[o * shape.k + i]} * static_cast<int64_t>(x[r][i]);
        ASSERT_EQ(y[r * shape.m + o], static_cast<float>(sum)) << "row " << r << ", output " << o;
      }
    }
  }
}

TEST_P(each_op, scale_groups_are_exact_where_scales_are_powers_of_two) {
  const struct {
    uint64_t k, m, group;
  } shapes[] = {{256, 5, 256}, {384, 9, 128}, {192, 66, 64},
                {96, 7, 32},   {64, 3, 4},    {200, 2, 200}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.group);
    const rows x = whole_rows(random_, 5, shape.k);
    const std::vector<int8_t> t = random_trits(shape.k * shape.m);
    const uint64_t groups = shape.k / shape.group;
    std::vector<float> scales(groups * shape.m);
    for (float& s : scales) s = std::ldexp(1.0f, static_cast<int>(random_() % 5) - 2);
    by_ops m(x, {});
    const uint32_t w = m.matrix(BITNET_FORMAT_TERNARY2, static_cast<int64_t>(shape.k),
                                pack_ternary(t, shape.k, shape.m), scales, shape.group);
    const std::vector<float> y = run(m.give(m.ternary(m.x(), static_cast<int64_t>(shape.m), w)));
    for (uint64_t r = 0; r < x.size(); ++r) {
      for (uint64_t o = 0; o < shape.m; ++o) {
        float sum = 0;
        for (uint64_t i = 0; i < shape.k; ++i)
          sum += static_cast<float>(t[o * shape.k + i]) * x[r][i] *
                 scales[o * groups + i / shape.group];
        ASSERT_EQ(y[r * shape.m + o], sum) << "row " << r << ", output " << o;
      }
    }
  }
}

TEST_P(each_op, activations_are_quantised_as_the_definition_says) {
  constexpr uint64_t k = 128;
  rows x = random_rows(40, k, 3);
  for (uint64_t r = 20; r < x.size(); ++r) {  // products with the scale that lie at a half
    const float largest = uniform(0.5f, 4.0f), s = 127.0f / largest;
    for (uint64_t i = 0; i < k; ++i)
      x[r][i] = (static_cast<float>(static_cast<int>(random_() % 253)) - 126.5f) / s;
    x[r][5] = -largest;
  }
  x.push_back(row(k, 0.0f));
  x.push_back(row(k, 1e-7f));  // below the floor of 1e-5
  x.push_back(row(k, 1e30f));
  x.back()[3] = 3e38f;
  x.push_back(row(k, 0.5f));
  x.back()[0] = 127.0f;  // 0.5 goes to 0
  x.back()[1] = 1.5f;    // and 1.5 to 2
  std::vector<int8_t> unit(k * k);
  for (uint64_t i = 0; i < k; ++i) unit[i * k + i] = 1;
  by_ops m(x, {});
  const uint32_t w = m.matrix(BITNET_FORMAT_TERNARY2, k, pack_ternary(unit, k, k), {1.0f});
  const std::vector<float> y = run(m.give(m.ternary(m.x(), k, w)));
  for (uint64_t r = 0; r < x.size(); ++r) {
    float a = 0;
    for (const float v : x[r]) a = std::max(a, std::fabs(v));
    const float s = 127.0f / std::max(a, 1e-5f);
    for (uint64_t i = 0; i < k; ++i) {
      const float q = std::clamp(std::nearbyint(x[r][i] * s), -128.0f, 127.0f);
      const double expected = double{q} / double{s};  // division within 2.5 ulp
      ASSERT_NEAR(y[r * k + i], expected, 3 * ulp * std::fabs(expected))
          << "row " << r << ", element " << i << ": " << x[r][i] * s;
    }
  }
}

TEST_P(each_op, rms_norm_alone_and_before_quantisation) {
  for (const uint64_t k : {1u, 3u, 100u, 128u, 2560u}) {
    SCOPED_TRACE(k);
    rows x = random_rows(4, k, 2);
    x[1].assign(k, 1e-4f);
    for (uint64_t i = 0; i < k; i += 7) x[2][i] *= 1000;
    const row w = random_rows(1, k)[0];
    by_ops alone(x, {});
    const uint32_t weight = alone.vector(w);
    const auto width = static_cast<int64_t>(k);
    const std::vector<float> y =
        run(alone.give(alone.then(BITNET_OP_RMS_NORM, {alone.x()}, width, {weight}, {}, {1e-5f})));
    for (uint64_t r = 0; r < x.size(); ++r) {
      double sum = 0;
      for (const float v : x[r]) sum += double{v} * double{v};
      const double factor = 1 / std::sqrt(sum / static_cast<double>(k) + 1e-5);
      // Roundings of mean, eps, sqrt (2.5 ulp), quotient (2.5 ulp) and two products.
      for (uint64_t i = 0; i < k; ++i) {
        const double expected = double{x[r][i]} * factor * double{w[i]};
        ASSERT_NEAR(y[r * k + i], expected, 8 * ulp * std::fabs(expected) + 1e-37) << r << " " << i;
      }
    }
    // Quantised at once or through memory: the same integers. Reading the normed value as well
    // keeps a backend from fusing.
    if (k > 200) continue;
    std::vector<int8_t> unit(k * k);
    for (uint64_t i = 0; i < k; ++i) unit[i * k + i] = 1;
    std::vector<float> both[2];
    for (const bool apart : {false, true}) {
      by_ops m(x, {});
      const uint32_t v = m.vector(w),
                     id = m.matrix(BITNET_FORMAT_TERNARY2, width, pack_ternary(unit, k, k), {1.0f});
      const uint32_t normed = m.then(BITNET_OP_RMS_NORM, {m.x()}, width, {v}, {}, {1e-5f});
      if (apart) m.then(BITNET_OP_RELU2, {normed}, width);
      both[apart] = run(m.give(m.ternary(normed, width, id)));
    }
    EXPECT_EQ(both[0], both[1]);
  }
}

TEST_P(each_op, element_by_element) {
  constexpr uint64_t k = 77;
  rows x = random_rows(3, k, 4);
  const float edges[] = {0.0f, -0.0f, 1.0f, -1.0f, 100.0f, -100.0f, 20.0f, -20.0f};
  std::copy(std::begin(edges), std::end(edges), x[1].begin());
  const auto result = [&](auto build) {
    by_ops m(x, {});
    return run(m.give(build(m)));
  };
  const auto relu2 = result([](by_ops& m) { return m.then(BITNET_OP_RELU2, {m.x()}, k); });
  const auto silu = result([](by_ops& m) { return m.then(BITNET_OP_SILU, {m.x()}, k); });
  const auto sum = result([](by_ops& m) {
    return m.then(BITNET_OP_ADD, {m.x(), m.then(BITNET_OP_RELU2, {m.x()}, k)}, k);
  });
  const auto product = result([](by_ops& m) {
    return m.then(BITNET_OP_MUL, {m.x(), m.then(BITNET_OP_RELU2, {m.x()}, k)}, k);
  });
  for (uint64_t i = 0; i < 3 * k; ++i) {
    const float v = x[i / k][i % k], positive = v > 0 ? v : 0;
    EXPECT_EQ(relu2[i], positive * positive);
    EXPECT_EQ(sum[i], v + positive * positive);
    EXPECT_EQ(product[i], v * (positive * positive));
    const double expected = double{v} / (1 + std::exp(-double{v}));
    // exp within 2 ulp, a sum, a quotient within 2.5.
    EXPECT_NEAR(silu[i], expected, 6 * ulp * std::fabs(expected) + 1e-37) << v;
  }
}

// The gate of an FFN, fused or through memory: the same integers.
TEST_P(each_op, gated_activations_quantise_the_same_when_fused) {
  constexpr uint64_t k = 130;
  const rows x = random_rows(6, k, 2);
  const row w = random_rows(1, k)[0];
  std::vector<int8_t> unit(k * k);
  for (uint64_t i = 0; i < k; ++i) unit[i * k + i] = 1;
  for (const uint32_t activation : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU}) {
    for (const bool norm : {false, true}) {
      std::vector<float> both[2];
      for (const bool apart : {false, true}) {
        by_ops m(x, {});
        const uint32_t id = m.matrix(BITNET_FORMAT_TERNARY2, k, pack_ternary(unit, k, k), {1.0f});
        const uint32_t active = m.then(activation, {m.x()}, k);
        uint32_t y = m.then(BITNET_OP_MUL, {m.x(), active}, k);
        if (apart) m.then(BITNET_OP_RELU2, {y}, k);
        if (norm) y = m.then(BITNET_OP_RMS_NORM, {y}, k, {m.vector(w)}, {}, {1e-5f});
        if (apart) m.then(BITNET_OP_RELU2, {y}, k);
        both[apart] = run(m.give(m.ternary(y, k, id)));
      }
      EXPECT_EQ(both[0], both[1]) << activation << " " << norm;
    }
  }
}

// Random rows of a format, without infinities.
std::vector<uint8_t> random_matrix(std::mt19937& random, uint32_t format, uint64_t k, uint64_t m) {
  const sdk::format& f = *sdk::find_format(format);
  std::vector<uint8_t> data(sdk::row_bytes(f, k) * m);
  for (uint8_t& b : data) b = static_cast<uint8_t>(random());
  for (uint64_t at = 0; at < data.size(); at += f.block_bytes) {
    const float v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 1e-4f;
    const uint16_t h = sdk::f32_to_f16(v);
    if (format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_BF16) {
      uint32_t bits = std::bit_cast<uint32_t>(v);
      if (format == BITNET_FORMAT_BF16) bits >>= 16;
      std::memcpy(&data[at], &bits, f.block_bytes);
    } else {
      for (const uint32_t place : conformance::format_of(format).halves)
        std::memcpy(&data[at + place], &h, 2);
    }
  }
  return data;
}

std::vector<uint32_t> dense_formats() {
  std::vector<uint32_t> out;
  for (const conformance::format& f : conformance::all_formats())
    if (f.id != BITNET_FORMAT_TERNARY2) out.push_back(f.id);
  return out;
}

TEST_P(each_op, dense_products_of_every_format) {
  for (const uint32_t format : dense_formats()) {
    const uint64_t block = sdk::find_format(format)->block;
    for (const uint64_t blocks : {uint64_t{1}, uint64_t{3}, 257 / block + 1}) {
      const uint64_t k = blocks * block, m = blocks == 1 ? 70 : 9;
      SCOPED_TRACE(std::string(sdk::find_format(format)->name) + " " + std::to_string(k));
      const rows x = random_rows(6, k);
      const std::vector<uint8_t> data = random_matrix(random_, format, k, m);
      by_ops g(x, {});
      const uint32_t w = g.matrix(format, static_cast<int64_t>(k), data);
      const std::vector<float> y =
          run(g.give(g.then(BITNET_OP_LINEAR_DENSE, {g.x()}, static_cast<int64_t>(m), {w})));
      row decoded(k);
      for (uint64_t o = 0; o < m; ++o) {
        sdk::decode(format, data.data() + o * (data.size() / m), 0, k, decoded.data());
        for (uint64_t r = 0; r < x.size(); ++r) {
          double sum = 0, size = 0;
          for (uint64_t i = 0; i < k; ++i) {
            sum += double{decoded[i]} * double{x[r][i]};
            size += std::fabs(double{decoded[i]} * double{x[r][i]});
          }
          // At most k roundings of half an ulp in any order of the sum.
          ASSERT_NEAR(y[r * m + o], sum, static_cast<double>(k) * ulp / 2 * size + 1e-37)
              << "row " << r << ", output " << o;
        }
      }
    }
  }
}

// 160 MB: many devices show a kernel 128 MiB of a buffer.
TEST_P(each_op, matrices_that_no_kernel_sees_at_once) {
  constexpr uint64_t k = 2048, m = 20000;
  rows x = random_rows(2, k);
  std::vector<uint8_t> data(4 * k * m);
  const uint64_t filled[] = {0, 1, 9999, 16382, 16383, 16384, 16385, m - 1};
  for (const uint64_t o : filled) {
    const std::vector<uint8_t> some = random_matrix(random_, BITNET_FORMAT_F32, k, 1);
    std::copy(some.begin(), some.end(), data.begin() + static_cast<int64_t>(4 * k * o));
  }
  by_ops product(x, {});
  const uint32_t w = product.matrix(BITNET_FORMAT_F32, k, data);
  const std::vector<float> y =
      run(product.give(product.then(BITNET_OP_LINEAR_DENSE, {product.x()}, m, {w})));
  row weights(k);
  for (uint64_t o = 0, at = 0; o < m; ++o) {
    const bool is_filled = at < std::size(filled) && filled[at] == o;
    at += is_filled ? 1 : 0;
    for (uint64_t r = 0; r < 2; ++r) {
      double sum = 0, size = 0;
      if (is_filled) std::memcpy(weights.data(), &data[4 * k * o], 4 * k);
      for (uint64_t i = 0; is_filled && i < k; ++i) {
        sum += double{weights[i]} * double{x[r][i]};
        size += std::fabs(double{weights[i]} * double{x[r][i]});
      }
      ASSERT_NEAR(y[r * m + o], sum, static_cast<double>(k) * ulp / 2 * size) << o;
    }
  }
}

TEST_P(each_op, embeddings_that_no_kernel_sees_at_once) {
  constexpr uint64_t k = 2048, m = 17000;
  rows table(m, row(k));
  for (uint64_t r = 0; r < m; ++r) table[r][r % k] = static_cast<float>(r + 1);
  by_ops g(table, {});
  const uint32_t x = g.x();
  g.give(x);
  runner r(backend_.table, g, room_for(5));
  const int32_t tokens[] = {16384, 0, 16383, m - 1, 9000};
  const std::vector<float> y =
      r.run({{tokens[0]}, {tokens[1]}, {tokens[2]}, {tokens[3]}, {tokens[4]}});
  for (uint64_t t = 0; t < 5; ++t)
    EXPECT_TRUE(std::equal(y.begin() + static_cast<int64_t>(t * k),
                           y.begin() + static_cast<int64_t>((t + 1) * k),
                           table[static_cast<uint64_t>(tokens[t])].begin()))
        << tokens[t];
}

TEST_P(each_op, embeddings_of_every_format_are_exact) {
  for (const uint32_t format : dense_formats()) {
    SCOPED_TRACE(sdk::find_format(format)->name);
    const uint64_t block = sdk::find_format(format)->block, m = 13;
    const uint64_t k = block == 1 ? 67 : 2 * block;
    const std::vector<uint8_t> data = random_matrix(random_, format, k, m);
    by_ops g(rows(m, row(k)), {});
    const uint32_t w = g.matrix(format, static_cast<int64_t>(k), data);
    const std::vector<float> y =
        run(g.give(g.then(BITNET_OP_EMBED_GATHER, {}, static_cast<int64_t>(k), {w})));
    row expected(k);
    for (uint64_t r = 0; r < m; ++r) {
      sdk::decode(format, data.data() + r * (data.size() / m), 0, k, expected.data());
      for (uint64_t i = 0; i < k; ++i) ASSERT_EQ(y[r * k + i], expected[i]) << r << " " << i;
    }
  }
  for (const uint64_t group : {0u, 40u}) {
    constexpr uint64_t k = 200, m = 6;
    const std::vector<int8_t> t = random_trits(k * m);
    std::vector<float> scales(group ? k * m / group : 1);
    for (float& s : scales) s = uniform(0.1f, 2.0f);
    by_ops g(rows(m, row(k)), {});
    const uint32_t w = g.matrix(BITNET_FORMAT_TERNARY2, k, pack_ternary(t, k, m), scales, group);
    const std::vector<float> y = run(g.give(g.then(BITNET_OP_EMBED_GATHER, {}, k, {w})));
    for (uint64_t i = 0; i < k * m; ++i)
      ASSERT_EQ(y[i], static_cast<float>(t[i]) * scales[group ? i / group : 0]) << i;
  }
}

TEST_P(each_op, rope_at_far_positions) {
  constexpr int32_t heads = 3, head_dim = 24, turned = 16;
  const rows x = random_rows(5, heads * head_dim);
  const int32_t positions[] = {0, 1, 77, 8191, 120000};
  for (const bool factors : {false, true}) {
    for (const int32_t mode : {BITNET_ROPE_NEOX, BITNET_ROPE_INTERLEAVED}) {
      by_ops m(x, {});
      row divisors(turned / 2);
      for (float& d : divisors) d = uniform(1.0f, 4.0f);
      std::vector<uint32_t> weights;
      weights.push_back(factors ? m.vector(divisors) : BITNET_NONE);
      m.give(m.then(BITNET_OP_ROPE, {m.x()}, heads * head_dim, weights,
                    {heads, head_dim, turned, mode}, {500000.0f, 0.5f}));
      runner_options o = room_for(5);
      o.block_tokens = 64;
      o.max_blocks = 2000;
      runner r(backend_.table, m, o);
      const bitnet_step step = r.prepare(all_rows(5));
      std::copy(std::begin(positions), std::end(positions), r.positions);
      ASSERT_EQ(r.submit(step).status, BITNET_OK);
      for (int32_t t = 0; t < 5; ++t) {
        for (int32_t i = 0; i < heads * head_dim; ++i) {
          const int32_t in_head = i % head_dim, head = i - in_head;
          const auto& from = x[static_cast<uint64_t>(t)];
          float expected = from[static_cast<uint64_t>(i)];
          if (in_head < turned) {
            const bool neox = mode == BITNET_ROPE_NEOX;
            const int32_t pair = neox ? in_head % (turned / 2) : in_head / 2;
            const bool second = neox ? in_head >= turned / 2 : in_head % 2 == 1;
            double f = 0.5 * std::pow(500000.0, -2.0 * pair / turned);
            if (factors) f /= double{divisors[static_cast<uint64_t>(pair)]};
            const auto c = static_cast<float>(std::cos(positions[t] * f));
            const auto s = static_cast<float>(std::sin(positions[t] * f));
            const auto at = static_cast<uint64_t>(head + (neox ? pair : 2 * pair));
            const float a = from[at], b = from[at + (neox ? turned / 2 : 1)];
            expected = second ? a * s + b * c : a * c - b * s;
          }
          ASSERT_EQ(r.logits[t * heads * head_dim + i], expected) << t << " " << i;
        }
      }
    }
  }
}

std::vector<uint8_t> kv_row(const float* x, uint64_t n, uint32_t dtype) {
  std::vector<uint8_t> out;
  const auto put = [&](const void* data, uint64_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    out.insert(out.end(), from, from + bytes);
  };
  if (dtype == BITNET_DTYPE_F32) put(x, 4 * n);
  if (dtype == BITNET_DTYPE_F16) {
    for (uint64_t i = 0; i < n; ++i) {
      const uint16_t h = sdk::f32_to_f16(x[i]);
      put(&h, 2);
    }
  }
  if (dtype == BITNET_DTYPE_Q8_0) {
    for (uint64_t first = 0; first < n; first += 32) {
      float most = 0;
      for (uint64_t i = first; i < first + 32; ++i) most = std::max(most, std::fabs(x[i]));
      const uint16_t d = sdk::f32_to_f16(std::min(most / 127.0f, 65504.0f));
      put(&d, 2);
      const float unit = sdk::f16_to_f32(d);
      for (uint64_t i = first; i < first + 32; ++i) {
        const float q =
            unit == 0 ? 0 : std::clamp(std::nearbyint(x[i] * (1 / unit)), -127.0f, 127.0f);
        const auto code = static_cast<int8_t>(q);
        put(&code, 1);
      }
    }
  }
  for (uint64_t first = 0; dtype == BITNET_DTYPE_Q4_0 && first < n; first += 32) {
    float e = 0;
    for (uint64_t i = first; i < first + 32; ++i)
      if (std::fabs(x[i]) > std::fabs(e)) e = x[i];
    const float s = std::clamp(e / -8.0f, -65504.0f, 65504.0f);
    const uint16_t d = sdk::f32_to_f16(s);
    put(&d, 2);
    const auto code = [&](float v) {
      const float units = sdk::f16_to_f32(d) == 0 ? 0 : v * (1 / s);
      return static_cast<uint8_t>(std::clamp(units + 8.5f, 0.0f, 15.0f));
    };
    for (uint64_t i = first; i < first + 16; ++i) {
      const auto pair = static_cast<uint8_t>(code(x[i]) | code(x[i + 16]) << 4);
      put(&pair, 1);
    }
  }
  return out;
}

// Blocks of halves between codes of 4 bits; of two that are largest, the first of which has the
// sign; of a factor that rounds to 0 where that of the double does not.
void put_edges_of_codes(row& x) {
  const std::vector<float> blocks[] = {{-8, 0.5f, 1.5f, -0.5f, -1.5f, 6.5f, 7.5f, 8},
                                       {1, -3, 3, 2.0625f},
                                       {-2.3e-7f, 1e-7f, 2.3e-7f}};
  std::fill_n(x.begin(), 96, 0.0f);
  for (uint64_t i = 0; i < 3; ++i) std::copy(blocks[i].begin(), blocks[i].end(), &x[32 * i]);
}

TEST_P(each_op, keys_and_values_are_stored_bit_for_bit) {
  constexpr uint32_t dtypes[] = {BITNET_DTYPE_F32, BITNET_DTYPE_F16, BITNET_DTYPE_Q8_0,
                                 BITNET_DTYPE_Q4_0};
  for (const uint32_t dtype_k : dtypes) {
    for (const uint32_t dtype_v : dtypes) {
      const bool blocks = std::max(dtype_k, dtype_v) >= BITNET_DTYPE_Q8_0;
      const uint64_t head_dim = blocks ? 64 : 33, heads = 3;
      SCOPED_TRACE(std::to_string(dtype_k) + " " + std::to_string(dtype_v));
      rows x = random_rows(9, heads * head_dim, 10);
      const float edges[] = {65519.9f, 65504.0f, 6e-8f,   2.9e-8f,    3e-8f,
                             1e-30f,   -0.0f,    6.1e-5f, 1.0009766f, 2049.0f};
      std::copy(std::begin(edges), std::end(edges), x[2].begin());
      for (float& v : x[3]) v *= 1e-7f;  // scales that are subnormal in f16
      for (float& v : x[4]) v *= 1e30f;
      if (dtype_k == BITNET_DTYPE_F16) x[5][1] = std::numeric_limits<float>::infinity();
      std::fill(x[6].begin(), x[6].end(), 0.0f);
      put_edges_of_codes(x[7]);
      by_ops m(x, {.layers = 2,
                   .heads = static_cast<int64_t>(heads),
                   .kv_heads = static_cast<int64_t>(heads),
                   .head_dim = static_cast<int64_t>(head_dim)});
      const auto width = static_cast<int64_t>(heads * head_dim);
      // Keys and values differ: x, and |x| twice over.
      const uint32_t v = m.then(BITNET_OP_ADD, {m.x(), m.x()}, width);
      m.then(BITNET_OP_KV_WRITE, {m.x(), v}, 0, {}, {1});
      m.give(v);
      runner_options o = room_for(x.size());
      o.dtype_k = dtype_k;
      o.dtype_v = dtype_v;
      runner r(backend_.table, m, o);
      r.run(all_rows(x.size()));
      std::vector<uint8_t> block(r.block_bytes);
      for (uint64_t t = 0; t < x.size(); ++t) {
        const auto slot = static_cast<uint64_t>(r.slots[t]);
        const auto id = static_cast<uint32_t>(slot / o.block_tokens);
        ASSERT_EQ(r.export_blocks({&id, 1}, block).status, BITNET_OK);
        row twice = x[t];
        for (float& y : twice) y += y;
        uint64_t at = block.size() / 2;  // the second of two layers
        for (const auto& [from, dtype] :
             {std::pair(x[t].data(), dtype_k), std::pair(twice.data(), dtype_v)}) {
          const uint64_t bytes = kv_row(from, head_dim, dtype).size();
          for (uint64_t h = 0; h < heads; ++h, at += bytes * o.block_tokens) {
            const std::vector<uint8_t> expected = kv_row(from + h * head_dim, head_dim, dtype);
            ASSERT_EQ(0, std::memcmp(block.data() + at + slot % o.block_tokens * bytes,
                                     expected.data(), bytes))
                << "token " << t << ", head " << h;
          }
        }
      }
    }
  }
}

struct attention_shape {
  const char* why;
  uint64_t tokens, heads, kv_heads, head_dim;
  uint32_t window, keep;
};

constexpr float attention_scale = 0.2f;

// Attention whose keys and values are the first elements of each row.
by_ops attention(const rows& x, const attention_shape& shape) {
  const uint64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  by_ops m(x, {.layers = 1,
               .heads = static_cast<int64_t>(shape.heads),
               .kv_heads = static_cast<int64_t>(shape.kv_heads),
               .head_dim = static_cast<int64_t>(shape.head_dim)});
  row unit(kv_width * width);  // of a product that takes them out
  for (uint64_t i = 0; i < kv_width; ++i) unit[i * width + i] = 1;
  const auto* bytes = reinterpret_cast<const uint8_t*>(unit.data());
  const uint32_t w =
      m.matrix(BITNET_FORMAT_F32, static_cast<int64_t>(width), {bytes, bytes + 4 * unit.size()});
  const uint32_t kv = m.then(BITNET_OP_LINEAR_DENSE, {m.x()}, static_cast<int64_t>(kv_width), {w});
  m.then(BITNET_OP_KV_WRITE, {kv, kv}, 0, {}, {0});
  m.give(m.then(BITNET_OP_ATTN_PAGED, {m.x()}, static_cast<int64_t>(width), {},
                {0, static_cast<int32_t>(shape.heads), static_cast<int32_t>(shape.kv_heads),
                 static_cast<int32_t>(shape.head_dim)},
                {attention_scale}));
  return m;
}

// One head of one token; y begins at its first element.
void expect_attention(const rows& x, const attention_shape& shape, uint64_t t, uint64_t h,
                      const float* y) {
  const uint64_t kv_at = h / (shape.heads / shape.kv_heads) * shape.head_dim;
  constexpr double scale{attention_scale};
  std::vector<double> weights, out(shape.head_dim);
  std::vector<uint64_t> seen;
  double most = -INFINITY, reach = 0, total = 0;
  for (uint64_t p = 0; p <= t; ++p) {
    if (shape.window != 0 && p + shape.window <= t && p >= shape.keep) continue;
    double dot = 0, size = 0;
    for (uint64_t i = 0; i < shape.head_dim; ++i) {
      const double product = double{x[t][h * shape.head_dim + i]} * double{x[p][kv_at + i]};
      dot += product;
      size += std::fabs(product);
    }
    seen.push_back(p);
    weights.push_back(dot * scale);
    most = std::max(most, weights.back());
    reach = std::max(reach, size * scale);
  }
  for (double& v : weights) total += v = std::exp(v - most);
  for (uint64_t j = 0; j < seen.size(); ++j)
    for (uint64_t i = 0; i < shape.head_dim; ++i)
      out[i] += weights[j] / total * double{x[seen[j]][kv_at + i]};
  // A score is off by head_dim + 2 roundings, its weight relatively by twice that (its own and the
  // sum's), and the sums by one rounding for each position and tile. |v| is at most 2.
  const double allowed = 2 * ulp *
                         (2 * (static_cast<double>(shape.head_dim) + 2) * reach +
                          2 * static_cast<double>(seen.size()) + 16);
  for (uint64_t i = 0; i < shape.head_dim; ++i)
    ASSERT_NEAR(y[i], out[i], allowed) << "token " << t << ", head " << h << ", element " << i;
}

TEST_P(each_op, attention_over_scattered_blocks) {
  const attention_shape shapes[] = {
      {"one position", 1, 1, 1, 1, 0, 0},
      {"heads that share keys", 9, 6, 2, 32, 0, 0},
      {"an odd head, more positions than a tile", 150, 2, 1, 33, 0, 0},
      {"heads of BitNet b1.58 2B", 40, 4, 1, 128, 0, 0},
      {"a wide head", 20, 1, 1, 224, 0, 0},
      {"a window that leaves the first", 90, 2, 2, 16, 37, 5},
  };
  for (const attention_shape& shape : shapes) {
    SCOPED_TRACE(shape.why);
    const uint64_t width = shape.heads * shape.head_dim;
    const rows x = random_rows(shape.tokens, width, 2);
    runner_options o = room_for(shape.tokens);
    o.dtype_k = o.dtype_v = BITNET_DTYPE_F32;
    o.window = shape.window;
    o.window_keep = shape.keep;
    const by_ops m = attention(x, shape);
    runner r(backend_.table, m, o);
    const std::vector<float> y = r.run(all_rows(shape.tokens));
    for (uint64_t t = 0; t < shape.tokens; ++t)
      for (uint64_t h = 0; h < shape.heads; ++h)
        expect_attention(x, shape, t, h, &y[t * width + h * shape.head_dim]);
  }
}

INSTANTIATE_TEST_SUITE_P(backends, each_op, testing::ValuesIn(all_plugins()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace bitnet::parity
