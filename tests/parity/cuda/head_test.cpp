// Steps that ask for the largest logits, on the cuda backend: which kernels they run, what the copy
// of the head takes and when there is none, and that a driver's call that fails loses nothing.

#include <cuda.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "cuda/stand_in/stand_in.hpp"
#include "runner.hpp"

namespace bitnet::parity {
namespace {

constexpr const char* name_of_both = "linear_dense_top.i8+f16.cuda";
constexpr const char* name_of_full = "linear_dense.f16.cuda";

tiny_shape shape_of_head() {
  tiny_shape shape;
  shape.layers = 1;
  shape.vocab = 1500;
  return shape;
}
// Codes of rows of 128, and three numbers to each of them.
constexpr uint64_t copy_bytes = 1500 * (128 + 3 * 4);

class cuda_steps : public testing::Test {
 protected:
  void SetUp() override {
    try {
      plugin_.emplace(BITNET_GPU_PLUGIN, host_, plugin::settings{{"checks", "off"}});
      uint32_t n = 0;
      must([&](bitnet_error* e) { return table().device_count(table().self, &n, e); });
    } catch (const std::exception& e) {
      GTEST_SKIP() << e.what();
    }
  }
  const bitnet_backend_v0& table() const { return plugin_->table; }

  bitnet_device* open(uint64_t memory_bytes) {
    bitnet_device_request r{};
    r.struct_size = sizeof r;
    r.memory_bytes = memory_bytes;
    bitnet_device* out = nullptr;
    must([&](bitnet_error* e) { return table().device_open(table().self, &r, &out, e); });
    return out;
  }
  uint64_t held_by(bitnet_device* device) const {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    must([&](bitnet_error* e) { return table().device_status(device, &s, e); });
    return s.pool_used_bytes;
  }

