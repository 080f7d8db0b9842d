// Attention of many tokens, which reads keys and values once for all of them, against the scalar
// form token by token: the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "bitnet/sdk/formats.hpp"
#include "emulated_form.hpp"
#include "guarded_memory.hpp"
#include "ops/ops.hpp"

namespace bitnet::parity {
namespace {

struct run_of_tokens {
  int32_t sequence, first;
  uint64_t tokens;
};

struct attending {
  std::vector<run_of_tokens> runs;
  uint64_t heads, kv_heads, head_dim, block_tokens;
  uint32_t dtype_k, dtype_v;
  uint64_t room;  // floats of scratch; what one token needs if it is less
  int32_t own_window;
  uint32_t window, keep;
  const char* why;
};

constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                   q4 = BITNET_DTYPE_Q4_0;
constexpr uint64_t much = uint64_t{1} << 17;

const std::vector<attending>& cases() {
  static const std::vector<attending> all = {
      {{{0, 0, 70}}, 8, 2, 128, 64, f16, f16, much, 0, 0, 0, "a prompt of BitNet b1.58 2B"},
      {{{0, 0, 70}}, 8, 2, 128, 64, f16, f16, 3000, 0, 0, 0, "room for fewer tokens, then none"},
      {{{0, 45, 37}}, 4, 1, 64, 16, f16, f16, much, 0, 0, 0, "a prompt behind others"},
      {{{0, 3, 41}}, 3, 1, 48, 7, f32, f32, much, 0, 0, 0, "blocks that keys are gathered from"},
      {{{0, 0, 40}}, 5, 5, 64, 16, q8, q8, much, 0, 0, 0, "int8, a head for each KV head"},
      {{{0, 0, 33}}, 6, 3, 32, 4, q8, f16, much, 0, 0, 0, "keys int8, two heads together"},
      {{{0, 0, 33}}, 4, 2, 64, 16, q4, q4, much, 0, 0, 0, "keys and values of 4 bits"},
      {{{0, 0, 20}}, 2, 1, 256, 64, f16, f32, much, 0, 0, 0, "the widest head"},
      {{{0, 0, 9}}, 2, 1, 272, 64, f16, f16, much, 0, 0, 0, "a wider one: token by token"},
      {{{0, 0, 9}}, 2, 1, 100, 64, f16, f16, much, 0, 0, 0, "no sixteens: token by token"},
      {{{0, 0, 3}, {1, 20, 17}, {2, 5, 1}, {0, 3, 6}},
       4,
       2,
       64,
       16,
       f16,
       f16,
       much,
       0,
       0,
       0,
       "sequences in turn"},
      {{{0, 0, 12}, {0, 30, 12}}, 4, 2, 64, 16, f16, f16, much, 0, 0, 0, "a gap between positions"},
      {{{0, 0, 60}}, 4, 2, 64, 16, f16, f16, much, 0, 25, 3, "a window that begins to leave some"},
      {{{0, 0, 60}}, 4, 2, 64, 16, f16, f16, much, 30, 0, 0, "a layer's window"},
      {{{0, 0, 70}}, 4, 1, 64, 16, q8, q8, much, 16, 0, 0, "a window of sixteen keys"},
      {{{0, 0, 70}}, 4, 2, 64, 7, f16, f16, much, 17, 0, 0, "and of one more, across blocks"},
      {{{0, 0, 40}}, 4, 2, 64, 16, f32, f32, much, 1, 0, 0, "a token sees itself only"},
      {{{0, 0, 40}}, 4, 2, 64, 16, f16, f16, much, 3, 0, 0, "fewer than a tile"},
      {{{0, 99, 70}}, 8, 2, 128, 64, f16, f16, much, 64, 0, 0, "a window that moved long ago"},
      {{{0, 50, 40}}, 4, 2, 64, 16, f16, f16, 600, 33, 0, 0, "a window, and room for few"},
      {{{0, 90, 37}}, 4, 1, 64, 16, q4, q4, much, 0, 20, 0, "a window that keeps none"},
      {{{0, 90, 37}}, 4, 1, 64, 16, f16, f16, much, 0, 20, 16, "sixteen that are kept"},
      {{{0, 90, 37}}, 4, 1, 64, 7, q8, f16, much, 0, 31, 21, "more, in blocks apart"},
      {{{0, 0, 60}}, 4, 2, 64, 16, f16, f16, much, 0, 10, 40, "more kept than are in the window"},
      {{{0, 0, 60}}, 4, 2, 64, 16, f16, f16, much, 30, 25, 3, "both windows, the layer's wider"},
      {{{0, 0, 60}}, 4, 2, 64, 16, f16, f16, much, 10, 25, 3, "both, the layer's narrower"},
      {{{0, 30, 40}, {1, 0, 40}}, 4, 2, 64, 16, f16, f16, much, 20, 0, 0, "sequences with windows"},
  };
  return all;
}

// One head of a token in a pool's type; not a number where `size` is none.
std::vector<uint8_t> packed(uint32_t dtype, uint64_t n, float size, std::mt19937& random) {
  std::vector<uint8_t> out(sdk::kv_head_bytes(dtype, n));
  const auto one = [&] {
    return std::isnan(size)
               ? size
               : size * static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0f;
  };
  if (dtype == q8 || dtype == q4) {
    const uint64_t codes = dtype == q8 ? 32 : 16;
    for (uint64_t at = 0; at < out.size(); at += 2 + codes) {
      const uint16_t d = sdk::f32_to_f16(std::isnan(size) ? size : size / (dtype == q8 ? 100 : 8));
      std::memcpy(&out[at], &d, sizeof d);
      for (uint64_t i = 0; i < codes; ++i) out[at + 2 + i] = static_cast<uint8_t>(random());
    }
    return out;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const float v = one();
    const uint16_t h = sdk::f32_to_f16(v);
    if (dtype == f32)
      std::memcpy(&out[4 * i], &v, 4);
    else
      std::memcpy(&out[2 * i], &h, 2);
  }
  return out;
}

// A step over a pool in which every element that must not be read is NaN.
class attended {
 public:
  explicit attended(const attending& s) : s_(s), random_(7) {
    for (const run_of_tokens& r : s.runs)
      for (uint64_t t = 0; t < r.tokens; ++t) {
        sequences_.push_back(r.sequence);
        positions_.push_back(r.first + static_cast<int32_t>(t));
        context_ = std::max(context_, static_cast<uint64_t>(positions_.back()) + 1);
      }
    tokens_ = positions_.size();
    const uint64_t blocks = (context_ + s.block_tokens - 1) / s.block_tokens, sequences = 3;
    for (uint64_t i = 0; i < sequences * blocks; ++i) table_.push_back(static_cast<int32_t>(i));
    std::shuffle(table_.begin(), table_.end(), random_);
    step_.n_tokens = static_cast<uint32_t>(tokens_);
    step_.max_blocks = static_cast<uint32_t>(blocks);
    step_.block_tokens = static_cast<uint32_t>(s.block_tokens);
    step_.window = s.window;
    step_.window_keep = s.keep;
    step_.positions = positions_.data();
    step_.sequences = sequences_.data();
    step_.block_tables = table_.data();
    fill_pool(blocks * sequences, blocks);
    const uint64_t width = s.heads * s.head_dim;
    for (uint64_t i = 0; i < width * tokens_; ++i)
      q_.push_back(static_cast<float>(static_cast<int>(random_() % 2001) - 1000) / 500.0f);
  }

