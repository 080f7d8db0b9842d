// What a reload leaves behind: allocations, mapped files, descriptors and threads are counted after
// each round of everything that installers do. This process does nothing else, so that a copy of a
// plugin that is never let go, or one lost descriptor, is seen.
//
// BITNET_RELOADS  how many reloads; 33 unless set, 1000 is the long form

#include <cstdio>
#include <thread>
#include <utility>

#include "counted_memory.hpp"
#include "mishaps.hpp"

namespace bitnet::test {
namespace {

constexpr int32_t length = 8;
const std::string prompt = "Once upon a time there was a";

// One reload with a session before, one through it and one behind it; none of them stays.
void reload_once(program& p, mishap_yard& yard, std::size_t which, uint32_t policy) {
  const mishap& m = mishaps.at(which);
  SCOPED_TRACE(m.name);
  {
    conversation c(p);
    c.generate(prompt, length);
    if (m.to_the_loaded_file) {
      yard.happen(0);
      EXPECT_EQ(p.reload("cpu", policy)["changed"], true);
    }
    yard.happen(which);
    bool changed = false;
    std::string rejection;
    try {
      changed = p.reload("cpu", policy)["changed"];
    } catch (const failed_call& e) {
      rejection = e.what();
    }
    EXPECT_EQ(changed, m.taken) << rejection;
    c.generate("", length);
  }
  if (!m.taken) {
    yard.repair();
    p.reload("cpu", policy);
  }
  conversation(p).generate(prompt, length);
}

// Copies of the backend that are there; of those that are gone or failed a few are reported.
std::vector<std::string> copies(program& p) {
  auto states = p.generations("cpu");
  std::erase_if(states, [](const auto& s) { return s == "failed" || s == "unloaded"; });
  return states;
}

// Copies that no session uses are closed by a thread of the library.
void await_the_end_of_old_copies(program& p) {
  for (int ms = 0; copies(p).size() > 1 && ms < 10'000; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(copies(p), std::vector<std::string>{"active"});
}

// That thread may still hold what it closes a moment later: counted until nothing changes.
holdings count_at_rest() {
  holdings now = count_holdings();
  for (int tries = 0; tries < 200; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const holdings before = std::exchange(now, count_holdings());
    if (now == before) break;
  }
  return now;
}

TEST(holdings, do_not_grow_with_reloads) {
  if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  const char* wanted = std::getenv("BITNET_RELOADS");
  const int per_round = static_cast<int>(mishaps.size());
  constexpr int warm_up = 3;  // rounds, one with each policy
  const int rounds = warm_up + (wanted == nullptr ? 33 : std::atoi(wanted)) / per_round;
  mishap_yard yard;
  program p(yard, "cpu");
  holdings first, last;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t which = 0; which < mishaps.size(); ++which)
      reload_once(p, yard, which, static_cast<uint32_t>(round) % 3);
    await_the_end_of_old_copies(p);
    p.forget_log();
    last = count_at_rest();
    if (round + 1 == warm_up) first = last;
    std::printf(
        "round %3d: %lld allocations of %lld bytes, %lld mapped files, %lld descriptors, "
        "%lld threads\n",
        round, static_cast<long long>(last.allocations), static_cast<long long>(last.bytes),
        static_cast<long long>(last.mappings), static_cast<long long>(last.descriptors),
        static_cast<long long>(last.threads));
  }
  // On a busy machine a thread can be stopped in the midst of reading a folder, for longer than the
  // counts above waited.
  for (int tries = 0; last.descriptors > first.descriptors && tries < 500; ++tries)
    last = count_at_rest();
  EXPECT_EQ(last.descriptors, first.descriptors);
  EXPECT_EQ(last.threads, first.threads);
  if (!counts_memory) return;
  EXPECT_EQ(last.mappings, first.mappings);
  // glibc 2.36 adds 1 KiB to its table of TLS modules after some 50 libraries that came and went.
  const int reloads = (rounds - warm_up) * per_round;
  const int tables = 2 + reloads / 40;
  EXPECT_LE(last.allocations - first.allocations, tables);
  EXPECT_LE(last.bytes - first.bytes, tables * int64_t{1100});
}

}  // namespace
}  // namespace bitnet::test
