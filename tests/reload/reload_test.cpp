// A backend's file changes under a running program; sessions change their device, or lose it. The
// text must be what it would have been.

#include <fcntl.h>

#include <array>
#include <functional>
#include <thread>

#include "../core/model/small_hybrid.hpp"
#include "yard.hpp"

namespace bitnet::test {
namespace {

// Tokens of a story, and of one that its window and its budget do not hold. Under a sanitizer each
// takes a hundred times as long.
#ifdef BITNET_SANITIZED
constexpr int32_t length = 16, long_story = 48;
#else
constexpr int32_t length = 40, long_story = 96;
#endif
const std::string prompt = "Once upon a time there was a";

class reload : public testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    yard_.install("cpu", read(BITNET_CPU_PLUGIN));
    yard_.describe("cpu");
    program p(yard_, "cpu");
    undisturbed_ = conversation(p).generate(prompt, length);
    ASSERT_GT(undisturbed_.size(), static_cast<std::size_t>(length));
  }
  void upgrade() { yard_.install("cpu", rebuilt(read(BITNET_CPU_PLUGIN), ++serial_)); }
  void add_fragile() {
    yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
    yard_.describe("fragile");
  }

  yard yard_;
  std::string undisturbed_;
  uint32_t serial_ = 0;
};

TEST_F(reload, by_default_sessions_finish_where_they_are) {
  program p(yard_, "cpu");
  auto before = std::make_unique<conversation>(p);
  nlohmann::json answer;
  EXPECT_EQ(before->generate(prompt, length,
                             [&](int i) {
                               if (i != 5) return;
                               upgrade();
                               answer = p.reload("cpu");
                             }),
            undisturbed_);
  EXPECT_EQ(answer["changed"], true) << answer;
  EXPECT_EQ(answer["generation"], 2) << answer;
  EXPECT_NE(answer["build_id"], answer["former_build_id"]) << answer;
  EXPECT_EQ(answer["sessions"]["staying"], 1) << answer;
  EXPECT_EQ(answer["compared"]["difference"], 0)
      << "the same code gives the same logits " << answer;
  EXPECT_EQ(p.generations("cpu"), (std::vector<std::string>{"draining", "active"}));
  {
    conversation after(p);
    EXPECT_EQ(after.generate(prompt, length), undisturbed_);
    EXPECT_FALSE(after.report().contains("moves"));
  }
  EXPECT_FALSE(before->report().contains("moves"));
  before.reset();
  // The cpu backend says that it can be unmapped, and it is.
  EXPECT_EQ(p.generations("cpu"), (std::vector<std::string>{"unloaded", "active"}));
}

// One backend of a later version than everything else: a running program takes it, by its name or
// by the path of its file, and says which one computes.
TEST_F(reload, a_later_version_of_one_backend_replaces_it) {
  for (const std::string& named : {std::string("cpu"), yard_.library("cpu").string()}) {
    SCOPED_TRACE(named);
    yard_.install("cpu", read(BITNET_CPU_PLUGIN));
    program p(yard_, "cpu");
    conversation before(p);
    EXPECT_EQ(p.backend("cpu")["version"], BITNET_CPU_VERSION);
    EXPECT_EQ(p.reload(named)["changed"], false) << "nothing was installed";
    yard_.install("cpu", read(BITNET_NEXT_CPU_PLUGIN));
    const nlohmann::json answer = p.reload(named, BITNET_RELOAD_MIGRATE);
    EXPECT_EQ(answer["changed"], true) << answer;
    EXPECT_EQ(answer["backend"], "cpu") << answer;
    EXPECT_EQ(answer["former_version"], BITNET_CPU_VERSION) << answer;
    EXPECT_EQ(answer["version"], BITNET_NEXT_CPU_VERSION) << answer;
    EXPECT_EQ(p.backend("cpu")["version"], BITNET_NEXT_CPU_VERSION);
    EXPECT_EQ(before.generate(prompt, length), undisturbed_);
  }
}

