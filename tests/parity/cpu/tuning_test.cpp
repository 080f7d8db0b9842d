// Settings that are measured: what can be adopted, that no result depends on them, and that a
// measurement beside load is not believed and never chooses what is slower.

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "../../scratch_folder.hpp"
#include "bitnet/abi/tuning.h"
#include "bitnet/sdk/interpreter/interfaces.hpp"
#include "forms.hpp"
#include "host.hpp"
#include "ops/last_level_cache.hpp"
#include "ops/ops.hpp"
#include "ops/timings.hpp"
#include "ops/tuning.hpp"
#include "room.hpp"

namespace bitnet::parity {
namespace {

constexpr const char* usual = "ahead=3072 tile_rows=64";

class tuned : public testing::Test {
 protected:
  tuned() { cpu::adopt_tuning(usual); }
  ~tuned() override { cpu::adopt_tuning(usual); }
};

TEST_F(tuned, adopts_what_it_wrote_and_nothing_else) {
  for (const std::string good : {"ahead=2048 tile_rows=16", "ahead=2048 tile_rows=16 stream=31.2",
                                 "ahead=8192 tile_rows=64 stream=9.87 unsettled=1700000000",
                                 "ahead=8192 tile_rows=64 stream=9.87 pages=small",
                                 "ahead=8192 tile_rows=64 fives=1 stream=9.87",
                                 "ahead=8192 tile_rows=64 fives=1 stream=9.87 fives:1=1.08~2",
                                 "ahead=2048 tile_rows=16 stream=404 ahead:2048=30.1~2 "
                                 "ahead:8192=29~0 tile_rows:16=201~15"}) {
    ASSERT_TRUE(cpu::adopt_tuning(good)) << good;
    EXPECT_EQ(cpu::describe_tuning(), good);
  }
  const std::string before = cpu::describe_tuning();
  for (const std::string bad : {"",
                                " ",
                                "ahead=4096",
                                "ahead=4096 ",
                                "ahead=4096 tile_rows=",
                                "ahead=4096 tile_rows=129",
                                "ahead=4097 tile_rows=64",
                                "tile_rows=64 ahead=4096",
                                "ahead=4096 tile_rows=64 ",
                                "ahead=-1 tile_rows=64",
                                "ahead=99999999999 tile_rows=64",
                                "ahead=4096 tile_rows=64  ",
                                "ahead=4096 tile_rows=64 what=1",
                                "ahead=4096 tile_rows=64 fives=0",
                                "ahead=4096 tile_rows=64 fives=",
                                "ahead=4096 tile_rows=64 fives:2=1~1",
                                "ahead=4096 tile_rows=64 stream=",
                                "ahead=4096 tile_rows=64 stream=-1",
                                "ahead=4096 tile_rows=64 stream=nan",
                                "ahead=4096 tile_rows=64 stream=inf",
                                "ahead=4096 tile_rows=64 unsettled=0",
                                "ahead=4096 tile_rows=64 pages=large",
                                "ahead=4096 tile_rows=64 unsettled=x",
                                "ahead=4096 tile_rows=64 ahead:4096=1",
                                "ahead=4096 tile_rows=64 ahead:4097=1~1",
                                "ahead=4096 tile_rows=64 ahead:4096=x~1",
                                "ahead=4096 tile_rows=64 ahead:4096=1~-1",
                                "ahead=4096 tile_rows=64 ahead:~="}) {
    EXPECT_FALSE(cpu::adopt_tuning(bad)) << bad;
    EXPECT_EQ(cpu::describe_tuning(), before) << bad;
  }
}

TEST_F(tuned, is_measured_again_ten_minutes_after_what_was_not_believed) {
  ASSERT_TRUE(cpu::adopt_tuning("ahead=8192 tile_rows=64 stream=31.2"));
  EXPECT_FALSE(cpu::tuning_is_due(2'000'000'000));
  ASSERT_TRUE(cpu::adopt_tuning("ahead=8192 tile_rows=64 unsettled=1700000000"));
  EXPECT_FALSE(cpu::tuning_is_due(1'700'000'000));
  EXPECT_FALSE(cpu::tuning_is_due(1'700'000'599));
  EXPECT_TRUE(cpu::tuning_is_due(1'700'000'600));
  EXPECT_TRUE(cpu::tuning_is_due(1'600'000'000)) << "the clock was set back";
}

TEST_F(tuned, results_do_not_depend_on_it) {
  constexpr uint64_t k = 640, m = 200, tokens = 37;
  std::mt19937 random(5);
  std::vector<uint8_t> codes(m * k / 4);
  for (uint8_t& c : codes)
    c = static_cast<uint8_t>((random() % 3) * 85);  // 00, 01 or 10 four times
  std::vector<int8_t> q(tokens * k);
  for (int8_t& v : q) v = static_cast<int8_t>(random() % 255 - 127);
  const std::vector<float> s(tokens, 3.0f), scales(m * k / 64, 0.5f);
  for (const uint64_t group : {0u, 64u}) {
    const sdk::weight w{BITNET_FORMAT_TERNARY2, k, m, codes.data(), k / 4, scales.data(), group};
    std::vector<float> expected;
    for (const char* text : {usual, "ahead=2048 tile_rows=16", "ahead=16384 tile_rows=128",
                             "ahead=4096 tile_rows=32"}) {
      ASSERT_TRUE(cpu::adopt_tuning(text));
      for (const cpu::isa_form* form : all_forms()) {
        std::vector<float> y(tokens * m);
        cpu::linear_ternary(*form, w, q.data(), s.data(),
                            {.tokens = tokens, .first = 0, .last = m, .y = y.data()},
                            product_room());
        if (expected.empty()) expected = y;
        ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin(), expected.end()))
            << text << ' ' << form->name;
      }
    }
  }
}

TEST_F(tuned, measuring_ends_with_what_can_be_adopted) {
  if (emulated()) GTEST_SKIP() << "measures the emulator";
  const tiny_host host(2);
  const std::string doubt =
      cpu::measure_tuning(*all_forms().front(), sdk::host(host.table()), 1'000'000);
  const std::string found = cpu::describe_tuning();
  EXPECT_LT(found.size(), BITNET_TUNING_TEXT_BYTES);
  EXPECT_NE(found.find(" tile_rows:128="), std::string::npos) << found;
  EXPECT_EQ(found.find("unsettled=") == std::string::npos, doubt.empty()) << found;
  EXPECT_TRUE(cpu::adopt_tuning(found)) << found;
  EXPECT_EQ(cpu::describe_tuning(), found);
  printf("measured: %s (%s)\n", found.c_str(), doubt.c_str());
}

TEST_F(tuned, a_cancelled_measurement_changes_nothing) {
  if (emulated()) GTEST_SKIP() << "measures the emulator";
  ASSERT_TRUE(cpu::adopt_tuning("ahead=4096 tile_rows=128"));
  const std::string before = cpu::describe_tuning();
  tiny_host threads(1);
  bitnet_host_v0 services = *threads.table();
  static int questions;
  questions = 0;
  services.cancelled = [](void*, uint64_t) { return uint32_t{++questions > 1}; };
  sdk::definition author;
  author.tuning = {cpu::describe_tuning,
                   [](const void* author_data, const sdk::host& host, uint64_t ns, uint64_t token) {
                     return cpu::measure_tuning(*static_cast<const cpu::isa_form*>(author_data),
                                                host, ns, token);
                   },
                   cpu::adopt_tuning, nullptr};
  author.author_data = all_forms().front();
  const sdk::host host(&services);
  sdk::interpreter::device device(author, host, 0);
  bitnet_error err{};
  err.struct_size = sizeof err;
  EXPECT_EQ(sdk::interpreter::tuning.measure(reinterpret_cast<bitnet_device*>(&device), UINT64_MAX,
                                             1, &err),
            BITNET_CANCELLED);
  EXPECT_EQ(cpu::describe_tuning(), before);
}

// A clock that a test makes go: each look costs what the settings of the moment are said to.
class clocked_host {
 public:
  using cost = std::function<uint64_t(const cpu::tuning&, uint64_t look)>;
  explicit clocked_host(cost of) : cost_(std::move(of)), table_(*threads_.table()) {
    current = this;
    table_.now_ns = [](void*) {
      current->now_ += current->cost_(cpu::current_tuning(), current->looks_++);
      return current->now_;
    };
  }
  std::string measure(bool large_pages = true) const {  // as few rounds as there may be
    return cpu::measure_tuning(*all_forms().front(), sdk::host(&table_), 1, 0, large_pages);
  }

 private:
  static inline clocked_host* current = nullptr;
  tiny_host threads_{1};
  cost cost_;
  bitnet_host_v0 table_;
  uint64_t now_ = 0, looks_ = 0;
};

TEST_F(tuned, takes_what_is_faster_and_only_that) {
  if (emulated()) GTEST_SKIP() << "streams more than an emulator can in time";
  const auto found = [](clocked_host::cost cost) {
    cpu::adopt_tuning(usual);
    EXPECT_EQ(clocked_host(std::move(cost)).measure(), "");
    return cpu::current_tuning();
  };
  constexpr uint64_t ms = 1'000'000;
  EXPECT_EQ(found([](const cpu::tuning&, uint64_t) { return ms; }), cpu::tuning{});
  EXPECT_EQ(
      found([](const cpu::tuning& t, uint64_t) { return t.ahead == 4096 ? ms * 8 / 10 : ms; }),
      (cpu::tuning{4096, 64}));
  EXPECT_EQ(
      found([](const cpu::tuning& t, uint64_t) { return t.tile_rows == 128 ? ms * 9 / 10 : ms; }),
      (cpu::tuning{3072, 128}));
  EXPECT_EQ(
      found([](const cpu::tuning& t, uint64_t) { return t.ahead == 16384 ? ms * 98 / 100 : ms; }),
      cpu::tuning{})
      << "2 % are noise";
  const bool has = cpu::has_fives(*all_forms().front());
  const auto with_fives = [&](uint64_t time) {
    return found([=](const cpu::tuning& t, uint64_t) { return t.fives ? time : ms; }).fives;
  };
  EXPECT_EQ(with_fives(ms * 9 / 10), has);
  EXPECT_EQ(cpu::describe_tuning().find(" fives=1 ") != std::string::npos, has);
  EXPECT_EQ(cpu::describe_tuning().find(" fives:1=1.11~0") != std::string::npos, has);
  EXPECT_FALSE(with_fives(ms * 98 / 100));
  EXPECT_FALSE(with_fives(ms * 2));
}

// What has no room is left out from the end, and what is left can be adopted.
TEST_F(tuned, the_text_has_room_for_what_counts) {
  std::string text =
      "ahead=16384 tile_rows=128 fives=1 stream=31.2 unsettled=1700000000 pages=small";
  for (int i = 0; i < 12; ++i) text += " ahead:16384=31.2~99";
  ASSERT_TRUE(cpu::adopt_tuning(text));
  const std::string found = cpu::describe_tuning();
  EXPECT_LT(found.size(), BITNET_TUNING_TEXT_BYTES);
  EXPECT_GT(found.size() + 20, BITNET_TUNING_TEXT_BYTES);
  EXPECT_TRUE(text.starts_with(found)) << found;
  ASSERT_TRUE(cpu::adopt_tuning(found)) << found;
  EXPECT_TRUE(cpu::current_tuning().fives);
}

TEST_F(tuned, does_not_believe_repetitions_that_differ) {
  if (emulated()) GTEST_SKIP() << "streams more than an emulator can in time";
  const clocked_host host([](const cpu::tuning& t, uint64_t look) {
    // Two of five repetitions of each candidate, whose turns go round: more than a quarter.
    const bool slow = look % 5 < 2;
    return uint64_t{1'000'000} * (t.ahead == 4096 ? 1 : 2) * (slow ? 3 : 1);
  });
  EXPECT_NE(host.measure().find("another program is computing"), std::string::npos);
  EXPECT_EQ(cpu::current_tuning(), cpu::tuning{});
  EXPECT_NE(cpu::describe_tuning().find("unsettled="), std::string::npos);
}

TEST_F(tuned, does_not_believe_a_memory_far_below_its_best) {
  if (emulated()) GTEST_SKIP() << "streams more than an emulator can in time";
  const auto slower_by = [](uint64_t times, uint64_t usual_time = 105) {
    return clocked_host([=](const cpu::tuning& t, uint64_t) {
             return uint64_t{10'000} * times * (t.ahead == 4096 ? 100 : usual_time);
           })
        .measure();
  };
  EXPECT_EQ(slower_by(1), "");
  EXPECT_EQ(cpu::current_tuning().ahead, 4096u);
  EXPECT_NE(slower_by(2).find("at its best"), std::string::npos);
  EXPECT_EQ(cpu::current_tuning(), cpu::tuning{}) << "the usual settings";
  const std::string kept = cpu::describe_tuning();
  // The best is remembered with the settings.
  ASSERT_TRUE(cpu::adopt_tuning(kept)) << kept;
  EXPECT_NE(slower_by(2), "");
  EXPECT_EQ(slower_by(1), "");
  EXPECT_EQ(cpu::current_tuning().ahead, 4096u);
  EXPECT_NE(slower_by(2, 115), "");
  EXPECT_EQ(cpu::current_tuning().ahead, 4096u)
      << "far faster in each round, even while others read";
  EXPECT_NE(cpu::describe_tuning().find("unsettled="), std::string::npos);
}

// Kilobytes of this process that lie in large pages; 0 where the system does not say.
uint64_t in_large_pages() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;)
    if (uint64_t kilobytes = 0; word == "AnonHugePages:" && file >> kilobytes) return kilobytes;
  return 0;
}

TEST_F(tuned, is_measured_in_the_pages_that_are_asked_for) {
  if (emulated()) GTEST_SKIP() << "streams more than an emulator can in time";
  uint64_t most = 0;
  const auto measure = [&](bool large_pages, uint64_t times) {
    most = 0;
    return clocked_host([&, times](const cpu::tuning&, uint64_t) {
             most = std::max(most, in_large_pages());
             return uint64_t{1'000'000} * times;
           })
        .measure(large_pages);
  };
  const uint64_t before = in_large_pages();
  EXPECT_EQ(measure(true, 1), "");
  EXPECT_EQ(cpu::describe_tuning().find("pages="), std::string::npos);
  EXPECT_EQ(measure(false, 2), "") << "the best of large pages says nothing of small ones";
  EXPECT_LT(most, before + 16'384) << "large pages, and none were to be asked for";
  const std::string found = cpu::describe_tuning();
  EXPECT_NE(found.find(" pages=small"), std::string::npos) << found;
  EXPECT_TRUE(cpu::adopt_tuning(found));
  EXPECT_NE(measure(false, 4), "") << "and is remembered for them";
}

TEST(timings, the_best_is_faster_in_most_rounds) {
  using cpu::best_of;
  EXPECT_EQ(best_of({{100, 100, 100, 100}, {90, 90, 90, 90}}, 0), 1u);
  EXPECT_EQ(best_of({{100, 100, 100, 100}, {98, 98, 98, 98}}, 0), 0u);
  EXPECT_EQ(best_of({{100, 300, 100, 300}, {101, 200, 101, 200}}, 0), 0u)
      << "faster only where the usual one was disturbed";
  EXPECT_EQ(best_of({{50, 200, 80, 100}, {45, 180, 72, 90}}, 0), 1u) << "beside each other";
  EXPECT_EQ(best_of({{80, 80, 80, 80}, {100, 100, 100, 100}, {70, 70, 70, 70}}, 1), 2u);
  EXPECT_EQ(best_of({{}, {}}, 1), 1u);
  EXPECT_EQ(best_of({{100, 100, 100, 100}, {91, 91, 91, 91}}, 0, cpu::strong_proof), 0u);
  EXPECT_EQ(best_of({{100, 100, 100, 100}, {89, 89, 89, 89}}, 0, cpu::strong_proof), 1u);
  EXPECT_EQ(best_of({{100, 100, 100, 100}, {50, 50, 50, 101}}, 0, cpu::strong_proof), 0u);
  EXPECT_NEAR(cpu::spread({100, 100, 100, 100, 200}), 0, 1e-9);
  EXPECT_NEAR(cpu::spread({80, 90, 100, 110, 120}), 0.2, 1e-9);
}

class caches : public testing::Test {
 protected:
  void plant(int cpu, int index, const char* level, const char* type, const char* size,
             const char* shared) const {
    const auto folder = std::filesystem::path("cpu" + std::to_string(cpu)) / "cache" /
                        ("index" + std::to_string(index));
    const std::string end = "\n";
    root_.write(folder / "level", level + end);
    root_.write(folder / "type", type + end);
    root_.write(folder / "size", size + end);
    root_.write(folder / "shared_cpu_list", shared + end);
  }
  [[nodiscard]] uint64_t last_level_bytes() const {
    return cpu::last_level_cache_bytes(root_.path().c_str());
  }
  test::scratch_folder root_;
};

TEST_F(caches, the_last_ones_are_added_once_each) {
  std::filesystem::create_directories(root_.path() / "cpufreq");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const char* shared = cpu < 2 ? "0-1" : "2-3";
    plant(cpu, 0, "1", "Data", "32K", std::to_string(cpu).c_str());
    plant(cpu, 1, "1", "Instruction", "64K", std::to_string(cpu).c_str());
    plant(cpu, 2, "2", "Unified", "1024K", std::to_string(cpu).c_str());
    plant(cpu, 3, "3", "Unified", cpu < 2 ? "36608K" : "96M", shared);
  }
  EXPECT_EQ(last_level_bytes(), (36608u << 10) + (96u << 20));
}

TEST_F(caches, a_machine_without_a_third_level_has_a_second) {
  plant(0, 0, "1", "Data", "32K", "0");
  plant(0, 1, "2", "Unified", "512K", "0-1");
  plant(1, 0, "1", "Data", "32K", "1");
  plant(1, 1, "2", "Unified", "512K", "0-1");
  EXPECT_EQ(last_level_bytes(), 512u << 10);
}

TEST_F(caches, what_cannot_be_read_is_taken_from_elsewhere) {
  EXPECT_GT(last_level_bytes(), 0u);
  plant(0, 0, "x", "Unified", "-1K", "0");
  plant(0, 1, "3", "Unified", "99999999999999G", "0");
  EXPECT_GT(last_level_bytes(), 0u);
  EXPECT_LT(last_level_bytes(), uint64_t{1} << 40);
}

}  // namespace
}  // namespace bitnet::parity
