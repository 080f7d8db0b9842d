// Each op through the exported symbol of a plugin. Right answers are the conformance kit's; its
// cases run here too, so that they run under a driver's own checks and on drivers that the kit does
// not open. Added here: fused kernels against their parts, and matrices larger than a kernel sees.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "bitnet/sdk/formats.hpp"
#include "bitnet/sdk/reference/rows.hpp"
#include "reference/run_case.hpp"
#include "runner.hpp"
#include "targets.hpp"

namespace bitnet::parity {
namespace {

using row = std::vector<float>;
using rows = std::vector<row>;

// A graph of an f32 embedding with the rows x, some ops, and the rows of their result.
class by_ops : public model {
 public:
  explicit by_ops(const rows& x) : n_(x.size()) {
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

// The conformance kit's cases of this op, with every weight format that the backend has for it.
void expect_the_kits_answers(const bitnet_backend_v0& table, bitnet_device* device, uint32_t op,
                             const bitnet_device_info& info) {
  uint64_t known = 0;
  for (uint32_t format = BITNET_FORMAT_NONE; format <= BITNET_FORMAT_TERNARY2; ++format) {
    const auto cases = conformance::cases_of(op, format, info.kv_dtypes, info.attention_flags);
    known += cases.size();
    if (cases.empty() || level_of(table, device, op, format) == BITNET_LEVEL_NONE) continue;
    uint64_t ran = 0;
    for (const conformance::op_case& c : cases) {
      const conformance::comparison found =
          conformance::run_case(table, device, c, BITNET_PROGRAM_DETERMINISTIC);
      if (!found.rejected.empty()) continue;
      ++ran;
      ASSERT_EQ(found.wrong, "") << "op " << op << ", format " << format << ": " << c.why;
    }
    ASSERT_NE(ran, 0u) << "op " << op << ", format " << format << ": every case is rejected";
  }
  ASSERT_NE(known, 0u) << "op " << op << ": the kit has no case";
}

TEST_P(each_op, gives_the_answers_of_the_kit) {
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(backend_.table, 0, &device, e); });
  const std::unique_ptr<bitnet_device, void (*)(bitnet_device*)> closed(
      device, backend_.table.device_close);
  bitnet_device_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) {
    return backend_.table.device_info(backend_.table.self, 0, &info, e);
  });
#define BITNET_ROW(NAME, ID, ...) ID,
  for (const uint32_t op : {BITNET_OP_LIST(BITNET_ROW)})
#undef BITNET_ROW
    if (op < BITNET_OP_FIRST_COMPOSITE) expect_the_kits_answers(backend_.table, device, op, info);
}

// Shorter groups than any file has, which run by the reference where kernels have no form for them:
// the kit's cases ask for the kernel that is claimed. Integers up to 127 are their own codes, and
// scales are powers of two, so that all sums are exact.
TEST_P(each_op, short_scale_groups_are_exact) {
  constexpr uint64_t k = 64, m = 3, group = 4;
  rows x(5, row(k));
  for (row& r : x) {
    for (float& v : r) v = static_cast<float>(static_cast<int>(random_() % 255) - 127);
    r[random_() % k] = random_() % 2 ? 127.0f : -127.0f;
  }
  const std::vector<int8_t> t = random_trits(k * m);
  std::vector<float> scales(k / group * m);
  for (float& s : scales) s = std::ldexp(1.0f, static_cast<int>(random_() % 5) - 2);
  by_ops graph(x);
  const uint32_t w = graph.matrix(BITNET_FORMAT_TERNARY2, k, pack_ternary(t, k, m), scales, group);
  const std::vector<float> y = run(graph.give(graph.ternary(graph.x(), m, w)));
  for (uint64_t r = 0; r < x.size(); ++r)
    for (uint64_t o = 0; o < m; ++o) {
      float sum = 0;
      for (uint64_t i = 0; i < k; ++i)
        sum += static_cast<float>(t[o * k + i]) * x[r][i] * scales[(o * k + i) / group];
      ASSERT_EQ(y[r * m + o], sum) << "row " << r << ", output " << o;
    }
}