TEST_F(reload, a_path_that_no_manifest_names) {
  program p(yard_, "cpu");
  const conversation before(p);
  const std::string stray = yard_.library("stray").string();
  yard_.install("stray", read(BITNET_NEXT_CPU_PLUGIN));
  try {
    p.reload(stray);
    FAIL() << "it was loaded";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_UNAVAILABLE);
    EXPECT_NE(std::string(e.what()).find("no manifest names " + stray), std::string::npos)
        << e.what();
  }
}

TEST_F(reload, sessions_move_between_two_tokens) {
  for (const auto& [policy, method] : {std::pair(BITNET_RELOAD_MIGRATE, "migrate"),
                                       std::pair(BITNET_RELOAD_RECOMPUTE, "recompute")}) {
    program p(yard_, "cpu");
    conversation c(p), idle(p);
    const std::string begun = idle.generate(prompt, 3);
    EXPECT_EQ(c.generate(prompt, length,
                         [&](int i) {
                           if (i % (length / 4) != length / 8) return;
                           upgrade();
                           EXPECT_EQ(p.reload("cpu", policy)["sessions"]["moving"], 2);
                         }),
              undisturbed_)
        << method;
    const auto report = c.report();
    ASSERT_EQ(report["moves"].size(), 4u) << report;
    for (const auto& move : report["moves"]) {
      EXPECT_EQ(move["method"], method);
      EXPECT_EQ(move["from"], "cpu:0");
      EXPECT_EQ(move["to"], "cpu:0");
      EXPECT_EQ(move["why"], "reload of cpu");
      EXPECT_GT(move["pause_ms"], 0);
    }
    uint64_t calls = 0;
    for (const auto& k : report["kernels"]) calls += k["calls"].get<uint64_t>();
    EXPECT_GT(calls, report["steps"].get<uint64_t>()) << "what ran on former seats counts";
    // It slept through all four and takes the last only.
    EXPECT_EQ(begun + idle.generate("", length - 3), undisturbed_);
    EXPECT_EQ(idle.report()["moves"].size(), 1u);
  }
}

struct memory_row {
  const char* why;
  std::function<void(bitnet_session_options&)> change;
  uint64_t budget_bytes;
};

TEST_F(reload, every_kind_of_memory_moves) {
  const memory_row rows[] = {
      {"float32", [](auto& o) { o.kv_k = o.kv_v = BITNET_KV_F32; }, 0},
      {"int8 blocks", [](auto& o) { o.kv_k = o.kv_v = BITNET_KV_Q8_0; }, 0},
      {"blocks of 4 bits", [](auto& o) { o.kv_k = o.kv_v = BITNET_KV_Q4_0; }, 0},
      {"keys of another type", [](auto& o) { o.kv_k = BITNET_KV_Q8_0; }, 0},
      {"a window", [](auto& o) { o.window = 16, o.window_keep = 2; }, 0},
      {"a budget", [](auto&) {}, 1U << 20},
  };
  for (const memory_row& r : rows) {
    bitnet_session_options so = usual();
    so.n_context = 128;
    r.change(so);
    bitnet_model_options mo;
    bitnet_model_defaults(&mo, sizeof mo);
    mo.kv_budget_bytes = r.budget_bytes;
    program p(yard_, "cpu", &mo);
    const std::string alone = conversation(p, so).generate(prompt, long_story);
    for (const uint32_t policy : {BITNET_RELOAD_MIGRATE, BITNET_RELOAD_RECOMPUTE}) {
      conversation c(p, so);
      EXPECT_EQ(c.generate(prompt, long_story,
                           [&](int i) {
                             if (i != long_story / 8 * 5) return;
                             upgrade();
                             p.reload("cpu", policy);
                           }),
                alone)
          << r.why << ", policy " << policy;
      const auto moves = c.report()["moves"];
      ASSERT_EQ(moves.size(), 1u) << r.why;
      EXPECT_EQ(moves[0]["method"], policy == BITNET_RELOAD_MIGRATE ? "migrate" : "recompute")
          << r.why;
    }
  }
}

