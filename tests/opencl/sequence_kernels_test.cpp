// The kernels to which positions and sequences matter, against their definitions as in
// kernels_test.cpp: rotation, keys and values, attention, states.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/program.h"
#include "bitnet/sdk/reference/attention.hpp"
#include "bitnet/sdk/reference/recurrent.hpp"
#include "bitnet/sdk/reference/rows.hpp"
#include "each_form.hpp"

namespace bitnet::opencl::test {
namespace {

constexpr std::pair<uint32_t, uint32_t> kv_pairs[] = {{BITNET_DTYPE_F16, BITNET_DTYPE_F16},
                                                      {BITNET_DTYPE_F32, BITNET_DTYPE_Q8_0},
                                                      {BITNET_DTYPE_Q8_0, BITNET_DTYPE_F32},
                                                      {BITNET_DTYPE_Q4_0, BITNET_DTYPE_Q8_0},
                                                      {BITNET_DTYPE_F16, BITNET_DTYPE_Q4_0}};

bool in_blocks(uint32_t dtype) {
  return dtype == BITNET_DTYPE_Q8_0 || dtype == BITNET_DTYPE_Q4_0;
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
// with two bytes of padding behind their factor.
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
  for (uint32_t b = 0; dtype == BITNET_DTYPE_Q4_0 && b < n; b += 32) {
    uint8_t block[BITNET_Q4_0_BLOCK_BYTES];
    sdk::reference::kv_write(x + b, 32, dtype, block);
    out.insert(out.end(), block, block + 2);
    put(uint16_t{0});
    out.insert(out.end(), block + 2, std::end(block));
  }
  return out;
}

TEST_P(each_division, kv_write_keeps_the_rows_of_the_slots) {
  for (const auto& [k_type, v_type] : kv_pairs)
    for (const uint32_t head_dim : {64u, 21u}) {
      if (head_dim % 32 != 0 && (in_blocks(k_type) || in_blocks(v_type))) continue;
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

// Where rounding, signs and limits decide about a code of 4 bits or its factor.
TEST_P(each_division, four_bits_are_those_of_the_reference) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const struct {
    const char* why;
    std::vector<float> first;  // of a block; the others are 0
  } rows[] = {
      {"nothing but zeros", {}},
      {"halves between codes", {-8, 0.5f, 1.5f, -0.5f, -1.5f, 6.5f, 7.5f, 8, 2.49999976f}},
      {"the first of two largest, negative", {1, -3, 3, 2.0625f}},
      {"the first of two largest, positive", {1, 3, -3, 2.0625f}},
      {"a factor that is subnormal", {3e-6f, -1e-6f, 2e-7f}},
      {"a factor that rounds to 0", {-2.3e-7f, 1e-7f}},
      {"a factor just above", {-2.4e-7f, 1e-7f}},
      {"subnormal numbers, the larger one negative", {1e-40f, -2e-40f}},
      {"a factor that would be infinite", {-6e5f, 5.3e5f, 1e5f, -1e5f}},
      {"the largest number", {3.4028235e38f, -3e38f, 1}},
      {"infinite", {1, -infinite, infinite, 3}},
      {"not a number", {nan, 2, -1, nan}},
  };
  const uint32_t dtype = BITNET_DTYPE_Q4_0, tokens = std::size(rows);
  std::vector<float> x(uint64_t{tokens} * 32);
  std::vector<int32_t> slot;
  for (uint32_t t = 0; t < tokens; ++t) {
    std::copy(rows[t].first.begin(), rows[t].first.end(), &x[t * 32]);
    slot.push_back(static_cast<int32_t>(t));
  }
  argument h = header(tokens), slots = input(slot), in = input(x);
  argument keys = output(tokens * gpu::kv_row_words(dtype, 32)), values = keys;
  bench_->run({kernel_id::kv_write, {t(), dtype, dtype}},
              {&h, &slots, &in, &in, &in, &keys, &values},
              gpu::kv_write_params{0, 1, 32, tokens, 0, 0}, 2, 2);
  for (uint32_t t = 0; t < tokens; ++t) {
    const auto expected = kept(dtype, &x[t * 32], 32);
    EXPECT_EQ(0, std::memcmp(&keys.words[t * 5], expected.data(), 20)) << rows[t].why;
  }
  EXPECT_EQ(values.words, keys.words);
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
  if (dtype == BITNET_DTYPE_Q4_0) {
    const uint8_t* block = row + i / 32 * uint64_t{20};
    const int code = block[4 + i % 16] >> (i % 32 < 16 ? 0 : 4) & 15;
    return sdk::f16_to_f32(sdk::load<uint16_t>(block)) * static_cast<float>(code - 8);
  }
  const uint8_t* block = row + i / 32 * uint64_t{36};
  return sdk::f16_to_f32(sdk::load<uint16_t>(block)) *
         static_cast<float>(static_cast<int8_t>(block[4 + i % 32]));
}

struct attention_row {
  const char* why;
  uint32_t head_dim, heads, kv_heads, window, keep, own_window = 0;

  bool sees(uint64_t from, uint64_t p) const {
    return (window == 0 || p + window > from || p < keep) &&
           (own_window == 0 || p + own_window > from);
  }
};

// Four tokens of two sequences, whose keys and values lie scattered over a pool.
struct attention_step {
  static constexpr uint32_t block_tokens = 4, max_blocks = 12, blocks = 30;
  attention_row row{};
  uint32_t k_type = BITNET_DTYPE_F32, v_type = BITNET_DTYPE_F32;
  std::vector<int32_t> position = {0, 41, 16, 7}, sequence = {1, 0, 1, 0};
  std::vector<int32_t> table = std::vector<int32_t>(uint64_t{2} * max_blocks);
  std::vector<uint8_t> keys, values;
  std::vector<float> q;
  float scale = 0;

  uint64_t tokens() const { return position.size(); }

  // Row of the pool that holds position p of a token's sequence, for a head.
  uint64_t row_of(uint64_t t, uint32_t head, uint32_t p) const {
    const auto block = static_cast<uint64_t>(
        table[static_cast<uint64_t>(sequence[t]) * max_blocks + p / block_tokens]);
    return (block * row.kv_heads + head / (row.heads / row.kv_heads)) * block_tokens +
           p % block_tokens;
  }
};

struct scores {
  std::vector<uint64_t> seen;  // rows of the pool
  std::vector<double> weight;  // of each of them; they sum to 1
  double error = 0;            // the most that a score is off by
};

scores scores_of(const attention_step& a, uint64_t t, uint32_t head) {
  const uint64_t k_bytes = 4 * gpu::kv_row_words(a.k_type, a.row.head_dim);
  const float* q = &a.q[(t * a.row.heads + head) * a.row.head_dim];
  scores out;
  double largest = -HUGE_VAL, total = 0;
  for (uint32_t p = 0; p <= static_cast<uint32_t>(a.position[t]); ++p) {
    if (!a.row.sees(static_cast<uint64_t>(a.position[t]), p)) continue;
    const uint64_t r = a.row_of(t, head, p);
    double sum = 0, size = 0;
    for (uint32_t i = 0; i < a.row.head_dim; ++i) {
      const double product = double{q[i]} * double{kept_element(a.k_type, &a.keys[r * k_bytes], i)};
      sum += product;
      size += std::fabs(product);
    }
    out.seen.push_back(r);
    out.weight.push_back(sum * double{a.scale});
    largest = std::max(largest, out.weight.back());
    out.error =
        std::max(out.error, (a.row.head_dim / 16.0 + 8) * double{epsilon} * size * double{a.scale});
  }
  for (double& p : out.weight) total += p = std::exp(p - largest);
  for (double& p : out.weight) p /= total;
  return out;
}

// Of `threads` a kernel has to a head.
void expect_near(const attention_step& a, const std::vector<float>& found, uint64_t t,
                 uint32_t head, uint32_t threads) {
  const uint64_t v_bytes = 4 * gpu::kv_row_words(a.v_type, a.row.head_dim);
  const uint64_t at = (t * a.row.heads + head) * a.row.head_dim;
  const scores s = scores_of(a, t, head);
  for (uint32_t i = 0; i < a.row.head_dim; ++i) {
    double expected = 0, size = 0;
    for (uint64_t j = 0; j < s.seen.size(); ++j) {
      const double term =
          s.weight[j] * double{kept_element(a.v_type, &a.values[s.seen[j] * v_bytes], i)};
      expected += term;
      size += std::fabs(term);
    }
    // Scores are off by s.error and so are weights, relatively; exp is off by 3 ulp, a tile's sums
    // are scaled by one more exp; then the sums, above and below.
    const double n = static_cast<double>(s.seen.size()), tiles = n / threads + 1;
    const double relative = 2 * s.error + (2 * n + 8 * tiles + 16) * double{epsilon};
    ASSERT_NEAR(double{found[at + i]}, expected, relative * size)
        << "token " << t << " head " << head << " element " << i << " types " << a.k_type << " "
        << a.v_type;
  }
}

class each_attention : public each_form {
 protected:
  attention_step step(const attention_row& row, uint32_t k_type, uint32_t v_type) {
    attention_step a;
    a.row = row;
    a.k_type = k_type;
    a.v_type = v_type;
    for (uint32_t i = 0; i < a.table.size(); ++i)
      a.table[i] = static_cast<int32_t>((7 * i + 3) % a.blocks);
    for (uint64_t r = 0; r < uint64_t{a.blocks} * row.kv_heads * a.block_tokens; ++r) {
      std::vector<float> one = floats(row.head_dim, 2);
      const auto k = kept(k_type, one.data(), row.head_dim);
      one = floats(row.head_dim);
      const auto v = kept(v_type, one.data(), row.head_dim);
      a.keys.insert(a.keys.end(), k.begin(), k.end());
      a.values.insert(a.values.end(), v.begin(), v.end());
    }
    a.q = floats(a.tokens() * row.heads * row.head_dim, 3);
    a.scale = 1 / std::sqrt(static_cast<float>(row.head_dim));
    return a;
  }

  std::vector<float> attended(const attention_step& a) {
    const attention_row& row = a.row;
    argument h = header(static_cast<uint32_t>(a.tokens()), 0, row.window, row.keep);
    argument in = input(a.q), positions = input(a.position), sequences = input(a.sequence);
    argument tables = input(a.table), keys = input(a.keys), values = input(a.values);
    argument y = output(a.q.size());
    bench_->run({kernel_id::attn_paged, {t(), a.k_type, a.v_type, (row.head_dim + t() - 1) / t()}},
                {&h, &in, &positions, &sequences, &tables, &keys, &values, &y},
                gpu::attn_paged_params{0, row.heads, row.kv_heads, row.head_dim, a.block_tokens,
                                       a.max_blocks, a.scale, row.own_window},
                2, 3);
    return values_of<float>(y);
  }
};

TEST_P(each_attention, attn_paged_is_near_the_exact_one) {
  const attention_row rows[] = {
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
  for (const attention_row& row : rows)
    for (const auto& [k_type, v_type] : kv_pairs) {
      if (row.head_dim % 32 != 0 && (in_blocks(k_type) || in_blocks(v_type))) continue;
      SCOPED_TRACE(row.why);
      const attention_step a = step(row, k_type, v_type);
      const std::vector<float> found = attended(a);
      for (uint64_t t = 0; t < a.tokens(); ++t)
        for (uint32_t head = 0; head < row.heads; ++head) expect_near(a, found, t, head, this->t());
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

INSTANTIATE_TEST_SUITE_P(opencl, each_attention,
                         testing::Combine(testing::Values(form::as_reported),
                                          testing::ValuesIn(group_sizes)),
                         name_of);

}  // namespace
}  // namespace bitnet::opencl::test
