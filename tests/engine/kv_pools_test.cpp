// The pools of an engine's parts, on a backend whose slots the test watches: which are made, of
// what size, and that none is left behind.

#include "engine/kv_pools.hpp"

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engines.hpp"
#include "patched_slot.hpp"

namespace bitnet::engine {
namespace {

using test::cuts;
using test::need;
using test::patched;

class pools : public test::hybrid_engines {
 protected:
  bitnet_kv_config config() {
    const limits most = need(limits_of(model_->shape(), wanted(), UINT32_MAX, 0));
    bitnet_kv_config kv = pool_of(model_->shape(), wanted(), most, 0);
    kv.n_blocks = 5;
    kv.n_states = 3;
    return kv;
  }
  static result<std::shared_ptr<const kv_pools>> make(const engine& e, const bitnet_kv_config& kv) {
    const std::lock_guard device_lock(e.device_mutex());
    return kv_pools::make(e, kv);
  }
};

TEST_F(pools, have_the_layers_of_their_part) {
  const uint64_t keys = model_->shape().n_attending(), states = model_->shape().state_elements();
  const struct {
    cuts at;
    std::vector<uint32_t> attending, states;  // layers of each part
  } rows[] = {
      {{}, {2}, {2}},
      {{1}, {0, 2}, {1, 1}},
      {{2}, {1, 1}, {1, 1}},
      {{3}, {1, 1}, {2, 0}},
      {{1, 2, 3}, {0, 1, 0, 1}, {1, 0, 1, 0}},
      {{0}, {0, 2}, {0, 2}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.at));
    const auto e = cut(row.at);
    std::vector<bitnet_kv_config> asked;
    patched<&bitnet_backend_v0::kv_pool_create> watched(
        *cpu_.backend, [&](auto* device, const auto* kv, auto** out, auto* err) {
          asked.push_back(*kv);
          return watched.sound(device, kv, out, err);
        });
    const auto all = need(make(*e, config()));
    EXPECT_EQ(all->config().n_layers, keys) << "that of all layers";
    std::size_t n_made = 0;
    uint64_t block_bytes = 0;
    for (std::size_t i = 0; i < row.attending.size(); ++i) {
      SCOPED_TRACE(i);
      const kv_pools::pool& one = all->of_part(i);
      EXPECT_EQ(one.has_keys, row.attending[i] != 0);
      EXPECT_EQ(one.has_states(), row.states[i] != 0);
      block_bytes += one.block_bytes();
      const bool is_made = row.attending[i] + row.states[i] != 0;
      EXPECT_EQ(one.made != nullptr, is_made);
      if (!is_made) continue;
      ASSERT_LT(n_made, asked.size());
      const bitnet_kv_config& kv = asked[n_made++];
      EXPECT_EQ(kv.n_layers, std::max(1U, row.attending[i])) << "the contract knows none without";
      EXPECT_EQ(kv.n_blocks, row.attending[i] == 0 ? 1U : 5U);
      EXPECT_EQ(kv.n_states, row.states[i] == 0 ? 0U : 3U);
      EXPECT_EQ(kv.state_elements, row.states[i] * states / 2);
      EXPECT_EQ(one.as_block(2), kv.n_blocks + 2);
    }
    EXPECT_EQ(n_made, asked.size());
    const uint64_t f16 = 2;
    EXPECT_EQ(block_bytes,
              keys * 64 * model_->shape().n_kv_heads * 2 * f16 * model_->shape().head_dim)
        << "together, what a block of the whole model has";
  }
}

// The second of three cannot be made: the first goes, and the message says what was tried where.
TEST_F(pools, that_cannot_all_be_made_leave_none) {
  const auto e = cut({1, 2});
  std::map<bitnet_kv_pool*, int> alive;
  int n = 0;
  patched<&bitnet_backend_v0::kv_pool_create> create(
      *cpu_.backend, [&](auto* device, const auto* kv, auto** out, auto* err) {
        if (++n == 2) return test::fail_with(err, BITNET_OUT_OF_DEVICE_MEMORY, "none left");
        const bitnet_status s = create.sound(device, kv, out, err);
        ++alive[*out];
        return s;
      });
  patched<&bitnet_backend_v0::kv_pool_destroy> destroy(*cpu_.backend, [&](auto* pool) {
    --alive[pool];
    destroy.sound(pool);
  });
  const auto made = make(*e, config());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, BITNET_OUT_OF_DEVICE_MEMORY);
  for (const char* words :
       {"backend cpu", "making room for the keys and values of 320 tokens", "none left"})
    EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
  ASSERT_EQ(alive.size(), 1U);
  EXPECT_EQ(alive.begin()->second, 0) << "the first one was given back";
  n = 2;
  {
    const auto all = need(make(*e, config()));
    int n_alive = 0;
    for (const auto& [pool, count] : alive) n_alive += count;
    EXPECT_EQ(n_alive, 3);
  }
  for (const auto& [pool, count] : alive) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace bitnet::engine
