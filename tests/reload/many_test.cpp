// Many requests at once, half of them with drafts, while backends are replaced, devices are lost
// and readers go: what is not cancelled has the text that it has alone and without drafts, and all
// blocks are given back.

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "yard.hpp"

namespace {

using bitnet::test::blank;
using bitnet::test::conversation;
using bitnet::test::failed_call;
using bitnet::test::greedy;
using bitnet::test::program;
using bitnet::test::read;
using bitnet::test::rebuilt;
using bitnet::test::usual;
using bitnet::test::yard;

constexpr const char* begins[] = {
    "Once upon a time",
    "Once upon a time, there was a little cat. The cat liked to play with a ball in the garden, "
    "and "
    "when it was dark, the cat went home to sleep in a warm bed beside the stove. One day",
    "Once upon a time, there was a little cat. The cat liked to play with a ball in the garden, "
    "and "
    "when it was dark, the cat went home to sleep in a warm bed beside the stove. Then",
    "The dog",
    "Tom and Lily went to the park. They saw a big tree",
    "A"};
constexpr int32_t lengths[] = {40, 24, 33, 60, 17, 50};

// One request and what it gave so far.
struct running {
  bitnet_request* handle = nullptr;
  std::size_t which = 0;
  bool cancelled = false, over = false;
  std::string text;
  bitnet_event end{};
  std::string why;

  running(bitnet_scheduler* to, program& p, std::size_t of) : which(of) {
    const std::string text_of = begins[of];
    uint64_t n = 0;
    bitnet_error e = blank();
    const bitnet_str all = {text_of.data(), text_of.size()};
    bitnet_tokenize(p.model, all, BITNET_TOKENIZE_MODEL_BOS, nullptr, 0, &n, &e);
    std::vector<bitnet_token> ids(n);
    bitnet_tokenize(p.model, all, BITNET_TOKENIZE_MODEL_BOS, ids.data(), n, &n, &e);
    greedy how(lengths[of]);
    bitnet_speculation ahead;
    bitnet_speculation_defaults(&ahead, sizeof ahead);
    ahead.type = BITNET_SPECULATION_NGRAM;
    ahead.ngram_size = 1;  // a word that came before is enough
    if (of % 2 == 1) how.generation.speculation = &ahead;
    bitnet_request_options o;
    bitnet_request_defaults(&o, sizeof o);
    o.prompt = ids.data();
    o.n_prompt = n;
    o.generation = &how.generation;
    o.client = of % 3;
    if (const auto status = bitnet_request_submit(to, &o, &handle, &e); status != BITNET_OK)
      throw failed_call(status, e);
  }
  running(const running&) = delete;
  running& operator=(const running&) = delete;
  ~running() { bitnet_request_close(handle); }

