#include "kv/eviction.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace bitnet::kv {
namespace {

const auto anyone = [](uint64_t) { return true; };

TEST(eviction, the_policies_differ_in_what_they_look_at) {
  const struct {
    eviction policy;
    uint64_t victim;
    const char* why;
  } rows[] = {{eviction::lru, 3, "3 was used the longest ago"},
              {eviction::fifo, 1, "1 came first"},
              {eviction::lfu, 2, "2 was used least often"}};
  for (const auto& row : rows) {
    eviction_order order(row.policy);
    for (const uint64_t s : {1, 3, 3, 2, 1, 1}) order.use(s);
    EXPECT_EQ(order.victim(anyone), row.victim) << row.why;
    EXPECT_NE(order.victim([&](uint64_t s) { return s != row.victim; }), row.victim);
    EXPECT_EQ(order.victim([](uint64_t) { return false; }), std::nullopt);
  }
}

// The slow, obvious versions: lists kept in the order of going.
struct by_lists {
  eviction policy;
  struct one {
    uint64_t sequence;
    int uses;
  };
  std::list<one> order;  // the first goes first

  void use(uint64_t s) {
    const auto at = std::ranges::find(order, s, &one::sequence);
    one it{s, 1};
    if (at != order.end()) {
      if (policy == eviction::fifo) return;
      it.uses = at->uses + 1;
      order.erase(at);
    }
    auto before = order.end();
    if (policy == eviction::lfu)  // behind all with as few uses
      before = std::ranges::find_if(order, [&](const one& o) { return o.uses > it.uses; });
    order.insert(before, it);
  }
  void remove(uint64_t s) {
    std::erase_if(order, [&](const one& o) { return o.sequence == s; });
  }
  template <class F>
  std::optional<uint64_t> victim(F may_go) const {
    for (const one& o : order)
      if (may_go(o.sequence)) return o.sequence;
    return std::nullopt;
  }
};

TEST(eviction, any_history_gives_the_victim_of_the_obvious_version) {
  for (const eviction policy : {eviction::lru, eviction::fifo, eviction::lfu}) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      std::mt19937 random(seed);
      eviction_order fast(policy);
      by_lists slow{policy, {}};
      for (int step = 0; step < 400; ++step) {
        const uint64_t s = random() % 7;
        const uint32_t busy = random();
        const auto idle = [&](uint64_t other) { return (busy >> other & 1) == 0; };
        switch (random() % 4) {
          case 0: {
            const auto victim = fast.victim(idle);
            ASSERT_EQ(victim, slow.victim(idle)) << "seed " << seed << ", step " << step;
            if (!victim) break;
            fast.remove(*victim);
            slow.remove(*victim);
            break;
          }
          case 1:
            if (random() % 4 != 0) break;
            fast.remove(s);
            slow.remove(s);
            break;
          default:
            fast.use(s);
            slow.use(s);
        }
        ASSERT_EQ(fast.victim(anyone), slow.victim(anyone)) << "seed " << seed << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace bitnet::kv
