// The pool of plugins/gpu-common over a driver that only counts.

#include "gpu-common/memory/memory_pool.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu-common/memory/pool_settings.hpp"
#include "gpu-common/opened.hpp"

namespace bitnet::gpu {
namespace {

struct counted final : buffer {
  counted(uint64_t bytes, memory_place where, int& alive)
      : memory(bytes, 0), host(where == memory_place::host), living(alive) {
    ++living;
  }
  ~counted() override { --living; }
  uint64_t size() const noexcept override { return memory.size(); }
  void* mapped() const noexcept override { return host ? memory.data() : nullptr; }
  mutable std::vector<uint8_t> memory;
  bool host;
  int& living;
};

struct counting_device : device {
  const facts& describe() const noexcept override { return about; }
  bitnet_status allocate(uint64_t bytes, memory_place where, std::unique_ptr<buffer>& out,
                         const sdk::reporter& report) override {
    if (full) return report.fail(BITNET_OUT_OF_DEVICE_MEMORY, "full");
    out = std::make_unique<counted>(bytes, where, alive);
    return BITNET_OK;
  }
  bitnet_status no(const sdk::reporter& report) { return report.fail(BITNET_UNSUPPORTED, "no"); }
  bitnet_status upload(buffer&, uint64_t, const void*, uint64_t, const sdk::reporter& r) override {
    return no(r);
  }
  bitnet_status download(const buffer&, uint64_t, void*, uint64_t,
                         const sdk::reporter& r) override {
    return no(r);
  }
  bitnet_status make_kernel(const kernel_spec&, std::unique_ptr<kernel>&,
                            const sdk::reporter& r) override {
    return no(r);
  }
  bitnet_status record(std::span<const command>, bool, std::unique_ptr<recording>&,
                       const sdk::reporter& r) override {
    return no(r);
  }
  bitnet_status make_queue(std::unique_ptr<queue>&, const sdk::reporter& r) override {
    return no(r);
  }
  facts about;
  int alive = 0;
  bool full = false;
};

class pool : public testing::Test {
 protected:
  pool() {
    table_.struct_size = sizeof table_;
    table_.self = this;
    table_.log = [](void* self, uint32_t, bitnet_str, bitnet_str message) {
      static_cast<pool*>(self)->logged_.emplace_back(message.data, message.size);
    };
    table_.parallel_width = [](void*) { return 1u; };
    table_.parallel_run = [](void*, uint32_t, bitnet_task, void*) { return bitnet_status{}; };
    table_.cancelled = [](void*, uint64_t) { return 0u; };
    table_.now_ns = [](void* self) { return static_cast<pool*>(self)->now_; };
  }
  lease take(memory_pool& from, uint64_t bytes, memory_place where = memory_place::device) {
    lease out;
    EXPECT_EQ(from.take(bytes, where, out, report_), BITNET_OK);
    return out;
  }