  void cancel() {
    cancelled = true;
    bitnet_request_cancel(handle);
  }
  // What has come; waits for it for at most `ms`, and goes on until nothing has.
  void take(uint32_t ms) {
    bitnet_event e{};
    e.struct_size = sizeof e;
    while (!over && bitnet_request_next(handle, ms, &e, nullptr) == BITNET_OK) {
      if (e.kind == BITNET_EVENT_TEXT) {
        text.append(e.text.data == nullptr ? "" : e.text.data, e.text.size);
        continue;
      }
      over = true;
      end = e;
      why.assign(e.message.data == nullptr ? "" : e.message.data, e.message.size);
    }
  }
};

class many : public testing::Test {
 protected:
  void SetUp() override {
    if (bitnet::test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    yard_.install("cpu", read(BITNET_CPU_PLUGIN));
    yard_.describe("cpu");
    program p(yard_, "cpu");
    for (std::size_t i = 0; i < std::size(begins); ++i) {
      conversation c(p);
      alone_.push_back(c.generate(begins[i], lengths[i]));
    }
  }
  void TearDown() override {
    unsetenv("BITNET_FRAGILE_STEPS");
    unsetenv("BITNET_FRAGILE_HANG_MS");
  }

  static bitnet_scheduler* open(program& p, uint32_t max_sequences, uint64_t kv_bytes = 0) {
    const bitnet_session_options of = usual();
    bitnet_scheduler_options o;
    bitnet_scheduler_defaults(&o, sizeof o);
    o.sequences = &of;
    o.max_sequences = max_sequences;
    o.kv_bytes = kv_bytes;
    bitnet_scheduler* out = nullptr;
    bitnet_error e = blank();
    if (const auto s = bitnet_scheduler_open(p.model, &o, &out, &e); s != BITNET_OK)
      throw failed_call(s, e);
    return out;
  }
  static nlohmann::json report(bitnet_scheduler* s) {
    uint64_t n = 0;
    bitnet_scheduler_report(s, nullptr, 0, &n, nullptr);
    std::string text(n, '\0');
    bitnet_scheduler_report(s, text.data(), n, &n, nullptr);
    return nlohmann::json::parse(text);
  }
  void expect_right(const running& r) {
    SCOPED_TRACE(begins[r.which]);
    const std::string& whole = alone_[r.which];
    EXPECT_EQ(r.end.kind, BITNET_EVENT_END) << r.why;
    if (r.end.stop_reason == BITNET_STOP_LENGTH) {
      EXPECT_EQ(r.text, whole);
      return;
    }
    EXPECT_TRUE(r.cancelled);
    EXPECT_EQ(r.end.stop_reason, BITNET_STOP_CANCELLED);
    EXPECT_TRUE(whole.starts_with(r.text)) << r.text;
  }
  static void expect_no_blocks(bitnet_scheduler* s) {
    for (int i = 0; i < 1000 && report(s)["kv"]["used"] != 0; ++i) poll(nullptr, 0, 5);
    EXPECT_EQ(report(s)["kv"]["used"], 0);
    EXPECT_EQ(report(s)["kv"]["reserved"], 0);
  }

  yard yard_;
  std::vector<std::string> alone_;
};

TEST_F(many, a_lost_device_loses_none_of_them) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  for (const int steps : {0, 1, 5, 30}) {
    SCOPED_TRACE("lost after " + std::to_string(steps) + " steps");
    setenv("BITNET_FRAGILE_STEPS", std::to_string(steps).c_str(), 1);
    program p(yard_, "fragile,cpu");
    bitnet_scheduler* const s = open(p, 4);
    {
      std::vector<std::unique_ptr<running>> all;
      for (std::size_t i = 0; i < std::size(begins); ++i)
        all.push_back(std::make_unique<running>(s, p, i));
      for (auto& r : all)
        while (!r->over) r->take(60'000);
      for (const auto& r : all) expect_right(*r);
    }
    EXPECT_EQ(report(s)["device"], "cpu:0");
    EXPECT_EQ(report(s)["devices_lost"], 1);
    EXPECT_NE(p.log().find("fragile:0 is lost"), std::string::npos) << p.log();
    expect_no_blocks(s);
    bitnet_scheduler_close(s);
  }
}

TEST_F(many, without_another_device_each_gets_an_error) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  setenv("BITNET_FRAGILE_STEPS", "5", 1);
  program p(yard_, "fragile");
  bitnet_scheduler* const s = open(p, 4);
  {
    std::vector<std::unique_ptr<running>> all;
    for (std::size_t i = 0; i < std::size(begins); ++i)
      all.push_back(std::make_unique<running>(s, p, i));
    for (auto& r : all) {
      while (!r->over) r->take(60'000);
      EXPECT_EQ(r->end.kind, BITNET_EVENT_FAILED);
      EXPECT_EQ(r->end.status, BITNET_DEVICE_LOST) << r->why;
      EXPECT_NE(r->why.find("fell off the bus"), std::string::npos) << r->why;
    }
    EXPECT_THROW(running(s, p, 0), failed_call);
  }
  bitnet_scheduler_close(s);
}

// Requests come and go at random, some are cancelled, while the backend is replaced again and
// again, in a pool that has room for a few.
TEST_F(many, each_keeps_its_text_while_everything_changes) {
  const char* const rounds_of = std::getenv("BITNET_MANY_REQUESTS");
  const int n_requests = rounds_of != nullptr ? std::atoi(rounds_of) : 60;
  program p(yard_, "cpu");
  bitnet_scheduler* probe = open(p, 5);
  const auto block_bytes = report(probe)["kv"]["block_bytes"].get<uint64_t>();
  bitnet_scheduler_close(probe);
  bitnet_scheduler* const s = open(p, 5, 9 * block_bytes);
  std::atomic<bool> stop{false};
  std::atomic<int> reloads{0};
  std::thread reloading([&] {
    for (uint32_t serial = 1; !stop; ++serial) {
      yard_.install("cpu", rebuilt(read(BITNET_CPU_PLUGIN), serial));
      try {
        p.reload("cpu", serial % 2 == 0 ? BITNET_RELOAD_RECOMPUTE : BITNET_RELOAD_MIGRATE);
        ++reloads;
      } catch (const failed_call&) {
        poll(nullptr, 0, 20);  // as many old copies as may be are in memory
      }
      poll(nullptr, 0, 100);
    }
  });
  std::mt19937 random(4711);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same course each time
  std::vector<std::unique_ptr<running>> now;
  for (int begun = 0; begun < n_requests || !now.empty();) {
    if (begun < n_requests && now.size() < 12 && random() % 2 == 0) {
      now.push_back(std::make_unique<running>(s, p, random() % std::size(begins)));
      ++begun;
    }
    for (auto& r : now) {
      if (random() % 40 == 0) r->cancel();
      r->take(random() % 3);
      if (r->over) expect_right(*r);
    }
    std::erase_if(now, [&](const auto& r) { return r->over || random() % 500 == 0; });
  }
  stop = true;
  reloading.join();
  EXPECT_GE(reloads, 1);
  const auto said = report(s);
  EXPECT_EQ(said["choices"]["failed"], 0) << said;
  EXPECT_GE(said["moves"], 1);
  EXPECT_GT(said["speculation"]["drafted"], 0) << said;
  expect_no_blocks(s);
  bitnet_scheduler_close(s);
}

// ---- another device by preference --------------------------------------------------------------

bitnet_status prefer(bitnet_scheduler* s, const char* list, bitnet_error* e = nullptr) {
  return bitnet_scheduler_set_preference(s, list, e);
}

TEST_F(many, each_keeps_its_text_where_it_is_moved) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  program p(yard_, "cpu");
  bitnet_scheduler* const s = open(p, 4);
  {
    std::vector<std::unique_ptr<running>> all;
    for (std::size_t i = 0; i < std::size(begins); ++i)
      all.push_back(std::make_unique<running>(s, p, i));
    const auto n_text = [&] {
      std::size_t n = 0;
      for (auto& r : all) {
        r->take(0);
        n += r->text.size();
      }
      return n;
    };
    const auto wait_for_text = [&](std::size_t n) {
      while (n_text() < n) poll(nullptr, 0, 1);
    };
    wait_for_text(50);
    bitnet_error e = blank();
    EXPECT_EQ(prefer(s, "fragile", &e), BITNET_OK) << e.message;
    EXPECT_EQ(report(s)["device"], "fragile:0");
    wait_for_text(150);
    EXPECT_EQ(prefer(s, "none-such, cpu", &e), BITNET_OK) << e.message;
    EXPECT_EQ(report(s)["device"], "cpu:0");
    EXPECT_GT(report(s)["running"], 0) << "the change came in the midst of them";
    for (auto& r : all)
      while (!r->over) r->take(60'000);
    for (const auto& r : all) expect_right(*r);
  }
  EXPECT_EQ(report(s)["moves"], 2);
  EXPECT_EQ(report(s)["devices_lost"], 0);
  EXPECT_GT(report(s)["tokens"]["recomputed"], 0);
  expect_no_blocks(s);
  bitnet_scheduler_close(s);
}

TEST_F(many, a_preference_that_nothing_meets_changes_nothing) {
  program p(yard_, "cpu");
  bitnet_scheduler* const s = open(p, 4);
  {
    std::vector<std::unique_ptr<running>> all;
    for (std::size_t i = 0; i < std::size(begins); ++i)
      all.push_back(std::make_unique<running>(s, p, i));
    while (all[0]->text.empty()) all[0]->take(60'000);
    bitnet_error e = blank();
    EXPECT_EQ(prefer(nullptr, "cpu", &e), BITNET_INVALID_ARGUMENT);
    EXPECT_EQ(prefer(s, nullptr, &e), BITNET_INVALID_ARGUMENT);
    EXPECT_EQ(prefer(s, ",,", &e), BITNET_INVALID_ARGUMENT);
    EXPECT_EQ(prefer(s, "none-such", &e), BITNET_UNAVAILABLE);
    EXPECT_NE(std::string(e.message).find("none-such"), std::string::npos) << e.message;
    EXPECT_EQ(prefer(s, "cpu:7", &e), BITNET_UNAVAILABLE);
    EXPECT_EQ(prefer(s, "cpu", &e), BITNET_OK) << "it is there: " << e.message;
    for (auto& r : all)
      while (!r->over) r->take(60'000);
    for (const auto& r : all) expect_right(*r);
  }
  EXPECT_EQ(report(s)["device"], "cpu:0");
  EXPECT_EQ(report(s)["moves"], 0);
  bitnet_scheduler_close(s);
}

// A preference comes while the step runs that finds the device lost: requests go where they are
// instructed to, and that device is not taken for the lost one.
TEST_F(many, a_preference_and_a_loss_at_once_lose_none_of_them) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  setenv("BITNET_FRAGILE_HANG_MS", "1500", 1);
  int met = 0;
  for (const int steps : {1, 3, 6}) {
    SCOPED_TRACE("lost after " + std::to_string(steps) + " steps");
    setenv("BITNET_FRAGILE_STEPS", std::to_string(steps).c_str(), 1);
    program p(yard_, "fragile,cpu");
    bitnet_scheduler* const s = open(p, 4);
    conversation there(
        p);  // its weights stay on the other device, so that the change takes no time
    there.prefer("cpu");
    {
      std::vector<std::unique_ptr<running>> all;
      for (std::size_t i = 0; i < std::size(begins); ++i)
        all.push_back(std::make_unique<running>(s, p, i));
      while (report(s)["steps"] < steps) poll(nullptr, 0, 1);
      bitnet_error e = blank();
      EXPECT_EQ(prefer(s, "cpu", &e), BITNET_OK) << e.message;
      if (report(s)["devices_lost"] == 0) ++met;
      for (auto& r : all)
        while (!r->over) r->take(60'000);
      for (const auto& r : all) expect_right(*r);
    }
    EXPECT_EQ(report(s)["device"], "cpu:0");
    EXPECT_EQ(report(s)["devices_lost"], 1);
    EXPECT_EQ(report(s)["moves"], 1);
    EXPECT_NE(p.log().find("fragile:0 is lost"), std::string::npos) << p.log();
    EXPECT_EQ(p.log().find("cpu:0 is lost"), std::string::npos) << p.log();
    expect_no_blocks(s);
    bitnet_scheduler_close(s);
  }
  EXPECT_GT(met, 0) << "each change came behind its loss";
}

TEST_F(many, a_preferred_device_that_is_lost_is_followed_by_the_next_of_the_list) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  setenv("BITNET_FRAGILE_STEPS", "5", 1);
  program p(yard_, "cpu");
  bitnet_scheduler* const s = open(p, 4);
  bitnet_error e = blank();
  EXPECT_EQ(prefer(s, "fragile,cpu", &e), BITNET_OK) << e.message;
  {
    std::vector<std::unique_ptr<running>> all;
    for (std::size_t i = 0; i < std::size(begins); ++i)
      all.push_back(std::make_unique<running>(s, p, i));
    for (auto& r : all)
      while (!r->over) r->take(60'000);
    for (const auto& r : all) expect_right(*r);
  }
  EXPECT_EQ(report(s)["device"], "cpu:0");
  EXPECT_EQ(report(s)["devices_lost"], 1);
  EXPECT_EQ(report(s)["moves"], 2);
  bitnet_scheduler_close(s);
}

TEST_F(many, a_preference_brings_back_what_had_no_device_left) {
  yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
  yard_.describe("fragile");
  setenv("BITNET_FRAGILE_STEPS", "2", 1);
  program p(yard_, "fragile");
  bitnet_scheduler* const s = open(p, 4);
  {
    running lost(s, p, 0);
    while (!lost.over) lost.take(60'000);
    EXPECT_EQ(lost.end.kind, BITNET_EVENT_FAILED);
    EXPECT_THROW(running(s, p, 0), failed_call);
    EXPECT_EQ(report(s)["waiting"]["reason"], "no device");
    bitnet_error e = blank();
    EXPECT_EQ(prefer(s, "cpu", &e), BITNET_OK) << e.message;
    std::unique_ptr<running> found;
    for (int i = 0; i < 1000 && !found; ++i) {
      try {
        found = std::make_unique<running>(s, p, 0);
      } catch (const failed_call&) {
        poll(nullptr, 0, 5);  // the scheduler has not taken it yet
      }
    }
    ASSERT_TRUE(found);
    while (!found->over) found->take(60'000);
    expect_right(*found);
  }
  EXPECT_EQ(report(s)["device"], "cpu:0");
  bitnet_scheduler_close(s);
}

}  // namespace
