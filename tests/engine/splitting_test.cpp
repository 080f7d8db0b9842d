// How a model is cut over devices whose words the test writes: estimates, room, failing calls.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "patched_slot.hpp"

namespace bitnet::engine {
namespace {

using test::fail_with;
using test::need;
using test::patched;

// A device of whose model each layer takes 1000 bytes, the head 500 and the embedding, which the
// head reads too, 300.
class splitting : public test::engines {
 protected:
  void SetUp() override {
    test::engines::SetUp();
    gpu_ = copy_of(BITNET_CPU_PLUGIN, "cpu");
    gpu_.device.device_class = BITNET_DEVICE_GPU;
    load(tests::small_hybrid());
  }
  using queries = patched<&bitnet_backend_v0::graph_query>;
  // Each layer has one weight ffn_down, so the described weights show whether it is there.
  bitnet_status estimate(const queries& of, bitnet_device* device,
                         const bitnet_query_request* request, uint32_t* levels,
                         bitnet_graph_estimate* out, bitnet_error* err) {
    ++n_queries_;
    if (n_queries_ == fails_at_) return fail_with(err, BITNET_INTERNAL, "lost its tables");
    const bitnet_status s = of.sound(device, request, levels, out, err);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request->n_descs; ++i) {
      const std::string name(request->descs[i].name.data, request->descs[i].name.size);
      if (name.find("ffn_down") != std::string::npos) bytes += 1000;
      if (name == "output_norm.weight") bytes += 500;
      if (name == "token_embd.weight") bytes += 300;
    }
    out->weight_bytes = bytes;
    out->scratch_bytes = 1;  // as little as an answer may say
    out->kv_block_bytes = std::min<uint64_t>(out->kv_block_bytes, 1);
    out->state_bytes = std::min<uint64_t>(out->state_bytes, 1);
    return s;
  }
  result<placement> split_as(const split_options& how, uint64_t room) {
    gpu_.device.memory_total_bytes = room;
    log_.clear();
    n_queries_ = 0;
    queries scripted(*gpu_.backend,
                     [&](auto* device, const auto* request, auto* levels, auto* out, auto* err) {
                       return estimate(scripted, device, request, levels, out, err);
                     });
    return split(gpu_, *model_, how, {}, false, keeper_);
  }
  static std::string layers_of(const result<placement>& where) {
    if (!where) return where.error().message;
    std::string out;
    for (const auto& p : where->parts)
      out += fmt::format("{}{}-{}", out.empty() ? "" : " ", p->what().first, p->what().last);
    return out;
  }

  select::choice gpu_;
  std::string log_;
  uint32_t n_queries_ = 0, fails_at_ = 0;
  split_access keeper_{.cpu = [this]() -> result<select::choice> { return cpu_; },
                       .of_backend = [this](uint32_t) -> result<select::choice> { return gpu_; },
                       .log = [this](uint32_t, const std::string& text) { log_ += text + "\n"; }};
};

TEST_F(splitting, puts_as_many_layers_there_as_its_estimates_leave_room_for) {
  EXPECT_EQ(layers_of(split_as({}, UINT64_MAX)), "0-4") << log_;
  for (uint32_t n = 1; n <= 3; ++n) {
    const uint64_t most = n * 1000 + 900;  // n layers and the head
    const auto where = split_as({}, most);
    EXPECT_EQ(layers_of(where), fmt::format("0-{} {}-4", 4 - n, 4 - n)) << log_;
  }
}

TEST_F(splitting, passes_on_what_its_device_fails_with) {
  for (fails_at_ = 1; fails_at_ <= 3; ++fails_at_) {
    const auto where = split_as({}, 2500);
    ASSERT_FALSE(where) << fails_at_;
    EXPECT_EQ(where.error().status, BITNET_INTERNAL);
    for (const char* words : {"backend cpu", "asking what it can compute", "lost its tables"})
      EXPECT_NE(where.error().message.find(words), std::string::npos) << where.error().message;
  }
}

TEST_F(splitting, says_why_the_rest_has_no_place) {
  keeper_.cpu = []() -> result<select::choice> { return fail(BITNET_UNAVAILABLE, "no cpu here"); };
  const auto where = split_as({}, 2500);
  ASSERT_FALSE(where);
  EXPECT_EQ(where.error().status, BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_NE(where.error().message.find("the layers that do not fit have no other place: no cpu"),
            std::string::npos)
      << where.error().message;
  keeper_.of_backend = [](uint32_t) -> result<select::choice> {
    return fail(BITNET_UNAVAILABLE, "no such device");
  };
  const auto shared = split_as({.shares = {1, 0, 1}}, UINT64_MAX);
  ASSERT_FALSE(shared);
  EXPECT_NE(shared.error().message.find("tensor_split has 3 shares"), std::string::npos)
      << shared.error().message;
}

}  // namespace
}  // namespace bitnet::engine