// A norm that is quantised at once or through memory: the same integers. Reading the normed value
// as well keeps a backend from fusing.
TEST_P(each_op, norms_quantise_the_same_when_fused) {
  for (const uint64_t k : {1u, 3u, 100u, 128u}) {
    SCOPED_TRACE(k);
    rows x = random_rows(4, k, 2);
    x[1].assign(k, 1e-4f);
    for (uint64_t i = 0; i < k; i += 7) x[2][i] *= 1000;
    const row w = random_rows(1, k)[0];
    const auto width = static_cast<int64_t>(k);
    std::vector<int8_t> unit(k * k);
    for (uint64_t i = 0; i < k; ++i) unit[i * k + i] = 1;
    std::vector<float> both[2];
    for (const bool apart : {false, true}) {
      by_ops m(x);
      const uint32_t v = m.vector(w),
                     id = m.matrix(BITNET_FORMAT_TERNARY2, width, pack_ternary(unit, k, k), {1.0f});
      const uint32_t normed = m.then(BITNET_OP_RMS_NORM, {m.x()}, width, {v}, {}, {1e-5f});
      if (apart) m.then(BITNET_OP_RELU2, {normed}, width);
      both[apart] = run(m.give(m.ternary(normed, width, id)));
    }
    EXPECT_EQ(both[0], both[1]);
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
        by_ops m(x);
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

// 160 MB: many devices show a kernel 128 MiB of a buffer. Row o of the matrix takes one element of
// x, so that every output is exact.
TEST_P(each_op, matrices_that_no_kernel_sees_at_once) {
  constexpr uint64_t k = 2048, m = 20000;
  const rows x = random_rows(2, k);
  row weights(k * m);
  for (uint64_t o = 0; o < m; ++o) weights[o * k + o % k] = 1;
  const auto* bytes = reinterpret_cast<const uint8_t*>(weights.data());
  by_ops product(x);
  const uint32_t w = product.matrix(BITNET_FORMAT_F32, k, {bytes, bytes + 4 * weights.size()});
  const std::vector<float> y =
      run(product.give(product.then(BITNET_OP_LINEAR_DENSE, {product.x()}, m, {w})));
  for (uint64_t r = 0; r < x.size(); ++r)
    for (uint64_t o = 0; o < m; ++o) ASSERT_EQ(y[r * m + o], x[r][o % k]) << r << " " << o;
}

TEST_P(each_op, embeddings_that_no_kernel_sees_at_once) {
  constexpr uint64_t k = 2048, m = 17000;
  rows table(m, row(k));
  for (uint64_t r = 0; r < m; ++r) table[r][r % k] = static_cast<float>(r + 1);
  by_ops g(table);
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

// Angles far from 0 are formed in double, so that the bits are those of the SDK's reference.
TEST_P(each_op, rope_at_far_positions) {
  constexpr int32_t heads = 3, head_dim = 24, turns = 16;
  const rows x = random_rows(5, heads * head_dim);
  const int32_t positions[] = {0, 1, 77, 8191, 120000};
  for (const bool factors : {false, true}) {
    for (const int32_t mode : {BITNET_ROPE_NEOX, BITNET_ROPE_INTERLEAVED}) {
      by_ops m(x);
      row divisors(turns / 2);
      for (float& d : divisors) d = uniform(1.0f, 4.0f);
      const uint32_t weight = factors ? m.vector(divisors) : BITNET_NONE;
      m.give(m.then(BITNET_OP_ROPE, {m.x()}, heads * head_dim, {weight},
                    {heads, head_dim, turns, mode}, {500000.0f, 0.5f}));
      runner_options o = room_for(5);
      o.block_tokens = 64;
      o.max_blocks = 2000;
      runner r(backend_.table, m, o);
      const bitnet_step step = r.prepare(all_rows(5));
      std::copy(std::begin(positions), std::end(positions), r.positions);
      ASSERT_EQ(r.submit(step).status, BITNET_OK);
      row expected(heads * head_dim);
      for (uint64_t t = 0; t < x.size(); ++t) {
        sdk::reference::rope(x[t].data(), heads, head_dim, turns, mode, 500000.0f, 0.5f,
                             positions[t], factors ? divisors.data() : nullptr, expected.data());
        for (uint64_t i = 0; i < expected.size(); ++i)
          ASSERT_EQ(r.logits[t * expected.size() + i], expected[i]) << t << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(backends, each_op, testing::ValuesIn(all_plugins()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace bitnet::parity
