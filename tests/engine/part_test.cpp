// A part of a model on a device of the test's own: what it is asked for, what it gets of the
// weights and how, and what is left of a load that fails.

#include "engine/part.hpp"

#include <map>
#include <optional>
#include <set>
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

// What each tensor of a device got, in the order of the calls.
struct received {
  uint64_t written = 0, aliased = 0;
  bool sealed = false;
};

class parts : public test::hybrid_engines {
 protected:
  std::unique_ptr<part> open_part(bool copies = false) {
    return need(part::open(cpu_, *model_, copies));
  }
  result<void> load_part(part& p, const part::progress& report = {}) {
    return p.load(report, nullptr, false, need(model_->hold_scales()));
  }
  [[nodiscard]] model::section of(uint32_t first, uint32_t last) const {
    return {.first = first, .last = last, .embedding = first == 0, .lm_head = last == n_layers()};
  }
};

TEST_F(parts, give_a_device_all_bytes_of_their_section_once) {
  for (const auto& [first, last] : {std::pair{0U, 4U}, {0U, 2U}, {2U, 4U}, {1U, 3U}}) {
    SCOPED_TRACE(fmt::format("{} to {}", first, last));
    const auto p = open_part();
    p->take(of(first, last));
    std::map<uint32_t, received> got;
    std::vector<bitnet_tensor_desc> described;
    patched<&bitnet_backend_v0::weights_create> creates(
        *cpu_.backend, [&](auto* device, const auto* request, auto** out, auto* err) {
          described.assign(request->descs, request->descs + request->n);
          return creates.sound(device, request, out, err);
        });
    patched<&bitnet_backend_v0::weight_write> writes(
        *cpu_.backend, [&](auto* w, auto i, auto offset, const auto* data, auto bytes, auto* err) {
          EXPECT_EQ(offset, got[i].written) << "without gaps";
          EXPECT_FALSE(got[i].sealed);
          got[i].written += bytes;
          return writes.sound(w, i, offset, data, bytes, err);
        });
    patched<&bitnet_backend_v0::weight_alias> aliases(
        *cpu_.backend, [&](auto* w, auto i, const auto* data, auto bytes, auto* err) {
          got[i].aliased += bytes;
          return aliases.sound(w, i, data, bytes, err);
        });
    patched<&bitnet_backend_v0::weight_seal> seals(*cpu_.backend, [&](auto* w, auto i, auto* err) {
      EXPECT_FALSE(std::exchange(got[i].sealed, true)) << "once";
      return seals.sound(w, i, err);
    });
    uint64_t reported = 0, total = 0;
    need(load_part(*p, [&](uint64_t done, uint64_t of) {
      EXPECT_GE(done, reported) << "progress does not go back";
      reported = done;
      total = of;
      return true;
    }));
    uint64_t bytes = 0;
    ASSERT_EQ(got.size(), described.size());
    for (const auto& [i, one] : got) {
      EXPECT_EQ(one.written + one.aliased, described[i].data_bytes);
      EXPECT_TRUE(one.written == 0 || one.aliased == 0) << "one way or the other";
      EXPECT_TRUE(one.sealed);
      bytes += described[i].data_bytes;
    }
    EXPECT_EQ(reported, bytes);
    EXPECT_EQ(total, bytes);
    EXPECT_EQ(p->weight_bytes(), bytes);
    EXPECT_EQ(p->has().all(), bytes);
    EXPECT_EQ(p->has().layers.size(), last - first);
  }
}

// The graph of a section names the weights as the device counts them.
TEST_F(parts, have_graphs_of_their_own_weights) {
  const auto whole = open_part();
  const auto p = open_part();
  p->take(of(1, 3));
  const compute::graph all = whole->graph(256, model::ending::logits);
  const compute::graph mine = p->graph(256, model::ending::logits);
  EXPECT_LT(mine.ops.size(), all.ops.size());
  std::set<uint32_t> read;
  for (const bitnet_op& o : mine.ops)
    for (const uint32_t w : o.weights)
      if (w != BITNET_NONE) read.insert(w);
  ASSERT_FALSE(read.empty());
  EXPECT_EQ(*read.begin(), 0U);
  EXPECT_EQ(*read.rbegin(), read.size() - 1) << "numbered without gaps";
}

