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

// Sessions that generate texts one after the other, each on a thread, and how long each wait takes.
class talkers {
 public:
  explicit talkers(program& p) : p_(p) {
    for (std::size_t i = 0; i < prompts.size(); ++i)
      undisturbed_[i] = conversation(p).generate(prompts[i], length);
  }
  talkers(const talkers&) = delete;
  talkers& operator=(const talkers&) = delete;
  ~talkers() { stop(); }

  void start() {
    for (std::size_t i = 0; i < prompts.size(); ++i) threads_.emplace_back([this, i] { talk(i); });
  }
  // Sessions shall come to speak between two reloads, however busy the machine is.
  void let_them_speak() const {
    const uint64_t heard = texts_;
    for (int ms = 0; texts_ < heard + 2 && failed_ == 0 && ms < 60'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void stop() {
    stop_ = true;
    threads_.clear();
  }

  // After stop().
  [[nodiscard]] uint64_t texts() const { return texts_; }
  void print() {
    token_.print("a token");
    migrations_.print("pause, migrate");
    copies_.print("  of that, copying keys and values");
    recomputations_.print("pause, recompute, with its token");
  }
  void expect_all_well() const {
    EXPECT_EQ(failed_, 0u) << first_failure_;
    EXPECT_EQ(wrong_, 0u);
    EXPECT_GT(migrations_.ms.size(), 0u);
    EXPECT_GT(recomputations_.ms.size(), 0u);
  }

 private:
  // Two keep their session through all reloads; two open one for each text.
  void talk(std::size_t who) {
    std::unique_ptr<conversation> c;
    uint64_t noted = 0;
    while (!stop_) try {
        if (!c) c = std::make_unique<conversation>(p_), noted = 0;
        c->forget();
        const std::string text = c->generate(prompts[who], length);
        ++texts_;
        if (text != undisturbed_[who]) ++wrong_;
        noted = note(c->report(), noted);
        {
          const std::scoped_lock lock(mutex_);
          token_.ms.push_back(static_cast<double>(c->result.generate_ns) / 1e6 / length);
        }
        if (who % 2 == 1) c.reset();
      } catch (const failed_call& e) {
        ++failed_;
        const std::scoped_lock lock(mutex_);
        if (first_failure_.empty()) first_failure_ = e.what();
        c.reset();
      }
  }

  // The moves of a session from number `from` on; returns how many there are.
  uint64_t note(const nlohmann::json& report, uint64_t from) {
    const std::scoped_lock lock(mutex_);
    if (!report.contains("moves")) return 0;
    const auto& moves = report["moves"];
    const uint64_t before = report.value("moves_before", uint64_t{0});
    for (uint64_t i = from > before ? from - before : 0; i < moves.size(); ++i) {
      const bool copied = moves[i]["method"] == "migrate";
      (copied ? migrations_ : recomputations_).ms.push_back(moves[i]["pause_ms"]);
      if (copied && moves[i].contains("copy_ms")) copies_.ms.push_back(moves[i]["copy_ms"]);
    }
    return before + moves.size();
  }

  program& p_;
  std::array<std::string, prompts.size()> undisturbed_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> texts_{0}, wrong_{0}, failed_{0};
  std::mutex mutex_;  // guards what follows
  figures token_, copies_, recomputations_, migrations_;
  std::string first_failure_;
  std::vector<std::jthread> threads_;
};

// One mishap, and the reload after it: whether the new copy was taken. Throws why it was rejected.
bool reload_after(mishap_yard& yard, program& p, std::size_t which, uint32_t policy) {
  if (mishaps[which].to_the_loaded_file) {
    yard.happen(0);
    EXPECT_EQ(p.reload("cpu")["changed"], true);
  }
  yard.happen(which);
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.policy = policy;
  o.most_old_copies = 16;  // as many as sessions may stay on, and some that are closing
  return p.reload("cpu", o)["changed"];
}

TEST_F(soak, four_sessions_and_many_reloads) {
  const char* wanted = std::getenv("BITNET_RELOADS");
  const int reloads = wanted == nullptr ? 60 : std::atoi(wanted);
  program p(yard_, "cpu");
  talkers sessions(p);
  std::map<std::string, int> rejected, taken;
  sessions.start();
  for (int i = 0; i < reloads; ++i) {
    const std::size_t which = static_cast<std::size_t>(i) % mishaps.size();
    const mishap& m = mishaps[which];
    bool changed = false;
    try {
      changed = reload_after(yard_, p, which,
                             static_cast<uint32_t>(i / static_cast<int>(mishaps.size())) % 3);
    } catch (const failed_call& e) {
      ++rejected[m.name];
      if (m.taken) ADD_FAILURE() << m.name << ": " << e.what();
    }
    taken[m.name] += changed ? 1 : 0;
    EXPECT_EQ(changed, m.taken) << m.name;
    if (!m.taken) yard_.repair();
    sessions.let_them_speak();
  }
  sessions.stop();

  std::printf("%d reloads, %llu texts of %d tokens\n", reloads,
              static_cast<unsigned long long>(sessions.texts()), length);
  for (const mishap& m : mishaps)
    std::printf("  %-44s taken %4d, rejected %4d\n", m.name, taken[m.name], rejected[m.name]);
  sessions.print();
  sessions.expect_all_well();
  // Every copy that was replaced is gone from memory.
  const auto states = p.generations("cpu");
  EXPECT_EQ(std::ranges::count(states, "active"), 1);
  EXPECT_EQ(std::ranges::count(states, "retired"), 0);
  EXPECT_EQ(std::ranges::count(states, "draining"), 0);
}

}  // namespace
}  // namespace bitnet::test