// A state moves with the keys, or is computed again; a lost device takes it along.
TEST_F(reload, states_move_with_their_sequences) {
  add_fragile();
  const scratch_folder folder;
  const std::string file = folder.write("h.gguf", tests::as_text(tests::small_hybrid().build()));
  const std::string alone = [&] {
    program p(yard_, "cpu", nullptr, file);
    return conversation(p).generate(prompt, long_story);
  }();
  for (const uint32_t policy : {BITNET_RELOAD_MIGRATE, BITNET_RELOAD_RECOMPUTE}) {
    program p(yard_, "cpu", nullptr, file);
    conversation c(p);
    EXPECT_EQ(c.generate(prompt, long_story,
                         [&](int i) {
                           if (i != long_story / 2) return;
                           upgrade();
                           p.reload("cpu", policy);
                         }),
              alone);
    const auto moves = c.report()["moves"];
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0]["method"], policy == BITNET_RELOAD_MIGRATE ? "migrate" : "recompute");
    c.forget();  // to the beginning, on the seat that it moved to
    EXPECT_EQ(c.generate(prompt, long_story), alone);
  }
  setenv("BITNET_FRAGILE_STEPS", "9", 1);
  program p(yard_, "fragile,cpu", nullptr, file);
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, long_story), alone);
  EXPECT_EQ(c.report()["moves"].size(), 1u);
  unsetenv("BITNET_FRAGILE_STEPS");
}

TEST_F(reload, the_same_file_is_nothing_to_do) {
  program p(yard_, "cpu");
  EXPECT_EQ(p.reload("cpu")["reason"], "it is the file that is loaded");
  yard_.install("cpu", read(BITNET_CPU_PLUGIN));  // another inode
  const auto answer = p.reload("cpu");
  EXPECT_EQ(answer["changed"], false);
  EXPECT_NE(answer["reason"].get<std::string>().find("is what is loaded"), std::string::npos);
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.force = 1;
  EXPECT_EQ(p.reload("cpu", o)["changed"], true);
  EXPECT_EQ(p.reload("cpu", o)["changed"], true) << "the very file too";
  EXPECT_EQ(conversation(p).generate(prompt, length), undisturbed_);
}

TEST_F(reload, a_new_kernel_set_that_computes_the_same_is_taken) {
  program p(yard_, "cpu");
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, length,
                       [&](int i) {
                         if (i != 5) return;
                         yard_.install("cpu", read(BITNET_OTHER_PLUGIN));
                         EXPECT_EQ(p.reload("cpu", BITNET_RELOAD_MIGRATE)["changed"], true);
                       }),
            undisturbed_);
  EXPECT_EQ(c.report()["moves"].size(), 1u);
}

struct rejected_row {
  const char* why;
  std::function<void(const yard&)> spoil;
  bitnet_status status;
  const char* says;
};

std::vector<rejected_row> rejected_rows() {
  const std::string cpu = read(BITNET_CPU_PLUGIN);
  return {
      {"deleted", [](const yard& y) { std::filesystem::remove(y.library("cpu")); },
       BITNET_UNAVAILABLE, "BN-T-MISSING"},
      {"no plugin", [](const yard& y) { y.install("cpu", "hello"); }, BITNET_REJECTED,
       "BN-I-FORMAT"},
      {"cut short",
       [=](const yard& y) { y.install("cpu", std::string_view(cpu).substr(0, cpu.size() / 2)); },
       BITNET_REJECTED, "BN-I-"},
      {"empty", [](const yard& y) { y.install("cpu", ""); }, BITNET_REJECTED, "BN-I-"},
      {"writable by all",
       [=](const yard& y) { y.replace(y.library("cpu"), rebuilt(cpu, 900), 0777); },
       BITNET_REJECTED, "BN-T-MODE"},
      {"another backend's library",
       [](const yard& y) { y.install("cpu", read(BITNET_FRAGILE_PLUGIN)); }, BITNET_REJECTED,
       "BN-I-NAME"},
      {"manifest of half a page",
       [=](const yard& y) {
         y.install("cpu", rebuilt(cpu, 901));
         y.replace(y.manifest("cpu"), "schema: 1\nname: cp", 0644);
       },
       BITNET_REJECTED, "BN-M-"},
      {"manifest of the next schema",
       [](const yard& y) { y.replace(y.manifest("cpu"), "schema: 2\nname: cpu\n", 0644); },
       BITNET_REJECTED, "BN-M-"},
      {"manifest is gone", [](const yard& y) { std::filesystem::remove(y.manifest("cpu")); },
       BITNET_UNAVAILABLE, "no manifest names a backend 'cpu'"},
      {"of which there may be one only",
       [](const yard& y) { y.install("cpu", read(BITNET_SINGLE_PLUGIN)); }, BITNET_UNSUPPORTED,
       "the new copy does not declare"},
      {"computes something else",
       [](const yard& y) { y.install("cpu", read(BITNET_WRONG_PLUGIN)); }, BITNET_REJECTED,
       "other logits"},
  };
}