TEST_F(parts, stop_where_the_callback_stops_them) {
  const auto p = open_part();
  int n = 0;
  const auto stopped = load_part(*p, [&](uint64_t, uint64_t) { return ++n < 4; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().status, BITNET_CANCELLED);
  EXPECT_EQ(n, 4);
}

// Each call of a load fails once, at each tensor that it is for.
TEST_F(parts, that_cannot_be_loaded_say_which_tensor) {
  const auto expect_failure = [&](const char* doing) {
    const auto p = open_part();
    const auto ok = load_part(*p);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().status, BITNET_OUT_OF_DEVICE_MEMORY);
    for (const char* words : {doing, "all is full"})
      EXPECT_NE(ok.error().message.find(words), std::string::npos) << ok.error().message;
  };
  const auto full = [](bitnet_error* err) {
    return fail_with(err, BITNET_OUT_OF_DEVICE_MEMORY, "all is full");
  };
  {
    const patched<&bitnet_backend_v0::weight_plan> fails(
        *cpu_.backend, [&](auto*, const auto*, auto*, auto* err) { return full(err); });
    expect_failure("tensor token_embd.weight");
  }
  {
    const patched<&bitnet_backend_v0::weights_create> fails(
        *cpu_.backend, [&](auto*, const auto*, auto**, auto* err) { return full(err); });
    expect_failure("making room for the weights");
  }
  {
    const patched<&bitnet_backend_v0::weight_seal> fails(
        *cpu_.backend, [&](auto*, auto, auto* err) { return full(err); });
    expect_failure("tensor token_embd.weight");
  }
  const auto p = open_part();
  EXPECT_TRUE(load_part(*p)) << "nothing of it stays";
}

TEST_F(parts, are_rejected_where_the_device_lacks_an_op) {
  const auto p = open_part();
  EXPECT_TRUE(p->check_support());
  const patched<&bitnet_backend_v0::graph_query> lacks(
      *cpu_.backend, [](auto*, const auto* request, auto* levels, auto*, auto*) {
        for (uint32_t i = 0; i < request->graph->n_ops; ++i)
          levels[i] = i == 3 ? BITNET_LEVEL_NONE : BITNET_LEVEL_REFERENCE;
        return bitnet_status{BITNET_OK};
      });
  const auto rejected = p->check_support();
  ASSERT_FALSE(rejected);
  EXPECT_EQ(rejected.error().status, BITNET_UNSUPPORTED) << rejected.error().message;
}

TEST_F(parts, need_what_the_device_estimates) {
  const auto p = open_part();
  const limits most = need(limits_of(model_->shape(), wanted(), UINT32_MAX, 0));
  bitnet_kv_config pool = pool_of(model_->shape(), wanted(), most, 0);
  const bitnet_kv_config* asked = nullptr;
  patched<&bitnet_backend_v0::graph_query> estimates(
      *cpu_.backend, [&](auto* device, const auto* request, auto* levels, auto* out, auto* err) {
        asked = request->kv;
        const bitnet_status s = estimates.sound(device, request, levels, out, err);
        out->weight_bytes = 1000;
        out->scratch_bytes = 200;
        out->kv_block_bytes = 30;
        out->state_bytes = 7;
        return s;
      });
  const part::demand all = need(p->needs(wanted(), most, pool));
  EXPECT_EQ(all.weights, 1000U);
  EXPECT_EQ(all.steps, 200U);
  EXPECT_EQ(all.kv, 30U * pool.n_blocks + 7U * pool.n_states);
  EXPECT_EQ(all.all(), all.weights + all.steps + all.kv);
  p->take({.first = 4, .last = 4, .embedding = false, .lm_head = true});
  EXPECT_EQ(need(p->needs(wanted(), most, pool)).kv, 0U) << "no layer keeps anything";
  EXPECT_EQ(asked, nullptr);
}

TEST_F(parts, have_the_room_that_the_device_reports_or_its_size) {
  cpu_.device.device_class = BITNET_DEVICE_GPU;
  struct row {
    uint64_t size;
    uint32_t known;
    uint64_t free;
    std::optional<uint64_t> room;
    const char* why;
  };
  for (const row& r :
       {row{0, 0, 0, std::nullopt, "nothing is known"}, row{5000, 0, 0, 5000, "its size"},
        row{5000, BITNET_STATUS_MEMORY, 3000, 3000, "what is free"},
        row{5000, BITNET_STATUS_MEMORY, 9000, 5000, "no more than its size"},
        row{0, BITNET_STATUS_MEMORY, 3000, 3000, "what is free of no size"}}) {
    cpu_.device.memory_total_bytes = r.size;
    const patched<&bitnet_backend_v0::device_status> answers(
        *cpu_.backend, [&](auto*, auto* out, auto*) {
          out->known = r.known;
          out->memory_total_bytes = r.known == 0 ? 0 : 10000;
          out->memory_free_bytes = r.free;
          return bitnet_status{BITNET_OK};
        });
    EXPECT_EQ(open_part()->room(), r.room) << r.why;
    EXPECT_EQ(open_part()->free_memory(), 0U) << "contexts are not planned by that";
  }
}

TEST_F(parts, that_cannot_be_opened_say_which_device) {
  const patched<&bitnet_backend_v0::device_open> fails(
      *cpu_.backend, [](auto*, const auto*, auto**, auto* err) {
        return fail_with(err, BITNET_UNAVAILABLE, "it is asleep");
      });
  const auto p = part::open(cpu_, *model_);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().status, BITNET_UNAVAILABLE);
  for (const char* words : {"backend cpu", "opening device 0", "it is asleep"})
    EXPECT_NE(p.error().message.find(words), std::string::npos) << p.error().message;
}

}  // namespace
}  // namespace bitnet::engine