  sdk::call call(float* y) const {
    sdk::call c{};
    c.op = BITNET_OP_ATTN_PAGED;
    c.rows = tokens_;
    c.k = c.m = s_.heads * s_.head_dim;
    c.in[0] = q_.data();
    c.out[0] = y;
    c.ints[1] = static_cast<int32_t>(s_.heads);
    c.ints[2] = static_cast<int32_t>(s_.kv_heads);
    c.ints[3] = static_cast<int32_t>(s_.head_dim);
    c.ints[4] = s_.own_window;
    c.floats[0] = 0.25f;
    c.step = &step_;
    return c;
  }
  uint64_t elements() const { return q_.size(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t scores_of_one() const { return s_.heads / s_.kv_heads * context_; }

 private:
  void fill_pool(uint64_t n_blocks, uint64_t blocks) {
    sdk::kv_storage& kv = step_.kv;
    kv.dtype_k = s_.dtype_k;
    kv.dtype_v = s_.dtype_v;
    kv.n_layers = 1;
    kv.n_blocks = static_cast<uint32_t>(n_blocks);
    kv.block_tokens = static_cast<uint32_t>(s_.block_tokens);
    kv.n_kv_heads = s_.kv_heads;
    kv.head_dim = s_.head_dim;
    kv.k_bytes = sdk::kv_head_bytes(s_.dtype_k, s_.head_dim);
    kv.v_bytes = sdk::kv_head_bytes(s_.dtype_v, s_.head_dim);
    kv.layer_bytes = kv.block_bytes = s_.block_tokens * s_.kv_heads * (kv.k_bytes + kv.v_bytes);
    pool_.resize(kv.block_bytes * n_blocks);
    kv.data = pool_.data();
    std::vector<std::vector<bool>> seen(3, std::vector<bool>(blocks * s_.block_tokens));
    for (uint64_t t = 0; t < tokens_; ++t) {
      const sdk::step_view::sight sight = step_.sees(t, s_.own_window);
      for (uint64_t i = 0; i < sight.count(); ++i)
        seen[static_cast<uint64_t>(sequences_[t])][sight.position(i)] = true;
    }
    for (uint64_t sequence = 0; sequence < 3; ++sequence)
      for (uint64_t p = 0; p < blocks * s_.block_tokens; ++p)
        for (uint64_t h = 0; h < s_.kv_heads; ++h) {
          const auto block = static_cast<uint64_t>(table_[sequence * blocks + p / s_.block_tokens]);
          const uint64_t slot = block * s_.block_tokens + p % s_.block_tokens;
          const float size = seen[sequence][p] ? 2.0f : std::nanf("");
          const auto k = packed(s_.dtype_k, s_.head_dim, size, random_);
          const auto v = packed(s_.dtype_v, s_.head_dim, size, random_);
          std::copy(k.begin(), k.end(), kv.k(0, slot, h));
          std::copy(v.begin(), v.end(), kv.v(0, slot, h));
        }
    // A block of which nothing is seen may be any number.
    for (uint64_t i = 0; i < table_.size(); ++i) {
      const auto at =
          seen[i / blocks].begin() + static_cast<std::ptrdiff_t>(i % blocks * s_.block_tokens);
      if (std::find(at, at + static_cast<std::ptrdiff_t>(s_.block_tokens), true) ==
          at + static_cast<std::ptrdiff_t>(s_.block_tokens))
        table_[i] = 1 << 30;
    }
  }

  const attending& s_;
  std::mt19937 random_;
  std::vector<int32_t> sequences_, positions_, table_;
  uint64_t context_ = 0, tokens_ = 0;
  std::vector<uint8_t> pool_;
  std::vector<float> q_;
  sdk::step_view step_;
};

class attention_forms : public each_form {};
class score_forms : public each_form {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(score_forms);

TEST_P(attention_forms, attention_of_tokens_equals_that_of_each_token) {
  for (const attending& s : cases()) {
    SCOPED_TRACE(s.why);
    const attended step(s);
    std::vector<float> expected(step.elements()), scores(step.scores_of_one());
    cpu::attention(cpu::scalar_form, step.call(expected.data()), 0, step.tokens() * s.heads,
                   scores.data());
    for (const float v : expected) ASSERT_FALSE(std::isnan(v));
    const uint64_t room = std::max(s.room, step.scores_of_one()), all = step.tokens() * s.kv_heads;
    guarded_memory<float> y(step.elements()), scratch(room);
    for (const uint64_t cut : {uint64_t{0}, all / 3}) {
      for (uint64_t i = 0; i < y.size(); ++i) y[i] = std::nanf("");
      const sdk::call c = step.call(y.data());
      cpu::attention_of_tokens(*GetParam(), c, {0, cut, scratch.data(), nullptr, room});
      cpu::attention_of_tokens(*GetParam(), c, {cut, all, scratch.data(), nullptr, room});
      for (uint64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i]))
            << "token " << i / (s.heads * s.head_dim) << ", element " << i % (s.heads * s.head_dim);
    }
  }
}

uint64_t tiles_turned;  // by `counting`
const cpu::isa_form* counted_form;
cpu::isa_form counting(const cpu::isa_form& form) {
  cpu::isa_form out = form;
  tiles_turned = 0;
  counted_form = &form;
  out.attention.turn_keys = [](const cpu::keys_tile& tile) {
    ++tiles_turned;
    counted_form->attention.turn_keys(tile);
  };
  return out;
}

TEST_P(score_forms, tokens_with_windows_read_keys_together) {
  const struct {
    attending what;
    uint64_t tiles;  // 64 tokens in blocks of 32, all of which see 32 + 31 keys
  } rows[] = {{{{{0, 64, 64}}, 4, 1, 64, 16, f16, f16, much, 32, 0, 0, "a layer's window"}, 8},
              {{{{0, 64, 64}}, 4, 1, 64, 16, f16, f16, much, 0, 32, 0, "a session's"}, 8},
              {{{{0, 64, 64}}, 4, 1, 64, 16, f16, f16, much, 0, 32, 5, "one that keeps some"}, 10}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what.why);
    const attended step(row.what);
    std::vector<float> y(step.elements()), scratch(much);
    const cpu::isa_form form = counting(*GetParam());
    cpu::attention_of_tokens(form, step.call(y.data()), {0, 64, scratch.data(), nullptr, much});
    EXPECT_EQ(tiles_turned, row.tiles);
  }
}

TEST_P(score_forms, scores_equal_the_dense_product) {
  const cpu::score_kernels& form = GetParam()->attention;
  for (const uint32_t format :
       {BITNET_FORMAT_F32, BITNET_FORMAT_F16, BITNET_FORMAT_Q8_0, BITNET_FORMAT_Q4_0})
    for (const uint64_t k : {16u, 32u, 128u, 256u})
      for (const uint64_t queries : {1u, 4u, 7u}) {
        const sdk::format& f = *sdk::find_format(format);
        const uint64_t stride = sdk::row_bytes(f, k);
        if (stride == 0 || (f.block > 1 && k % f.block != 0)) continue;
        SCOPED_TRACE(std::string(f.name) + " " + std::to_string(k));
        constexpr uint64_t keys = cpu::keys_at_once;
        std::mt19937 random(static_cast<uint32_t>(k));
        guarded_memory<uint8_t> w(stride * keys);
        for (uint64_t i = 0; i < w.size(); ++i) w[i] = static_cast<uint8_t>(random() & 0xbb);
        guarded_memory<float> q(k * queries), turned(k * keys), y(keys * queries);
        for (uint64_t i = 0; i < q.size(); ++i)
          q[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 333.0f;
        cpu::keys_tile tile{static_cast<cpu::kv_format>(format), {}, k, turned.data()};
        for (uint64_t i = 0; i < keys; ++i) tile.rows[i] = w.data() + (keys - 1 - i) * stride;
        form.turn_keys(tile);
        form.scores({turned.data(), q.data(), k, y.data(), keys, k, queries});
        std::vector<float> expected(keys * queries);
        cpu::linear_dense_scalar(
            {format, w.data(), stride, q.data(), k, expected.data(), keys, k, keys, queries});
        for (uint64_t i = 0; i < queries; ++i)
          for (uint64_t j = 0; j < keys; ++j)
            ASSERT_EQ(y[i * keys + j], expected[i * keys + keys - 1 - j]) << i << " " << j;
      }
}

INSTANTIATE_TEST_SUITE_P(variants, attention_forms, testing::ValuesIn(all_forms()), form_name);
INSTANTIATE_TEST_SUITE_P(variants, score_forms,
                         testing::ValuesIn(those_with(has_scores, all_forms())), form_name);

}  // namespace
}  // namespace bitnet::parity