void expect_rejected(program& p, const yard& y, const rejected_row& r) {
  r.spoil(y);
  try {
    p.reload("cpu", BITNET_RELOAD_MIGRATE);
    ADD_FAILURE() << r.why << " was taken";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, r.status) << r.why << ": " << e.what();
    EXPECT_NE(std::string(e.what()).find(r.says), std::string::npos) << r.why << ": " << e.what();
    EXPECT_NE(std::string(e.what()).find("nothing changed"), std::string::npos);
  }
}

TEST_F(reload, what_is_rejected_changes_nothing) {
  program p(yard_, "cpu");
  for (const rejected_row& r : rejected_rows()) {
    upgrade();
    yard_.describe("cpu");
    ASSERT_EQ(p.reload("cpu")["changed"], true) << r.why;
    conversation c(p);
    EXPECT_EQ(c.generate(prompt, length,
                         [&](int i) {
                           if (i == 5) expect_rejected(p, yard_, r);
                         }),
              undisturbed_)
        << r.why;
    EXPECT_FALSE(c.report().contains("moves")) << r.why;
    EXPECT_EQ(conversation(p).generate(prompt, length), undisturbed_) << r.why;
    const auto states = p.generations("cpu");
    EXPECT_EQ(std::ranges::count(states, "active"), 1) << r.why;
    EXPECT_GE(std::ranges::count(states, "failed"), 1) << r.why;
  }
}

TEST_F(reload, without_a_model_the_next_one_takes_the_new_copy) {
  const std::string folder = yard_.manifests();
  const char* const folders[] = {folder.c_str()};
  bitnet_runtime_options o;
  bitnet_runtime_defaults(&o, sizeof o);
  o.probe_wait_ms = 60'000;
  o.device = "cpu";
  o.manifest_dirs = folders;
  o.n_manifest_dirs = 1;
  bitnet_error e = blank();
  bitnet_runtime* runtime = nullptr;
  ASSERT_EQ(bitnet_runtime_open(&o, &runtime, &e), BITNET_OK) << e.message;
  upgrade();
  EXPECT_EQ(bitnet_backend_reload(runtime, "cpu", nullptr, &e), BITNET_OK) << e.message;
  ASSERT_EQ(bitnet_runtime_select(runtime, &e), BITNET_OK) << "nothing was loaded before";
  upgrade();
  EXPECT_EQ(bitnet_backend_reload(runtime, "cpu", nullptr, &e), BITNET_OK) << e.message;
  bitnet_model* model = nullptr;
  ASSERT_EQ(bitnet_model_open(runtime, demo_model().c_str(), nullptr, &model, &e), BITNET_OK)
      << e.message;
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
}