  bitnet_host_v0 table_{};
  uint64_t now_ = 1000;
  std::vector<std::string> logged_;
  const sdk::host host_{&table_};
  const sdk::reporter report_{nullptr, "test"};
  std::mutex lock_;
  sdk::budget lent_;
  counting_device driver_;
};

// What objects have, what lies idle, and what the driver reports of its own memory.
TEST_F(pool, is_reported_with_what_weights_and_blocks_have) {
  struct telling_device final : counting_device {
    bitnet_status status(bitnet_device_status& out, const sdk::reporter& r) const override {
      if (full) return r.fail(BITNET_DEVICE_LOST, "gone");
      out.known |= BITNET_STATUS_MEMORY;
      out.memory_total_bytes = 1000;
      return BITNET_OK;
    }
  };
  auto made = std::make_unique<telling_device>();
  telling_device& driver = *made;
  opened device(std::move(made), host_, "test", {}, 0);
  const auto ask = [&] {
    bitnet_device_status s{};
    EXPECT_EQ(device.status(s, report_), BITNET_OK);
    EXPECT_EQ(s.known, BITNET_STATUS_MEMORY | BITNET_STATUS_POOL | BITNET_STATUS_POOL_USE);
    EXPECT_EQ(s.memory_total_bytes, 1000u);
    return std::pair(s.pool_used_bytes, s.pool_bytes);
  };
  using sizes = std::pair<uint64_t, uint64_t>;  // used, in all
  EXPECT_EQ(ask(), sizes(0, 0));
  {
    holding weights(device.held_bytes, device.lent), blocks(device.held_bytes, device.lent);
    weights.add(500);
    weights.add(8);
    blocks.add(20);
    const lease step = take(device.pool, 100);
    EXPECT_EQ(ask(), sizes(628, 628));
  }
  EXPECT_EQ(ask(), sizes(0, 100)) << "a step's memory is kept for the next one";
  {
    const lease again = take(device.pool, 100), other = take(device.pool, 60);
  }
  bitnet_device_status use{};
  EXPECT_EQ(device.status(use, report_), BITNET_OK);
  EXPECT_EQ(use.pool_peak_bytes, 160u) << "of steps, without weights";
  EXPECT_EQ(use.pool_hits, 1u);
  EXPECT_EQ(use.pool_misses, 2u);
  driver.full = true;
  bitnet_device_status s{};
  EXPECT_EQ(device.status(s, report_), BITNET_DEVICE_LOST);
  EXPECT_EQ(s.known, 0u);
}

TEST_F(pool, a_config_has_the_documented_defaults) {
  const memory_pool_config c;
  EXPECT_EQ(c.max_pool_size, uint64_t{2} << 30);
  EXPECT_EQ(c.max_cached_buffers, 1000u);
  EXPECT_TRUE(c.enable_memory_tracking);
  EXPECT_EQ(c.cleanup_interval_ns, 30'000'000'000u);
}

TEST_F(pool, the_same_size_and_place_comes_from_the_cache) {
  memory_pool p(driver_, lock_, host_, lent_, {});
  const buffer* first = nullptr;
  {
    const lease a = take(p, 100);
    first = a.get();
  }
  EXPECT_EQ(driver_.alive, 1);
  const lease again = take(p, 100), other_place = take(p, 100, memory_place::host),
              other_size = take(p, 104);
  EXPECT_EQ(again.get(), first);
  const memory_stats s = p.stats();
  EXPECT_EQ(s.hits, 1u);
  EXPECT_EQ(s.misses, 3u);
  EXPECT_EQ(s.allocations, 3u);
  EXPECT_EQ(s.current_bytes, 304u);
  EXPECT_EQ(s.peak_bytes, 304u);
}

TEST_F(pool, memory_for_the_host_is_zeroed_again) {
  memory_pool p(driver_, lock_, host_, lent_, {});
  {
    const lease a = take(p, 8, memory_place::host);
    static_cast<uint8_t*>(a.get()->mapped())[3] = 7;
  }
  EXPECT_EQ(static_cast<uint8_t*>(take(p, 8, memory_place::host).get()->mapped())[3], 0);
}

TEST_F(pool, what_is_not_used_for_the_interval_is_freed) {
  memory_pool p(driver_, lock_, host_, lent_, {.cleanup_interval_ns = 50});
  {
    const lease a = take(p, 100);
  }
  now_ += 50;
  {
    const lease b = take(p, 200);
  }
  EXPECT_EQ(driver_.alive, 2);
  now_ += 1;  // the first is 51 old
  {
    const lease c = take(p, 300);
  }
  EXPECT_EQ(driver_.alive, 2);
  EXPECT_EQ(p.stats().frees, 1u);
  EXPECT_EQ(p.stats().freed_bytes, 100u);
}

TEST_F(pool, the_size_is_a_hard_limit) {
  memory_pool p(driver_, lock_, host_, lent_, {.max_pool_size = 1000});
  std::optional<lease> a = take(p, 600);
  lease b;
  EXPECT_EQ(p.take(500, memory_place::device, b, report_), BITNET_OUT_OF_DEVICE_MEMORY);
  a.reset();
  EXPECT_EQ(driver_.alive, 1) << "cached";
  b = take(p, 500);  // the cached one makes room
  EXPECT_EQ(driver_.alive, 1);
}

TEST_F(pool, what_the_device_may_hold_is_shared_with_weights) {
  sdk::budget lent(1000);
  memory_pool p(driver_, lock_, host_, lent, {});
  lent.take(300);  // weights
  std::optional<lease> a = take(p, 600);
  lease b;
  EXPECT_THROW(p.take(200, memory_place::device, b, report_), sdk::over_budget);
  EXPECT_EQ(lent.used(), 900u);
  a.reset();
  b = take(p, 200);  // the cached one makes room
  EXPECT_EQ(driver_.alive, 1);
  EXPECT_EQ(lent.used(), 500u);
  driver_.full = true;
  lease c;
  EXPECT_EQ(p.take(100, memory_place::device, c, report_), BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(lent.used(), 500u);
}

TEST_F(pool, no_more_buffers_are_cached_than_allowed) {
  memory_pool p(driver_, lock_, host_, lent_, {.max_cached_buffers = 2});
  {
    const lease a = take(p, 100), b = take(p, 200), c = take(p, 300);
  }
  EXPECT_EQ(driver_.alive, 2);
}

TEST_F(pool, none_is_cached_where_none_may_be) {
  memory_pool p(driver_, lock_, host_, lent_, {.max_cached_buffers = 0});
  {
    const lease a = take(p, 100), b = take(p, 200);
    EXPECT_EQ(driver_.alive, 2);
  }
  EXPECT_EQ(driver_.alive, 0);
  EXPECT_EQ(p.stats().idle_bytes, 0u);
}

// The user's words, and what they are rejected for.
TEST_F(pool, each_setting_is_read_or_rejected) {
  const struct {
    const char *key, *value;
    bool fine;
    memory_pool_config expected;
  } rows[] = {
      {"max_pool_size", "536870912", true, {.max_pool_size = 536870912}},
      {"max_pool_size", "512M", true, {.max_pool_size = 536870912}},
      {"max_pool_size", "1g", true, {.max_pool_size = 1'000'000'000}},
      {"max_pool_size", "3G", true, {.max_pool_size = uint64_t{3} << 30}},
      {"max_pool_size", "0", false, {}},  // no step could run
      {"max_pool_size", "M", false, {}},
      {"max_pool_size", "2GiB", false, {}},
      {"max_pool_size", "-1", false, {}},
      {"max_pool_size", " 1", false, {}},
      {"max_pool_size", "99999999999G", false, {}},  // would wrap
      {"max_cached_buffers", "0", true, {.max_cached_buffers = 0}},
      {"max_cached_buffers", "7", true, {.max_cached_buffers = 7}},
      {"max_cached_buffers", "1K", false, {}},
      {"max_cached_buffers", "4294967296", false, {}},
      {"cleanup_interval", "0", true, {.cleanup_interval_ns = 0}},
      {"cleanup_interval", "60", true, {.cleanup_interval_ns = 60'000'000'000}},
      {"cleanup_interval", "1.5", false, {}},
      {"cleanup_interval", "", false, {}},
      {"something", "else", true, {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.key) + "=" + row.value);
    memory_pool_config found;
    bitnet_error err{};
    err.struct_size = sizeof err;
    const bitnet_status status =
        read_pool_settings({{row.key, row.value}}, found, sdk::reporter(&err, "test"));
    EXPECT_EQ(status, row.fine ? BITNET_OK : BITNET_UNAVAILABLE);
    if (!row.fine) {
      const std::string said = std::string("setting ") + row.key + " is '" + row.value + "'";
      EXPECT_NE(std::string(err.message).find(said), std::string::npos) << err.message;
      continue;
    }
    EXPECT_EQ(found.max_pool_size, row.expected.max_pool_size);
    EXPECT_EQ(found.max_cached_buffers, row.expected.max_cached_buffers);
    EXPECT_EQ(found.cleanup_interval_ns, row.expected.cleanup_interval_ns);
  }
}

TEST_F(pool, a_driver_without_memory_is_said_and_counted_as_nothing) {
  memory_pool p(driver_, lock_, host_, lent_, {});
  driver_.full = true;
  lease a;
  EXPECT_EQ(p.take(100, memory_place::device, a, report_), BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_FALSE(a);
  driver_.full = false;
  EXPECT_EQ(p.stats().current_bytes, 0u);
  const lease b = take(p, 100);
  EXPECT_EQ(p.stats().current_bytes, 100u);
}

TEST_F(pool, what_is_never_given_back_is_said_at_the_end) {
  // In storage whose lease is never destroyed: it would give back to a pool that is gone.
  for (const bool tracked : {true, false}) {
    alignas(lease) std::byte storage[sizeof(lease)];
    auto* kept = new (storage) lease;
    {
      memory_pool p(driver_, lock_, host_, lent_, {.enable_memory_tracking = tracked});
      *kept = take(p, 100);
    }
    EXPECT_EQ(driver_.alive, 1);
    delete kept->get();
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_NE(logged_[0].find("100 bytes"), std::string::npos) << logged_[0];
  }
}

}  // namespace
}  // namespace bitnet::gpu
