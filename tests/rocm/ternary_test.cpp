// Products of ternary rows against their definition in bitnet/abi/ops.h, computed slowly here, bit
// for bit: for one token and for several, by waves of 32 lanes and of 64, with and without matrix
// cores.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "code_objects.hpp"
#include "device.hpp"
#include "gpu-common/plan/plan.hpp"
#include "on_stand_in.hpp"

namespace bitnet::rocm::test {
namespace {

struct shape {
  const char* why;
  uint32_t k, m, scale_group, given;
  bool add = false;
};
constexpr shape shapes[] = {
    {"one block, one row", 128, 1, 0, 0},
    {"rows that end within a wave's, and elements within a block", 416, 37, 0, 0},
    {"more blocks than a wave of 64 takes in a turn", 4352, 9, 0, 0, true},
    {"an odd number of blocks, rows of two groups", 384, 135, 0, 0},
    {"a factor to each 128 elements", 512, 7, 128, 0},
    {"a factor to each 64 elements, rows of two groups, half a block at the end", 320, 67, 64, 0},
    {"activations with factors of their own", 256, 10, 128, 32, true},
    {"whose groups are the longer ones", 512, 33, 32, 128},
    {"whose groups are no multiple of 32", 240, 9, 0, 40},
};

// A product's numbers.
struct product {
  std::vector<int8_t> weights;  // (m, k)
  std::vector<uint32_t> matrix, q;
  std::vector<float> s, scales, residual;
  uint32_t row_words, q_words;

  product(const shape& of, uint32_t tokens)
      : row_words(static_cast<uint32_t>(gpu::row_words(BITNET_FORMAT_TERNARY2, of.k))),
        q_words(static_cast<uint32_t>(gpu::i8_row_words(of.k))) {
    std::mt19937 random(of.k + of.m + tokens);
    const auto some = [&] { return std::uniform_real_distribution<float>(1, 2)(random); };
    std::vector<uint8_t> packed(uint64_t{of.m} * row_words * 4, 0);
    for (uint64_t r = 0; r < of.m; ++r)
      for (uint64_t i = 0; i < uint64_t{row_words} * 16; ++i) {
        const uint32_t code = random() % 3;  // also past k, where activations are zeros
        if (i < of.k) weights.push_back(static_cast<int8_t>(static_cast<int>(code) - 1));
        packed[r * row_words * 4 + i / 128 * 32 + i % 32] |=
            static_cast<uint8_t>(code << (6 - 2 * (i % 128 / 32)));
      }
    matrix.resize(packed.size() / 4);
    std::memcpy(matrix.data(), packed.data(), packed.size());
    std::vector<int8_t> codes(uint64_t{tokens} * q_words * 4, 0);
    for (uint64_t t = 0; t < tokens; ++t)
      for (uint64_t i = 0; i < of.k; ++i)
        codes[t * q_words * 4 + i] = static_cast<int8_t>(static_cast<int>(random() % 256) - 128);
    q.resize(codes.size() / 4);
    std::memcpy(q.data(), codes.data(), codes.size());
    for (uint32_t i = 0; i < tokens * (of.given == 0 ? 1 : of.k / of.given); ++i)
      s.push_back(some());
    for (uint32_t i = 0; i < (of.scale_group == 0 ? 1 : of.m * (of.k / of.scale_group)); ++i)
      scales.push_back(some());
    for (uint32_t i = 0; i < tokens * of.m; ++i) residual.push_back(some());
  }

  int sum(const shape& of, uint32_t t, uint32_t r, uint32_t from, uint32_t n) const {
    const auto* code = reinterpret_cast<const int8_t*>(&q[uint64_t{t} * q_words]);
    int out = 0;
    for (uint32_t i = from; i < from + n; ++i) out += weights[uint64_t{r} * of.k + i] * code[i];
    return out;
  }
  float expected(const shape& of, uint32_t t, uint32_t r) const {
    const float more = of.add ? residual[t * of.m + r] : -0.0f;  // -0 changes nothing
    if (of.scale_group == 0 && of.given == 0)
      return static_cast<float>(sum(of, t, r, 0, of.k)) / s[t] * scales[0] + more;
    const uint32_t own = of.scale_group == 0 ? of.k : of.scale_group;
    const uint32_t shorter = of.given == 0 ? own : std::min(own, of.given);
    const uint32_t longer = of.given == 0 ? of.k : std::max(own, of.given);
    const bool token_first = of.given != 0 && of.given <= own;
    float inner = 0, outer = 0;
    for (uint32_t i = 0; i < of.k; i += shorter) {
      const float of_row = scales[of.scale_group == 0 ? 0 : r * (of.k / own) + i / own];
      const float of_token = of.given == 0 ? 1 : s[t * (of.k / of.given) + i / of.given];
      inner += static_cast<float>(sum(of, t, r, i, shorter)) * (token_first ? of_token : of_row);
      if (of.given == 0 || (i + shorter) % longer != 0) continue;
      outer += inner * (token_first ? of_row : of_token);
      inner = 0;
    }
    return (of.given == 0 ? inner / s[t] : outer) + more;
  }
};

class ternary : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    error_.struct_size = sizeof error_;
    std::string why;
    launches_ = find_launches();
    if (!launches_) GTEST_SKIP() << "the stand-in is not where the loader looks";
    platform_ = open_quietly(why);
    ASSERT_NE(platform_, nullptr) << why;
    must(platform_->open(GetParam(), device_, report_));
    has_matrix_cores_ = has_code(target_of(device_->describe().arch), matrix_part);
  }
  void must(bitnet_status s) { ASSERT_EQ(s, BITNET_OK) << error_.message; }

