// Which calls a callback may make, and what a second call on one object meets: a table of callbacks
// by calls, each of which returns.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "demo_session.hpp"

namespace {

using bitnet::test::blank_error;
using bitnet::test::demo_session;

constexpr bitnet_status any_status = -1;  // tested: it returns, and changes nothing else

struct call_row {
  const char* name;
  std::function<bitnet_status(demo_session&, bitnet_error*)> make;
  bitnet_status in_text, in_progress;
};

bitnet_status size_of_report(demo_session& d, bitnet_error* e) {
  uint64_t needed = 0;
  return bitnet_runtime_report(d.runtime, nullptr, 0, &needed, e);
}

// Another model and a session of it, opened, used and closed.
bitnet_status open_another(demo_session& d, bitnet_error* e) {
  bitnet_model* model = nullptr;
  bitnet_status s =
      bitnet_model_open(d.runtime, bitnet::test::demo_model().c_str(), nullptr, &model, e);
  bitnet_session* session = nullptr;
  if (s == BITNET_OK) s = bitnet_session_open(model, nullptr, &session, e);
  const bitnet_token id = 7;
  if (s == BITNET_OK) s = bitnet_session_eval(session, &id, 1, 0, nullptr, 0, e);
  bitnet_session_close(session);
  bitnet_model_close(model);
  return s;
}

const std::vector<call_row>& calls() {
  static const std::vector<call_row> rows = {
      {"runtime_select", [](auto& d, auto* e) { return bitnet_runtime_select(d.runtime, e); },
       BITNET_OK, BITNET_OK},
      {"runtime_report", size_of_report, BITNET_OK, BITNET_OK},
      {"wait_probes", [](auto& d, auto* e) { return bitnet_runtime_wait_probes(d.runtime, 0, e); },
       any_status, any_status},
      {"another model", open_another, BITNET_OK, BITNET_OK},
      {"reload",
       [](auto& d, auto* e) { return bitnet_backend_reload(d.runtime, "cpu", nullptr, e); },
       BITNET_OK, BITNET_INVALID_ARGUMENT},
      {"set_preference",
       [](auto& d, auto* e) { return bitnet_session_set_preference(d.session, "cpu", e); },
       BITNET_OK, BITNET_OK},
      {"session_report",
       [](auto& d, auto* e) {
         uint64_t needed = 0;
         return bitnet_session_report(d.session, nullptr, 0, &needed, e);
       },
       BITNET_OK, BITNET_OK},
      {"eval",
       [](auto& d, auto* e) {
         const bitnet_token id = 7;
         return bitnet_session_eval(d.session, &id, 1, 0, nullptr, 0, e);
       },
       BITNET_BUSY, BITNET_OK},
      {"truncate", [](auto& d, auto* e) { return bitnet_session_truncate(d.session, 0, e); },
       BITNET_BUSY, BITNET_OK},
      {"generate", [](auto& d, auto*) { return d.generate(2); }, BITNET_BUSY, BITNET_OK},
      {"length and capacity",
       [](auto& d, auto*) {
         return bitnet_session_length(d.session) <= bitnet_session_capacity(d.session)
                    ? BITNET_OK
                    : BITNET_INTERNAL;
       },
       BITNET_OK, BITNET_OK},
      {"tokenize",
       [](auto& d, auto* e) {
         uint64_t n = 0;
         return bitnet_tokenize(d.model, {"a b", 3}, 0, nullptr, 0, &n, e);
       },
       BITNET_OK, BITNET_OK},
      {"trial",
       [](auto& d, auto* e) {
         bitnet_trial_options o;
         bitnet_trial_defaults(&o, sizeof o);
         bitnet_trial* trial = nullptr;
         const bitnet_status s = bitnet_trial_open(d.runtime, &o, &trial, e);
         bitnet_trial_close(trial);
         return s;
       },
       any_status, any_status},
  };
  return rows;
}

// What a callback does, once, and what came of it.
struct errand {
  demo_session* on;
  const call_row* row;
  bitnet_status got = BITNET_INTERNAL;
  bool done = false;
  bitnet_error error = blank_error();