  tiny_host host_{1};
  std::optional<plugin> plugin_;
  const tiny_model model_{shape_of_head()};
};

runner_options on(bitnet_device* device) {
  runner_options out;
  out.opened = device;
  return out;
}

std::vector<token_in> tokens(uint32_t n) {
  std::vector<token_in> out;
  for (uint32_t i = 0; i < n; ++i) out.push_back({static_cast<int32_t>(7 * i + 3)});
  return out;
}

// The step of these tokens again, for the `top` largest logits of the last n of them.
outcome ask(runner& r, const std::vector<token_in>& in, uint32_t n, uint32_t top) {
  r.rewind(0);
  bitnet_step step = r.prepare(in);
  step.n_outputs = n;
  for (uint32_t i = 0; i < n; ++i) r.output_rows[i] = static_cast<int32_t>(in.size() - n + i);
  step.top_logits = top;
  return r.submit(step);
}

// What is asked for, and what else is there, is what the full head gives.
void check(const runner& r, const std::vector<float>& full, uint64_t n, uint32_t top) {
  const uint64_t m = r.vocabulary();
  for (uint64_t o = 0; o < n; ++o) {
    const float* whole = full.data() + (full.size() / m - n + o) * m;
    std::vector<float> sorted(whole, whole + m);
    std::ranges::sort(sorted, std::greater<>());
    for (uint64_t i = 0; i < m; ++i) {
      const float found = r.logits[o * m + i];
      if (found == -INFINITY && whole[i] < sorted[std::min<uint64_t>(top, m) - 1]) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(whole[i])) << i;
    }
  }
}

TEST_F(cuda_steps, run_the_two_stages_where_they_ask_for_few) {
  const std::vector<token_in> in = tokens(10);
  runner r(table(), model_);
  const std::vector<float> full = r.run(in);
  const struct {
    uint32_t outputs, top;
    bool both;
    const char* why;
  } rows[] = {{1, 1, true, "as greedy generation does"},
              {1, 40, true, "as sampling does"},
              {3, 5, true, "some rows together"},
              {8, 8192, true, "the most there are, more than there are rows"},
              {9, 1, false, "a row too many"},
              {1, 8193, false, "a logit too many"},
              {1, 0, false, "all"},
              {0, 1, false, "none"},
              {1, 1, true, "as at first"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const uint64_t both = r.calls(name_of_both), whole = r.calls(name_of_full);
    ASSERT_EQ(ask(r, in, row.outputs, row.top).status, BITNET_OK);
    EXPECT_EQ(r.calls(name_of_both) - both, row.both ? 4u : 0u);
    EXPECT_EQ(r.calls(name_of_full) - whole, row.both || row.outputs == 0 ? 0u : 1u);
    ASSERT_NO_FATAL_FAILURE(check(r, full, row.outputs, row.both ? row.top : 8192));
  }
}

TEST_F(cuda_steps, count_the_copy_and_give_it_back) {
  bitnet_device* device = open(0);
  {
    runner r(table(), model_, on(device));
    r.run(tokens(2));
    const uint64_t before = held_by(device);
    ASSERT_EQ(ask(r, tokens(2), 1, 1).status, BITNET_OK);
    const uint64_t with = held_by(device);
    EXPECT_GE(with, before + copy_bytes);
    ASSERT_EQ(ask(r, tokens(2), 2, 7).status, BITNET_OK);
    EXPECT_EQ(held_by(device), with) << "it is made once";
    runner other(table(), model_, on(device));
    EXPECT_LT(held_by(device), 2 * with - copy_bytes)
        << "a program without the largest logits has no memory for them";
  }
  EXPECT_EQ(held_by(device), 0u);
  table().device_close(device);
}

TEST_F(cuda_steps, go_without_a_copy_where_there_is_no_room) {
  bitnet_device* device = open(0);
  uint64_t least = 0;
  {
    const runner r(table(), model_, on(device));
    least = held_by(device);
  }
  table().device_close(device);
  for (const uint64_t more : {uint64_t{0}, copy_bytes / 2, copy_bytes + 4096, 16 * copy_bytes}) {
    SCOPED_TRACE(std::to_string(more) + " bytes more");
    device = open(least + more);
    {
      runner r(table(), model_, on(device));
      const std::vector<float> full = r.run(tokens(3));
      for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(ask(r, tokens(3), 1, 1).status, BITNET_OK);
        ASSERT_NO_FATAL_FAILURE(check(r, full, 1, 1));
      }
      EXPECT_EQ(r.calls(name_of_both) != 0, more > 2 * copy_bytes);
      EXPECT_LE(held_by(device), least + more);
    }
    table().device_close(device);
  }
}

TEST_F(cuda_steps, run_the_full_head_where_the_user_says_so) {
  for (const auto& setting :
       {std::pair<std::string, std::string>{"head", "full"}, {"disable", name_of_both}}) {
    const plugin own(BITNET_GPU_PLUGIN, host_, plugin::settings{setting});
    runner r(own.table, model_);
    const std::vector<float> full = r.run(tokens(2));
    ASSERT_EQ(ask(r, tokens(2), 1, 1).status, BITNET_OK);
    EXPECT_EQ(r.calls(name_of_both), 0u) << setting.first;
    for (uint64_t i = 0; i < r.vocabulary(); ++i) ASSERT_EQ(r.logits[i], full[r.vocabulary() + i]);
  }
  const plugin wrong(BITNET_GPU_PLUGIN, host_, plugin::settings{{"head", "half"}});
  uint32_t n = 0;
  const outcome o =
      attempt([&](bitnet_error* e) { return wrong.table.device_count(wrong.table.self, &n, e); });
  EXPECT_EQ(o.status, BITNET_UNAVAILABLE);
  EXPECT_NE(o.message.find("'half'; expected exact, fast or full"), std::string::npos) << o.message;
}

// Kernels and copies of a step of one token, by the driver's graph.
struct launches {
  uint64_t kernels = 0, copies = 0;
};
// With top, the step asks for so many of the largest logits.
launches launches_of(const bitnet_backend_v0& table, const tiny_shape& shape,
                     const runner_options& options, uint32_t top) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto nodes = driver ? reinterpret_cast<decltype(&bitnet_stand_in_nodes)>(
                                  dlsym(driver, "bitnet_stand_in_nodes"))
                            : nullptr;
  if (!nodes) return {};
  const tiny_model model(shape);
  runner r(table, model, options);
  r.run(tokens(1));
  if (top != 0) {
    EXPECT_EQ(ask(r, tokens(1), 1, top).status, BITNET_OK);
    EXPECT_EQ(r.calls(name_of_both), 4u);
  }
  return {nodes(0), nodes(1)};
}

// As Qwen3 has it, with scales of groups: norms of heads, none behind attention or the activation.
tiny_shape shape_with_groups() {
  tiny_shape out;
  out.embedding = out.ff = 256;
  out.heads = 8;
  out.scale_group = 128;
  out.activation_group = 32;
  out.head_norms = out.products_first = true;
  out.sub_norms = out.relu2 = false;
  return out;
}

