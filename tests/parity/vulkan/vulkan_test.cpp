// What only plugins/vulkan has: settings, fences in place of timelines, kernels that run in place
// of disabled ones, and what it says where there is no driver.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "model/recurrent_model.hpp"
#include "runner.hpp"

namespace bitnet::parity {
namespace {

struct answer {
  std::vector<float> logits;
  std::vector<bitnet_kernel_stat> stats;
};

class vulkan : public testing::Test {
 protected:
  void SetUp() override {
    const plugin p(BITNET_GPU_PLUGIN, host_);
    uint32_t n = 0;
    const outcome o =
        attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
    if (o.status == BITNET_UNAVAILABLE) GTEST_SKIP() << o.message;
  }
  answer run(const std::string& key, const std::string& value) {
    return run(value.empty() ? plugin::settings{} : plugin::settings{{key, value}});
  }
  answer run(const plugin::settings& user) { return run(user, model_); }
  answer run(const plugin::settings& user, const model& of) {
    const plugin p(BITNET_GPU_PLUGIN, host_, user);
    runner r(p.table, of);
    answer out;
    out.logits = r.run({{3}, {1}, {4}});
    for (const int32_t token : {1, 5, 9}) {
      const std::vector<float> more = r.run({{token}});
      out.logits.insert(out.logits.end(), more.begin(), more.end());
    }
    out.stats = r.stats();
    return out;
  }
  bitnet_device_info info(const plugin::settings& user = {}) {
    const plugin p(BITNET_GPU_PLUGIN, host_, user);
    bitnet_device_info out{};
    out.struct_size = sizeof out;
    must([&](bitnet_error* e) { return p.table.device_info(p.table.self, 0, &out, e); });
    return out;
  }
  std::string arch(const plugin::settings& user = {}) { return info(user).arch; }
  static uint64_t calls(const answer& a, const std::string& id) {
    for (const bitnet_kernel_stat& s : a.stats)
      if (id == s.id) return s.calls;
    return 0;
  }