TEST_F(reload, a_file_written_over_in_place_is_not_loaded) {
  const auto library = yard_.library("cpu");
  const struct {
    const char* why;
    const char* said;
    std::function<void()> change;
  } rows[] = {
      {"another time of change", "in place",
       [&] {
         const std::array<timespec, 2> times = {{{1, 0}, {1, 0}}};
         ASSERT_EQ(utimensat(AT_FDCWD, library.c_str(), times.data(), 0), 0);
       }},
      {"other bytes", "in place",
       [&] { overwrite(library, rebuilt(read(BITNET_CPU_PLUGIN), 77)); }},
      // Behind what is mapped: a page that is cut off would end the code that runs there.
      {"a byte less", "is cut off",
       [&] { std::filesystem::resize_file(library, std::filesystem::file_size(library) - 1); }},
      {"a byte more", "in place",
       [&] { std::ofstream(library, std::ios::binary | std::ios::app) << "x"; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    upgrade();
    program p(yard_, "cpu");
    conversation c(p);
    row.change();
    try {
      p.reload("cpu");
      ADD_FAILURE() << "it was taken";
    } catch (const failed_call& e) {
      EXPECT_NE(std::string(e.what()).find(row.said), std::string::npos) << e.what();
    }
    EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  }
}

// `cp` empties the file before it writes: pages of it that were not touched since are other ones
// then. Code that computes there may fail; a call that asks for a reload must not.
TEST_F(reload, a_file_copied_over_is_not_loaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        program p(yard_, "cpu");
        std::ofstream(yard_.library("cpu"), std::ios::binary)
            << rebuilt(read(BITNET_CPU_PLUGIN), 78);
        try {
          p.reload("cpu");
        } catch (const failed_call& e) {
          std::fprintf(stderr, "%s\n", e.what());
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "in place");
}

TEST_F(reload, old_copies_have_an_end) {
  program p(yard_, "cpu");
  std::vector<std::unique_ptr<conversation>> staying;
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.most_old_copies = 2;
  for (int i = 0; i < 2; ++i) {
    staying.push_back(std::make_unique<conversation>(p));
    upgrade();
    ASSERT_EQ(p.reload("cpu", o)["changed"], true);
  }
  upgrade();
  try {
    p.reload("cpu", o);
    ADD_FAILURE() << "a third old copy was allowed";
  } catch (const failed_call& e) {
    EXPECT_NE(std::string(e.what()).find("2 replaced copies"), std::string::npos) << e.what();
  }
  staying.pop_back();
  EXPECT_EQ(p.reload("cpu", o)["changed"], true);
}

TEST_F(reload, wrong_calls_are_rejected) {
  program p(yard_, "cpu");
  bitnet_error e = blank();
  EXPECT_EQ(bitnet_backend_reload(nullptr, "cpu", nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_backend_reload(p.runtime, nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_backend_reload(p.runtime, "../cpu", nullptr, &e), BITNET_UNAVAILABLE);
  bitnet_reload_options o;
  bitnet_reload_defaults(&o, sizeof o);
  o.policy = 7;
  EXPECT_EQ(bitnet_backend_reload(p.runtime, "cpu", &o, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(e.message).find("_RECOMPUTE, found 7"), std::string::npos) << e.message;
  bitnet_reload_defaults(&o, sizeof o);
  o.tolerance = 2;
  EXPECT_EQ(bitnet_backend_reload(p.runtime, "cpu", &o, &e), BITNET_INVALID_ARGUMENT);
  conversation c(p);
  EXPECT_EQ(bitnet_session_set_preference(nullptr, "cpu", &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_set_preference(c.handle, ",,", &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_set_preference(c.handle, "cuda", &e), BITNET_UNAVAILABLE);
}

// ---- change and loss of device -----------------------------------------------------------------

// The wish comes before the device that the session has, and says nothing yet: it stays, and the
// answer says so.
TEST_F(reload, a_preference_for_what_has_not_answered_is_no_success) {
  const std::string tree = std::getenv("BITNET_BINARY_DIR");
  yard_.install("hang-enumerate", read(tree + "/tests/fakes/libfake-hang-enumerate.so"));
  yard_.describe("hang-enumerate");
  std::string text = read(yard_.manifest("hang-enumerate"));
  text.replace(text.find("class: cpu"), 10, "class: gpu");
  yard_.replace(yard_.manifest("hang-enumerate"), text, 0644);
  program p(yard_, "cpu", nullptr, demo_model(), 0);
  conversation c(p);
  bitnet_error e = blank();
  EXPECT_EQ(bitnet_session_set_preference(c.handle, "hang-enumerate,cpu", &e), BITNET_TIMEOUT);
  EXPECT_NE(
      std::string(e.message).find("hang-enumerate has not answered yet, so the session stays"),
      std::string::npos)
      << e.message;
  EXPECT_EQ(bitnet_session_set_preference(c.handle, "cpu,hang-enumerate", &e), BITNET_OK)
      << e.message;
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
}

TEST_F(reload, a_session_goes_where_its_preference_says) {
  add_fragile();
  program p(yard_, "cpu");
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, length,
                       [&](int i) {
                         if (i == length / 8) c.prefer("fragile,cpu");
                         if (i == length / 4) c.prefer("cuda, cpu");
                         if (i == length / 8 * 3) c.prefer("cpu");  // is there
                         if (i == length / 2) c.prefer("fragile");
                       }),
            undisturbed_);
  const auto report = c.report();
  EXPECT_EQ(report["device"], "fragile:0");
  ASSERT_EQ(report["moves"].size(), 3u) << report;
  const char* const to[] = {"fragile:0", "cpu:0", "fragile:0"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(report["moves"][i]["to"], to[i]);
    EXPECT_EQ(report["moves"][i]["method"], "migrate");
  }
  EXPECT_EQ(report["moves"][0]["why"], "asked for fragile,cpu");
  // The others, and those to come, stay with the runtime's choice.
  EXPECT_EQ(conversation(p).report()["device"], "cpu:0");
}

// The text goes on as if nothing had happened, whenever the device goes.
TEST_F(reload, a_device_without_the_type_of_a_session_is_rejected_by_name) {
  yard_.install("plain", read(BITNET_PLAIN_PLUGIN));
  yard_.describe("plain");
  const auto expect_unsupported = [](const std::function<void()>& call, const char* says) {
    try {
      call();
      ADD_FAILURE() << says << ": it was taken";
    } catch (const failed_call& e) {
      EXPECT_EQ(e.status, BITNET_UNSUPPORTED) << e.what();
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  };
  const auto options = [](uint32_t k, uint32_t v) {
    bitnet_session_options o = usual();
    o.kv_k = k;
    o.kv_v = v;
    return o;
  };
  {
    program p(yard_, "plain");
    expect_unsupported([&] { conversation c(p, options(BITNET_KV_Q4_0, BITNET_KV_F16)); },
                       "keeps keys as f32, f16, not as q4_0; use kv_k f16, or request another");
    expect_unsupported([&] { conversation c(p, options(BITNET_KV_F16, BITNET_KV_Q4_0)); },
                       "keeps values as f32, f16, not as q4_0; use kv_v f16, or request another");
    expect_unsupported([&] { conversation c(p, options(BITNET_KV_Q8_0, BITNET_KV_F16)); }, "q8_0");
    EXPECT_EQ(conversation(p).generate(prompt, length), undisturbed_);
  }
  program p(yard_, "cpu");
  const bitnet_session_options four_bits = options(BITNET_KV_Q4_0, BITNET_KV_Q4_0);
  const std::string alone = conversation(p, four_bits).generate(prompt, length);
  conversation c(p, four_bits);
  const std::string begun = c.generate(prompt, length / 2);
  expect_unsupported([&] { c.prefer("plain"); }, "not as q4_0");
  EXPECT_EQ(begun + c.generate("", length - length / 2), alone) << "it stays where it is";
}

TEST_F(reload, a_lost_device_does_not_lose_the_conversation) {
  add_fragile();
  for (const int steps : {0, 1, 2, 7, length / 2 + 2, length - 1}) {
    setenv("BITNET_FRAGILE_STEPS", std::to_string(steps).c_str(), 1);
    program p(yard_, "fragile,cpu");
    conversation c(p);
    EXPECT_EQ(c.report()["device"], "fragile:0");
    EXPECT_EQ(c.generate(prompt, length), undisturbed_) << "lost after " << steps << " steps";
    const auto report = c.report();
    ASSERT_EQ(report["moves"].size(), 1u) << report;
    EXPECT_EQ(report["moves"][0]["from"], "fragile:0");
    EXPECT_EQ(report["moves"][0]["to"], "cpu:0");
    EXPECT_EQ(report["moves"][0]["method"], "recompute");
    EXPECT_NE(report["moves"][0]["why"].get<std::string>().find("fell off the bus"),
              std::string::npos);
    EXPECT_NE(p.log().find("fragile:0 is lost"), std::string::npos) << p.log();
    EXPECT_EQ(p.generations("fragile"), std::vector<std::string>{"failed"});
    conversation later(p);
    EXPECT_EQ(later.report()["device"], "cpu:0") << "new sessions do not try it";
    EXPECT_EQ(later.generate(prompt, length), undisturbed_);
  }
  unsetenv("BITNET_FRAGILE_STEPS");
}

TEST_F(reload, a_poisoned_context_is_left_too) {
  add_fragile();
  setenv("BITNET_FRAGILE_STEPS", "9", 1);
  setenv("BITNET_FRAGILE_POISONED", "1", 1);
  program p(yard_, "fragile,cpu");
  unsetenv("BITNET_FRAGILE_POISONED");
  unsetenv("BITNET_FRAGILE_STEPS");
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  EXPECT_EQ(c.report()["device"], "cpu:0");
  EXPECT_EQ(conversation(p).report()["device"], "cpu:0");
}

TEST_F(reload, several_sessions_lose_the_same_device) {
  add_fragile();
  setenv("BITNET_FRAGILE_STEPS", std::to_string(length).c_str(), 1);
  program p(yard_, "fragile,cpu");
  unsetenv("BITNET_FRAGILE_STEPS");
  std::array<std::string, 4> texts;
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts)
      threads.emplace_back([&] { text = conversation(p).generate(prompt, length); });
  }
  for (const std::string& text : texts) EXPECT_EQ(text, undisturbed_);
}

TEST_F(reload, a_loss_without_another_device_is_an_error_that_leaves_the_session) {
  add_fragile();
  setenv("BITNET_FRAGILE_STEPS", "6", 1);
  program p(yard_, "fragile");
  unsetenv("BITNET_FRAGILE_STEPS");
  conversation c(p);
  try {
    c.generate(prompt, length);
    ADD_FAILURE() << "the device is gone, and the text went on";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_DEVICE_LOST) << e.what();
    EXPECT_NE(std::string(e.what()).find("fragile,cpu"), std::string::npos)
        << "says what to do: " << e.what();
  }
  // The conversation is there still, and goes on elsewhere.
  const uint64_t said = bitnet_session_length(c.handle);
  EXPECT_GT(said, 0u);
  c.prefer("cpu");
  EXPECT_EQ(c.report()["device"], "cpu:0");
  EXPECT_EQ(c.report()["moves"][0]["method"], "recompute") << "nothing can be copied out";
  c.generate("", 10);
  EXPECT_GT(bitnet_session_length(c.handle), said);
}

TEST_F(reload, a_lost_device_serves_again_after_a_reload) {
  add_fragile();
  setenv("BITNET_FRAGILE_STEPS", "6", 1);
  program p(yard_, "fragile,cpu");
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
  unsetenv("BITNET_FRAGILE_STEPS");
  yard_.install("fragile", rebuilt(read(BITNET_FRAGILE_PLUGIN), 77));
  EXPECT_EQ(p.reload("fragile")["changed"], true);
  c.prefer("fragile,cpu");
  EXPECT_EQ(c.report()["device"], "fragile:0");
  c.forget();
  EXPECT_EQ(c.generate(prompt, length), undisturbed_);
}

}  // namespace
}  // namespace bitnet::test
