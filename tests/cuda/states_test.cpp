// The gated delta rule against its definition in bitnet/abi/ops.h, computed slowly here, bit for
// bit: states that a thread keeps in registers, and others.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel_bench.hpp"
#include "kernel_table.hpp"

namespace bitnet::cuda::test {
namespace {

struct run {
  uint32_t tokens, position;  // of the first; 0: the state counts as zeros
};
struct shape {
  const char* why;
  uint32_t d_k, d_v, n_k, n_v, turns;
  std::vector<run> runs;  // a sequence each
};

// Squares of these, and their sums, are exact in f32.
std::vector<float> eighths(uint64_t count, std::mt19937& random) {
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(static_cast<int>(random() % 17) - 8) / 8;
  return out;
}

// A step's numbers, and what becomes of them.
struct delta {
  static constexpr uint32_t element = 5, more = 7;  // words of a state before and behind
  static constexpr float scale = 0.25f, eps = 1e-6f;
  const shape& of;
  uint32_t tokens = 0, state_words;
  std::vector<uint32_t> positions, sequences, states;
  std::vector<float> x, gates, state, y;

  explicit delta(const shape& s) : of(s), state_words(element + s.n_v * s.d_k * s.d_v + more) {
    std::mt19937 random(s.d_k * 131 + s.d_v);
    for (uint32_t i = 0; i < s.runs.size(); ++i)
      for (uint32_t t = 0; t < s.runs[i].tokens; ++t, ++tokens) {
        positions.push_back(s.runs[i].position + t);
        sequences.push_back(i);
      }
    for (uint32_t i = 0; i < s.runs.size(); ++i)  // backwards
      states.push_back(static_cast<uint32_t>(s.runs.size() - 1 - i));
    x = eighths(uint64_t{tokens} * width(), random);
    for (uint32_t i = 0; i < tokens * 2 * s.n_v; ++i)
      gates.push_back(0.5f + std::uniform_real_distribution<float>(0, 0.5f)(random));
    state = eighths(uint64_t{state_words} * s.runs.size(), random);
    y.resize(uint64_t{tokens} * s.n_v * s.d_v);
  }
  uint32_t width() const { return 2 * of.n_k * of.d_k + of.n_v * of.d_v; }

  void compute() {
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t h = 0; h < of.n_v; ++h) head(t, h);
  }

 private:
  std::vector<float> normalised(const float* from, float factor) const {
    float squares = 0;
    for (uint32_t i = 0; i < of.d_k; ++i) squares += from[i] * from[i];
    const float inverse = 1.0f / std::sqrt(squares + eps);
    std::vector<float> out(of.d_k);
    for (uint32_t i = 0; i < of.d_k; ++i) {
      out[i] = from[i] * inverse;
      if (factor != 1) out[i] *= factor;
    }
    return out;
  }
  void head(uint32_t t, uint32_t h) {
    const uint32_t key_head = of.turns != 0 ? h % of.n_k : h / (of.n_v / of.n_k);
    const float* row = &x[uint64_t{t} * width()];
    const std::vector<float> q = normalised(row + uint64_t{key_head} * of.d_k, scale);
    const std::vector<float> k = normalised(row + uint64_t{of.n_k + key_head} * of.d_k, 1);
    const float* v = row + uint64_t{2} * of.n_k * of.d_k + uint64_t{h} * of.d_v;
    const float decay = gates[uint64_t{t} * 2 * of.n_v + h];
    const float beta = gates[uint64_t{t} * 2 * of.n_v + of.n_v + h];
    float* s = &state[uint64_t{states[sequences[t]]} * state_words + element +
                      uint64_t{h} * of.d_k * of.d_v];
    for (uint32_t j = 0; j < of.d_v; ++j) {
      const auto at = [&](uint32_t i) -> float& { return s[uint64_t{i} * of.d_v + j]; };
      float sum = 0, out = 0;
      for (uint32_t i = 0; i < of.d_k; ++i) {
        if (positions[t] == 0) at(i) = 0;
        at(i) = at(i) * decay;
        sum += k[i] * at(i);
      }
      const float u = beta * (v[j] - sum);
      for (uint32_t i = 0; i < of.d_k; ++i) {
        at(i) = at(i) + k[i] * u;
        out += q[i] * at(i);
      }
      y[(uint64_t{t} * of.n_v + h) * of.d_v + j] = out;
    }
  }
};

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> out(values.size());
  std::memcpy(out.data(), values.data(), 4 * values.size());
  return out;
}

class states : public testing::Test {
 protected:
  void SetUp() override { bench_.open(); }

  // In one command, or cut into two behind token `cut`.
  void expect_exact(const shape& of, uint32_t cut = 0) {
    SCOPED_TRACE(of.why);
    delta with(of);
    const uint32_t tiles = (of.d_v + group_threads - 1) / group_threads;
    const gpu::kernel_spec spec{gpu::kernel_id::delta_rule, {group_threads, of.d_k, 0, 0, 0}};
    const gpu::binding state = bench_.put(with.state);
    const gpu::binding y = bench_.put(std::vector<float>(with.y.size(), -1));
    const std::vector<gpu::binding> bindings{bench_.put<uint32_t>({with.tokens, 0, 0, 0}),
                                             bench_.put(with.x),
                                             bench_.put(with.gates),
                                             bench_.put(with.positions),
                                             bench_.put(with.sequences),
                                             bench_.put(with.states),
                                             state,
                                             y};
    const auto add = [&](uint32_t first, uint32_t last) {
      const gpu::delta_rule_params p{
          0,        delta::element, with.state_words, of.n_k,     of.n_v, of.d_v,
          of.turns, tiles,          delta::scale,     delta::eps, first,  last};
      bench_.add(spec, bindings, p, of.n_v * tiles, static_cast<uint32_t>(of.runs.size()));
    };
    if (cut != 0) add(0, cut);
    add(cut, with.tokens + 3);
    bench_.run();
    with.compute();
    EXPECT_EQ(bits_of(bench_.get<float>(y)), bits_of(with.y));
    EXPECT_EQ(bits_of(bench_.get<float>(state)), bits_of(with.state));
    bench_.clear();
  }

 private:
  kernel_bench bench_;
};

TEST_F(states, delta_rule_of_every_form) {
  const shape rows[] = {
      {"128 rows, as Qwen3-Next has", 128, 128, 2, 4, 0, {{1, 7}}},
      {"128 rows, from the beginning, value heads take turns", 128, 128, 2, 4, 1, {{3, 0}}},
      {"128 rows, three sequences", 128, 96, 1, 2, 0, {{2, 0}, {1, 5}, {3, 2}}},
      {"128 rows, two tiles of columns", 128, 200, 1, 1, 0, {{2, 1}, {2, 0}}},
      {"64 rows", 64, 64, 2, 2, 0, {{4, 0}, {2, 9}}},
      {"64 rows, few columns", 64, 5, 1, 3, 0, {{2, 3}}},
      {"40 rows stay in memory", 40, 130, 2, 4, 1, {{3, 0}, {2, 4}}},
      {"256 rows, too", 256, 64, 1, 1, 0, {{2, 4}}},
  };
  for (const shape& of : rows) expect_exact(of);
}

TEST_F(states, delta_rule_of_a_run_that_is_cut) {
  expect_exact({"128 rows", 128, 128, 1, 2, 0, {{5, 0}}}, 2);
  expect_exact({"40 rows", 40, 64, 1, 2, 0, {{5, 0}}}, 2);
}

}  // namespace
}  // namespace bitnet::cuda::test