// docs/explain/kernel-ladder-cuda.md (rungs 1 and 24) and docs/reference/kernel-counts-cuda.md
// (reach by count) have these numbers.
TEST_F(cuda_steps, of_one_token_have_so_many_launches) {
  const runner_options short_context;
  runner_options in_parts;
  in_parts.block_tokens = 64;  // times 8 blocks: 512 positions
  const tiny_shape plain, groups = shape_with_groups();
  const struct {
    const char* name;
    tiny_shape shape;
    runner_options options;
    uint32_t top;
    uint64_t of_layer, beside;
  } rows[] = {
      // q, k and v; attention with all that is between; its product; gate and up; what goes
      // between; down. Beside the layers: embedding, the row that is asked for, norm, head.
      {"one scale", plain, short_context, 0, 6, 4},
      {"one scale, parts", plain, in_parts, 0, 6, 4},
      {"one scale, two stages", plain, short_context, 1, 6, 7},
      // Norm with quantisation; q, k and v; attention with the norms of heads; quantisation; its
      // product; norm with quantisation; gate and up; activation, product of both and quantisation;
      // down.
      {"groups", groups, short_context, 0, 9, 4},
      {"groups, parts", groups, in_parts, 0, 9, 4},
      {"groups, two stages", groups, short_context, 1, 9, 7},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    launches found[2];
    for (const int64_t layers : {1, 3}) {
      tiny_shape shape = row.shape;
      shape.layers = layers;
      if (row.top != 0) shape.vocab = 1500;
      found[layers / 2] = launches_of(table(), shape, row.options, row.top);
    }
    const auto& [one, three] = found;
    if (one.kernels == 0) GTEST_SKIP() << "the stand-in is not where the loader looks";
    EXPECT_EQ(three.kernels - one.kernels, 2 * row.of_layer);
    EXPECT_EQ(one.kernels, row.of_layer + row.beside);
    EXPECT_EQ(one.copies, 1u);
    EXPECT_EQ(three.copies, 1u);
  }
}

// Every call that the first asking step makes fails once, in turn.
TEST_F(cuda_steps, lose_nothing_where_a_call_fails) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto fail =
      driver
          ? reinterpret_cast<decltype(&bitnet_stand_in_fail)>(dlsym(driver, "bitnet_stand_in_fail"))
          : nullptr;
  if (!fail) GTEST_SKIP() << "the stand-in is not where the loader looks";
  const auto calls =
      reinterpret_cast<decltype(&bitnet_stand_in_calls)>(dlsym(driver, "bitnet_stand_in_calls"));
  const auto objects = reinterpret_cast<decltype(&bitnet_stand_in_objects)>(
      dlsym(driver, "bitnet_stand_in_objects"));
  const std::vector<token_in> in = tokens(1);
  std::vector<float> full;
  uint64_t last = 0;
  {
    runner r(table(), model_);
    full = r.run(in);
    fail(0, 0);
    ASSERT_EQ(ask(r, in, 1, 1).status, BITNET_OK);
    last = calls();
  }
  ASSERT_EQ(objects(), 0u);
  uint64_t said = 0, without = 0;
  // Memory that is not given is no failure where it is the copy's.
  for (const int result : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY})
    for (uint64_t nth = 1; nth <= last; nth += result == CUDA_ERROR_INVALID_VALUE ? 1 : 3) {
      SCOPED_TRACE("call " + std::to_string(nth) + " of " + std::to_string(last));
      {
        runner r(table(), model_);
        ASSERT_EQ(r.run(in), full);
        fail(nth, result);
        outcome o = ask(r, in, 1, 1);
        fail(0, 0);
        if (o.status != BITNET_OK) {
          ++said;
          EXPECT_NE(o.message.find(std::to_string(result)), std::string::npos) << o.message;
          o = ask(r, in, 1, 1);
        }
        ASSERT_EQ(o.status, BITNET_OK) << o.message;
        ASSERT_NO_FATAL_FAILURE(check(r, full, 1, 1));
        without += r.calls(name_of_both) == 0 ? 1 : 0;
      }
      ASSERT_EQ(objects(), 0u);
    }
  EXPECT_GT(said, last / 2);
  EXPECT_GT(without, 0u);
  EXPECT_LT(without, last / 3);
  dlclose(driver);
}

}  // namespace
}  // namespace bitnet::parity