  tiny_host host_{1};
  const tiny_model model_{{}};
  const tiny_model grouped_{
      {.ff = 192, .head_norms = true, .scale_group = 64, .activation_group = 32}};
  const tiny_model rotated_{{.rotated_block = 8, .composites = false}};
  const model recurrent_ = conformance::recurrent_model();
};

TEST_F(vulkan, fences_do_what_timelines_do) {
  EXPECT_EQ(run("fences", "1").logits, run("fences", "0").logits);
  const plugin p(BITNET_GPU_PLUGIN, host_, "1", "fences");
  runner r(p.table, model_);
  uint64_t reached = 1;
  must([&](bitnet_error* e) { return p.table.queue_poll(r.queue, &reached, e); });
  EXPECT_EQ(reached, 0u);
  const bitnet_step step = r.prepare({{3}});
  must([&](bitnet_error* e) { return p.table.queue_submit(r.queue, &step, e); });
  must([&](bitnet_error* e) {
    return p.table.queue_wait(r.queue, step.signal_value, UINT64_MAX, e);
  });
  must([&](bitnet_error* e) { return p.table.queue_poll(r.queue, &reached, e); });
  EXPECT_EQ(reached, step.signal_value);
}

TEST_F(vulkan, a_setting_that_means_nothing_is_rejected) {
  for (const std::string key : {"fences", "subgroups", "dot_product"}) {
    const plugin p(BITNET_GPU_PLUGIN, host_, "maybe", key);
    uint32_t n = 0;
    const outcome o =
        attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
    EXPECT_EQ(o.status, BITNET_UNAVAILABLE);
    EXPECT_NE(o.message.find("maybe"), std::string::npos) << o.message;
    EXPECT_NE(o.message.find(key), std::string::npos) << o.message;
  }
}

TEST_F(vulkan, every_form_of_a_kernel_has_the_same_bits) {
  for (const model* of :
       std::initializer_list<const model*>{&model_, &grouped_, &rotated_, &recurrent_}) {
    const auto logits = [&](const plugin::settings& user) { return run(user, *of).logits; };
    const std::vector<float> usual = logits({});
    EXPECT_EQ(logits({{"subgroups", "0"}}), usual);
    EXPECT_EQ(logits({{"dot_product", "0"}}), usual);
    EXPECT_EQ(logits({{"dot_product", "1"}}), usual);
    EXPECT_EQ(logits({{"subgroups", "0"}, {"dot_product", "1"}}), usual);
  }
}

// What the driver reports decides; a user can only ask for less, or for what is there.
// A kernel that runs the op with others only cannot stand in for it.
TEST_F(vulkan, a_disabled_op_is_not_offered_because_others_contain_it) {
  for (const auto& [id, what, format] :
       {std::tuple{"linear_ternary.ternary2.vulkan", BITNET_OP_LINEAR_TERNARY,
                   BITNET_FORMAT_TERNARY2},
        std::tuple{"act_quant_i8.vulkan", BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE}}) {
    const plugin p(BITNET_GPU_PLUGIN, host_, id, "disable");
    bitnet_device* device = nullptr;
    must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
    EXPECT_EQ(level_of(p.table, device, what, format), BITNET_LEVEL_NONE) << id;
    p.table.device_close(device);
  }
}

TEST_F(vulkan, forms_that_are_turned_off_are_not_reported) {
  EXPECT_EQ(arch({{"subgroups", "0"}}).find("subgroups"), std::string::npos);
  EXPECT_EQ(arch({{"dot_product", "0"}}).find("dot product"), std::string::npos);
}

// A driver in software computes dot products of bytes no faster than other products.
TEST_F(vulkan, dot_products_in_software_are_used_on_request_only) {
  if (arch().find("software") == std::string::npos)
    GTEST_SKIP() << "the driver is not one in software";
  if (arch({{"dot_product", "1"}}).find("dot product") == std::string::npos)
    GTEST_SKIP() << "the device has no dot product at all";
  EXPECT_EQ(arch().find("dot product"), std::string::npos);
}

TEST_F(vulkan, what_is_disabled_is_done_by_other_kernels_with_the_same_bits) {
  const std::vector<std::string> fused = {"rms_norm_act_quant_i8.vulkan",
                                          "relu2_mul_rms_norm_act_quant_i8.vulkan",
                                          "linear_ternary_add.ternary2.vulkan",
                                          "rms_norm_bit_linear.ternary2.vulkan",
                                          "rms_norm_bit_linear_add.ternary2.vulkan",
                                          "rope_kv_write.vulkan"};
  const answer all = run("", "");
  for (const std::string& id : fused) {
    SCOPED_TRACE(id);
    EXPECT_GT(calls(all, id), 0u);
    const answer without = run("disable", "nothing," + id);
    EXPECT_EQ(calls(without, id), 0u);
    EXPECT_EQ(without.logits, all.logits);
  }
  const answer plain = run("disable", fused[0] + "," + fused[1] + "," + fused[2]);
  EXPECT_EQ(plain.logits, all.logits);
  EXPECT_GT(calls(plain, "mul.vulkan"), 0u);
  EXPECT_GT(calls(plain, "add.vulkan"), 0u);

  const std::string id = "linear_ternary_grouped_add.ternary2.vulkan";
  const answer added = run({}, grouped_), apart = run({{"disable", id}}, grouped_);
  EXPECT_EQ(calls(added, id), 2u * 2 * 4) << "two a layer, four steps";
  EXPECT_EQ(calls(apart, id), 0u);
  EXPECT_EQ(apart.logits, added.logits);
}

TEST_F(vulkan, a_disabled_op_is_neither_listed_nor_offered) {
  const plugin p(BITNET_GPU_PLUGIN, host_, "silu.vulkan", "disable");
  std::vector<bitnet_kernel_info> all(100);
  auto n = static_cast<uint32_t>(all.size());
  must([&](bitnet_error* e) {
    return p.table.kernels(p.table.self, 0, all.data(), sizeof all[0], &n, e);
  });
  ASSERT_LE(n, all.size());
  EXPECT_TRUE(std::none_of(all.begin(), all.begin() + n, [](const bitnet_kernel_info& k) {
    return k.op == BITNET_OP_SILU || std::string(k.id) == "silu.vulkan";
  }));
  bitnet_device* device = nullptr;
  must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
  EXPECT_EQ(level_of(p.table, device, BITNET_OP_SILU, BITNET_FORMAT_NONE), BITNET_LEVEL_NONE);
  p.table.device_close(device);
}

// llvmpipe would leave out the rest of a longer context, and say nothing.
TEST_F(vulkan, a_context_that_a_driver_cuts_off_is_rejected) {
  if (!std::string(info().name).starts_with("llvmpipe")) GTEST_SKIP() << "this driver cuts nothing";
  const plugin p(BITNET_GPU_PLUGIN, host_);
  runner_options options;
  options.max_sequences = 1;
  options.block_tokens = 32;
  options.max_blocks = 2048;
  try {
    const runner r(p.table, model_, options);
    FAIL() << "65536 tokens are not rejected";
  } catch (const call_failed& e) {
    EXPECT_NE(std::string(e.what()).find("65535 passes"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("shorter context"), std::string::npos) << e.what();
  }
}

// And the rest of the tokens of a sequence, which is why a long step is cut into commands.
TEST_F(vulkan, a_long_step_has_the_bits_of_short_ones) {
  const plugin p(BITNET_GPU_PLUGIN, host_);
  runner_options options;
  options.max_sequences = 2;
  options.max_tokens = options.max_outputs = 6000;
  options.block_tokens = 64;
  options.max_blocks = 80;
  options.n_blocks = 162;
  std::vector<token_in> in;
  for (int32_t t = 0; t < 6000; ++t) in.push_back({t * 7 % 31, t < 1000 ? 1 : 0});
  runner whole(p.table, recurrent_, options), parts(p.table, recurrent_, options);
  const std::vector<float> expected = whole.run(in);
  std::vector<float> found;
  for (auto at = in.begin(); at != in.end(); at += 500) {
    const std::vector<float> more = parts.run({at, at + 500});
    found.insert(found.end(), more.begin(), more.end());
  }
  EXPECT_EQ(found, expected);
  if (std::string(info().name).starts_with("llvmpipe")) {  // other drivers need no cut
    EXPECT_GT(whole.calls("short_conv"), 1u);
    EXPECT_GT(whole.calls("delta_rule"), 1u);
  }
}

TEST_F(vulkan, keys_that_no_group_holds_are_not_offered) {
  for (const int32_t keys : {128, 1 << 16}) {
    model m;
    std::mt19937 random(3);
    const auto rows = [&](int64_t width) {
      const uint32_t x = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, width);
      m.op(BITNET_OP_EMBED_GATHER, {}, {x}, {m.dense(BITNET_FORMAT_F32, width, 2, random)});
      return x;
    };
    const uint32_t x = rows(2 * keys + 1), gates = rows(2);
    const uint32_t y = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
    bitnet_op& rule = m.op(BITNET_OP_DELTA_RULE, {x, gates}, {y});
    rule.ints[1] = rule.ints[2] = rule.ints[4] = 1;
    rule.ints[3] = keys;
    m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, 1);
    m.op(BITNET_OP_GATHER_ROWS, {y}, {m.logits});
    m.state_elements = static_cast<uint32_t>(keys);
    const plugin p(BITNET_GPU_PLUGIN, host_);
    bitnet_device* device = nullptr;
    must([&](bitnet_error* e) { return conformance::open_device(p.table, 0, &device, e); });
    EXPECT_EQ(level_of(p.table, device, m, BITNET_OP_DELTA_RULE) != BITNET_LEVEL_NONE, keys == 128);
    p.table.device_close(device);
    if (keys == 128) continue;
    try {
      const runner r(p.table, m);
      FAIL() << "built all the same";
    } catch (const call_failed& e) {
      EXPECT_NE(std::string(e.what()).find("keys of 65536"), std::string::npos) << e.what();
    }
  }
}

TEST_F(vulkan, the_device_says_what_it_is) {
  const bitnet_device_info about = info();
  EXPECT_NE(std::string(about.name), "");
  EXPECT_EQ(std::string(about.uuid).size(), 36u) << about.uuid;
  EXPECT_TRUE(std::string(about.arch).starts_with("vulkan 1.")) << about.arch;
  EXPECT_EQ(about.device_class == BITNET_DEVICE_CPU,
            std::string(about.arch).find("software") != std::string::npos);
  EXPECT_GT(about.memory_total_bytes, 0u);
  EXPECT_GT(about.max_allocation_bytes, 0u);
}

// Drivers are named in the environment, and read when the first of them is needed.
TEST(vulkan_without_driver, says_what_to_install) {
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    setenv(name, "/nonexistent/driver.json", 1);
  tiny_host host(1);
  const plugin p(BITNET_GPU_PLUGIN, host);
  uint32_t n = 7;
  const outcome o =
      attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
  EXPECT_EQ(o.status, BITNET_UNAVAILABLE);
  EXPECT_EQ(n, 7u);
  EXPECT_NE(o.message.find("install"), std::string::npos) << o.message;
}

}  // namespace
}  // namespace bitnet::parity