  template <class T>
  gpu::binding put(const std::vector<T>& values) {
    auto& made = buffers_.emplace_back();
    must(device_->allocate(4 * values.size(), gpu::memory_place::device, made, report_));
    must(device_->upload(*made, 0, values.data(), 4 * values.size(), report_));
    return {made.get(), 0, 4 * values.size()};
  }

  // By a recording that was made for `most` tokens.
  std::vector<float> compute(const shape& of, const product& with, uint32_t tokens, uint32_t most) {
    const bool factors = of.scale_group != 0 || of.given != 0;
    const uint32_t at_once = std::min(most, gpu::most_tokens);
    std::unique_ptr<gpu::kernel> made;
    must(device_->make_kernel(
        {gpu::kernel_id::linear_ternary, {group_threads, factors ? 1u : 32u, at_once, 4, of.given}},
        made, report_));
    gpu::command one;
    one.run = made.get();
    const gpu::linear_ternary_params p{0, of.k, of.m,           with.row_words,
                                       0, of.m, of.scale_group, of.add ? 1u : 0u};
    one.params.resize(sizeof p / 4);
    std::memcpy(one.params.data(), &p, sizeof p);
    one.bindings = {put(std::vector<uint32_t>{tokens, 0, 0, 0}),
                    put(with.q),
                    put(with.s),
                    put(with.matrix),
                    put(with.scales),
                    put(with.residual),
                    put(std::vector<uint32_t>(uint64_t{tokens} * of.m, 0xcdcdcdcdu))};
    one.groups_x = (of.m + 15) / 16;
    one.groups_y = (most + at_once - 1) / at_once;
    std::unique_ptr<gpu::recording> recorded;
    std::unique_ptr<gpu::queue> queue;
    must(device_->record({&one, 1}, false, recorded, report_));
    must(device_->make_queue(queue, report_));
    must(queue->submit(*recorded, 1, report_));
    must(queue->wait(1, UINT64_MAX, report_));
    std::vector<float> y(uint64_t{tokens} * of.m);
    must(device_->download(*one.bindings[6].memory, 0, y.data(), 4 * y.size(), report_));
    return y;
  }

  // What has to compute it.
  std::string kernel_for(const shape& of, uint32_t most) const {
    const bool factors = of.scale_group != 0 || of.given != 0;
    const uint32_t shorter =
        std::min(of.scale_group == 0 ? of.k : of.scale_group, of.given == 0 ? of.k : of.given);
    if (factors)
      return most > 1 && has_matrix_cores_ && shorter % 32 == 0 ? "linear_ternary_matrix_factored"
                                                                : "linear_ternary_factored";
    if (most == 1) return "linear_ternary_1";
    if (most <= 4 || !has_matrix_cores_) return "linear_ternary_dots";
    return most < 32 ? "linear_ternary_matrix_few" : "linear_ternary_matrix_many";
  }
  void expect_exact(const shape& of, uint32_t tokens, uint32_t most) {
    SCOPED_TRACE(std::string(of.why) + ", " + std::to_string(tokens) + " tokens of " +
                 std::to_string(most));
    const product with(of, tokens);
    const std::string kernel = kernel_for(of, most);
    const uint64_t before = launches_(kernel.c_str());
    const std::vector<float> y = compute(of, with, tokens, most);
    EXPECT_EQ(launches_(kernel.c_str()), before + 1) << kernel << " did not run";
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t r = 0; r < of.m; ++r)
        ASSERT_EQ(y[t * of.m + r], with.expected(of, t, r)) << "token " << t << ", row " << r;
  }

  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  decltype(find_launches()) launches_ = nullptr;
  bool has_matrix_cores_ = false;
  std::unique_ptr<gpu::platform> platform_;
  std::unique_ptr<gpu::device> device_;
  std::vector<std::unique_ptr<gpu::buffer>> buffers_;
};

TEST_P(ternary, has_the_bits_of_its_definition) {
  for (const shape& of : shapes)
    for (const uint32_t tokens : {1u, 2u, 4u, 8u, 17u, 32u, 45u}) expect_exact(of, tokens, tokens);
}
TEST_P(ternary, steps_of_fewer_tokens_than_recorded) {
  for (const shape& of : shapes)
    for (const uint32_t tokens : {1u, 15u, 33u})
      for (const uint32_t most : {16u, 64u})
        if (tokens <= most) expect_exact(of, tokens, most);
}

INSTANTIATE_TEST_SUITE_P(waves_of, ternary, testing::Values(0u, 1u),
                         [](const auto& of) { return of.param == 0 ? "32_lanes" : "64_lanes"; });

}  // namespace
}  // namespace bitnet::rocm::test
