// A backend is installed again and again, well and badly, while four sessions generate. None may
// fail, and each text must be what it would have been. What a reload leaves behind is counted by
// holdings_test.cpp.
//
// BITNET_RELOADS  how many reloads; 60 unless set, 1000 is the long form

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <thread>

#include "mishaps.hpp"

namespace bitnet::test {
namespace {

constexpr int32_t length = 32;
constexpr std::array<const char*, 4> prompts = {
    "Once upon a time there was a", "Tell me a story about a mole", "The sun was warm and the cat",
    "Lily and Tom went to the park"};

class soak : public testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  }

  mishap_yard yard_;
};

struct figures {
  std::vector<double> ms;
  void print(const char* what) {
    if (ms.empty()) return;
    std::ranges::sort(ms);
    std::printf("  %-34s %6zu times, median %8.3f ms, largest %8.3f ms\n", what, ms.size(),
                ms[ms.size() / 2], ms.back());
  }
};

TEST_F(soak, four_sessions_and_many_reloads) {
  const char* wanted = std::getenv("BITNET_RELOADS");
  const int reloads = wanted == nullptr ? 60 : std::atoi(wanted);
  program p(yard_, "cpu");
  std::array<std::string, prompts.size()> undisturbed;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    undisturbed[i] = conversation(p).tell(prompts[i], length);

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> texts{0}, wrong{0}, failed{0};
  std::mutex turn;  // guards what follows
  figures token, copies, recomputations, migrations;
  std::string first_failure;
  const auto note = [&](const nlohmann::json& report, uint64_t from) {
    const std::scoped_lock lock(turn);
    if (!report.contains("moves")) return uint64_t{0};
    const auto& moves = report["moves"];
    const uint64_t before = report.value("moves_before", uint64_t{0});
    for (uint64_t i = from > before ? from - before : 0; i < moves.size(); ++i) {
      const bool copied = moves[i]["method"] == "migrate";
      (copied ? migrations : recomputations).ms.push_back(moves[i]["pause_ms"]);
      if (copied && moves[i].contains("copy_ms")) copies.ms.push_back(moves[i]["copy_ms"]);
    }
    return before + moves.size();
  };
  const auto talk = [&](std::size_t who) {
    // Two keep their session through all reloads; two open one for each text.
    std::unique_ptr<conversation> c;
    uint64_t noted = 0;
    while (!stop) try {
        if (!c) c = std::make_unique<conversation>(p), noted = 0;
        c->forget();
        const std::string text = c->tell(prompts[who], length);
        ++texts;
        if (text != undisturbed[who]) ++wrong;
        noted = note(c->report(), noted);
        {
          const std::scoped_lock lock(turn);
          token.ms.push_back(static_cast<double>(c->result.generate_ns) / 1e6 / length);
        }
        if (who % 2 == 1) c.reset();
      } catch (const failed_call& e) {
        ++failed;
        const std::scoped_lock lock(turn);
        if (first_failure.empty()) first_failure = e.what();
        c.reset();
      }
  };

  std::map<std::string, int> refused, taken;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < prompts.size(); ++i) threads.emplace_back(talk, i);
    for (int i = 0; i < reloads; ++i) {
      const std::size_t which = static_cast<std::size_t>(i) % mishaps.size();
      const mishap& m = mishaps[which];
      if (m.to_the_loaded_file) {
        yard_.happen(0);
        EXPECT_EQ(p.reload("cpu")["changed"], true);
      }
      yard_.happen(which);
      bitnet_reload_options o;
      bitnet_reload_defaults(&o, sizeof o);
      o.policy = static_cast<uint32_t>(i / static_cast<int>(mishaps.size())) % 3;
      o.most_old_copies = 16;  // as many as sessions may stay on, and some that are closing
      bool changed = false;
      try {
        changed = p.reload("cpu", o)["changed"];
      } catch (const failed_call& e) {
        ++refused[m.name];
        if (m.taken) ADD_FAILURE() << m.name << ": " << e.what();
      }
      taken[m.name] += changed ? 1 : 0;
      EXPECT_EQ(changed, m.taken) << m.name;
      if (!m.taken) yard_.repair();
      // Sessions shall come to speak between two reloads, however busy the machine is.
      const uint64_t heard = texts;
      for (int ms = 0; texts < heard + 2 && failed == 0 && ms < 60'000; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    stop = true;
  }

  std::printf("%d reloads, %llu texts of %d tokens\n", reloads,
              static_cast<unsigned long long>(texts.load()), length);
  for (const mishap& m : mishaps)
    std::printf("  %-44s taken %4d, refused %4d\n", m.name, taken[m.name], refused[m.name]);
  token.print("a token");
  migrations.print("pause, migrate");
  copies.print("  of that, copying keys and values");
  recomputations.print("pause, recompute, with its token");

  EXPECT_EQ(failed, 0u) << first_failure;
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(migrations.ms.size(), 0u);
  EXPECT_GT(recomputations.ms.size(), 0u);
  // Every copy that was replaced is gone from memory.
  const auto states = p.generations("cpu");
  EXPECT_EQ(std::ranges::count(states, "active"), 1);
  EXPECT_EQ(std::ranges::count(states, "retired"), 0);
  EXPECT_EQ(std::ranges::count(states, "draining"), 0);
}

}  // namespace
}  // namespace bitnet::test