  void run() {
    if (done) return;
    done = true;
    got = row->make(*on, &error);
  }
};

void expect(const errand& e, bitnet_status wanted) {
  EXPECT_TRUE(e.done) << e.row->name;
  if (wanted == any_status) return;
  EXPECT_EQ(e.got, wanted) << e.row->name << ": " << e.error.message;
}

#define OPEN(demo)                                                           \
  demo_session demo;                                                         \
  switch (demo.open()) {                                                     \
    case BITNET_OK:                                                          \
      break;                                                                 \
    case BITNET_NOT_FOUND:                                                   \
    case BITNET_UNAVAILABLE:                                                 \
      GTEST_SKIP() << "no demo model or no backend: " << demo.error.message; \
    default:                                                                 \
      FAIL() << demo.error.message;                                          \
  }

TEST(turns, of_calls_from_the_text_callback) {
  OPEN(demo)
  for (const call_row& row : calls()) {
    errand task{&demo, &row};
    const auto text = [](void* user, bitnet_str) -> int32_t {
      static_cast<errand*>(user)->run();
      return 0;
    };
    EXPECT_EQ(demo.generate(4, 3, text, &task), BITNET_OK) << row.name << demo.error.message;
    expect(task, row.in_text);
  }
}

TEST(turns, of_calls_from_the_progress_callback) {
  OPEN(demo)
  for (const call_row& row : calls()) {
    errand task{&demo, &row};
    bitnet_model_options options;
    bitnet_model_defaults(&options, sizeof options);
    options.progress_user = &task;
    options.progress = [](void* user, uint64_t, uint64_t) -> int32_t {
      static_cast<errand*>(user)->run();
      return 0;
    };
    bitnet_model* model = nullptr;
    bitnet_error e = blank_error();
    EXPECT_EQ(
        bitnet_model_open(demo.runtime, bitnet::test::demo_model().c_str(), &options, &model, &e),
        BITNET_OK)
        << row.name << ": " << e.message;
    bitnet_model_close(model);
    expect(task, row.in_progress);
  }
}

TEST(turns, of_calls_from_the_report_of_a_reload) {
  OPEN(demo)
  for (const call_row& row : calls()) {
    if (std::string(row.name) == "reload") continue;  // it would report, and so on
    errand task{&demo, &row};
    bitnet_reload_options options;
    bitnet_reload_defaults(&options, sizeof options);
    options.report_user = &task;
    options.report = [](void* user, bitnet_str) { static_cast<errand*>(user)->run(); };
    bitnet_error e = blank_error();
    EXPECT_EQ(bitnet_backend_reload(demo.runtime, "cpu", &options, &e), BITNET_OK)
        << row.name << ": " << e.message;
    expect(task, row.in_progress);
  }
}

TEST(turns, a_runtime_is_not_closed_under_a_call_that_uses_it) {
  OPEN(demo)
  bitnet_model_options options;
  bitnet_model_defaults(&options, sizeof options);
  options.progress_user = demo.runtime;
  options.progress = [](void* user, uint64_t, uint64_t) -> int32_t {
    bitnet_runtime_close(static_cast<bitnet_runtime*>(user));
    return 0;
  };
  bitnet_model* model = nullptr;
  EXPECT_EQ(bitnet_model_open(demo.runtime, bitnet::test::demo_model().c_str(), &options, &model,
                              nullptr),
            BITNET_OK);
  bitnet_model_close(model);
  EXPECT_EQ(demo.generate(2), BITNET_OK);
}

TEST(turns, a_session_that_is_closed_by_its_callback_ends_with_the_call) {
  OPEN(demo)
  const auto text = [](void* user, bitnet_str) -> int32_t {
    auto& d = *static_cast<demo_session*>(user);
    bitnet_session_close(d.session);
    d.session = nullptr;
    return 0;
  };
  EXPECT_EQ(demo.generate(100, 3, text, &demo), BITNET_OK);
  EXPECT_EQ(demo.session, nullptr);
}

// Threads that try to use a session while another one's call has it.
class guests {
 public:
  explicit guests(demo_session& demo) : demo_(demo) {}

  static int32_t on_text(void* self, bitnet_str) {
    auto& g = *static_cast<guests*>(self);
    ++g.pieces_;
    if (g.pieces_ == 1)
      for (int i = 0; i < 3; ++i) g.threads_.emplace_back([&g] { g.try_on(); });
    // Some tokens later, and before the call ends: then they would have their turn.
    if (g.pieces_ == 6) g.leave();
    return 0;
  }
  [[nodiscard]] int tries() const { return tries_; }
  [[nodiscard]] int admitted() const { return admitted_; }

 private:
  void leave() {
    while (tries_ < 30) std::this_thread::yield();
    ended_ = true;
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  void try_on() {
    const bitnet_token id = 9;
    uint64_t needed = 0;
    while (!ended_) {
      bitnet_error e = blank_error();
      for (const bitnet_status s :
           {bitnet_session_eval(demo_.session, &id, 1, 0, nullptr, 0, &e),
            bitnet_session_truncate(demo_.session, 1, nullptr),
            bitnet_session_set_preference(demo_.session, "cpu", nullptr),
            bitnet_session_report(demo_.session, nullptr, 0, &needed, nullptr)})
        admitted_ += s == BITNET_BUSY ? 0 : 1;
      admitted_ += std::string(e.message).find("at work") == std::string::npos ? 1 : 0;
      (void)bitnet_session_length(demo_.session);
      (void)bitnet_session_capacity(demo_.session);
      ++tries_;
    }
  }

  demo_session& demo_;
  int pieces_ = 0;
  std::atomic<int> tries_{0}, admitted_{0};
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

TEST(turns, of_several_threads_in_one_session_are_rejected) {
  OPEN(demo)
  std::vector<bitnet_token> alone, beside;
  ASSERT_EQ(demo.generate(24, 3, nullptr, nullptr, &alone), BITNET_OK);
  ASSERT_EQ(bitnet_session_truncate(demo.session, 0, nullptr), BITNET_OK);
  guests others(demo);
  ASSERT_EQ(demo.generate(24, 3, guests::on_text, &others, &beside), BITNET_OK)
      << demo.error.message;
  EXPECT_GE(others.tries(), 30);
  EXPECT_EQ(others.admitted(), 0);
  EXPECT_EQ(beside, alone);
}

// A text that comes is of tokens that the session has.
struct lengths {
  demo_session* of;
  std::vector<uint64_t> seen;
};
int32_t note_length(void* user, bitnet_str /*text*/) {
  auto* to = static_cast<lengths*>(user);
  to->seen.push_back(bitnet_session_length(to->of->session));
  return 0;
}

TEST(turns, the_text_callback_comes_when_the_session_has_the_token) {
  OPEN(demo)
  lengths got{&demo, {}};
  ASSERT_EQ(demo.generate(8, 3, note_length, &got), BITNET_OK) << demo.error.message;
  EXPECT_EQ(got.seen, (std::vector<uint64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
}

}  // namespace
