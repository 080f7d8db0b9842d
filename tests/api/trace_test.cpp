// The trace callback of a runtime: what a session and a scheduler report of their steps, and that
// kernels' sums are those of the session's own report.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "demo_session.hpp"

namespace {

using bitnet::test::blank_error;
using nlohmann::json;

struct heard {
  bitnet_trace_event event;
  std::string device, kernel, op;
};

std::string text_of(bitnet_str text) {
  return {text.data == nullptr ? "" : text.data, text.size};
}

class trace : public testing::Test {
 protected:
  // A model of a runtime that reports to this test.
  void open(bool times) {
    const std::string file = bitnet::test::demo_model();
    if (file.empty()) GTEST_SKIP() << "models/ holds no demo model";
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    const char* const device = std::getenv("BITNET_TEST_DEVICE");
    options.device = device != nullptr ? device : "cpu";
    options.n_threads = 2;
    options.trace = [](void* self, const bitnet_trace_event* e) {
      auto& here = *static_cast<trace*>(self);
      const std::lock_guard lock(here.mutex_);
      here.all_.push_back({*e, text_of(e->device), text_of(e->kernel), text_of(e->op)});
    };
    options.trace_user = this;
    options.trace_times = times ? 1 : 0;
    ASSERT_EQ(bitnet_runtime_open(&options, &runtime_, &error_), BITNET_OK) << error_.message;
    const bitnet_status s = bitnet_model_open(runtime_, file.c_str(), nullptr, &model_, &error_);
    if (s == BITNET_UNAVAILABLE) GTEST_SKIP() << error_.message;
    ASSERT_EQ(s, BITNET_OK) << error_.message;
  }
  void TearDown() override {
    bitnet_model_close(model_);
    bitnet_runtime_close(runtime_);
  }
  [[nodiscard]] std::vector<heard> of(uint32_t kind) const {
    std::vector<heard> out;
    for (const heard& one : all_)
      if (one.event.kind == kind) out.push_back(one);
    return out;
  }
  // Generates 5 tokens behind 3, and returns the session's report.
  json generate() {
    bitnet_session* session = nullptr;
    EXPECT_EQ(bitnet_session_open(model_, nullptr, &session, &error_), BITNET_OK) << error_.message;
    const std::vector<bitnet_token> prompt(3, 5);
    bitnet_generation how;
    bitnet_generation_defaults(&how, sizeof how);
    how.max_tokens = 5;
    bitnet_generation_result done{};
    done.struct_size = sizeof done;
    EXPECT_EQ(bitnet_generate(session, prompt.data(), prompt.size(), &how, &done, &error_),
              BITNET_OK)
        << error_.message;
    uint64_t needed = 0;
    bitnet_session_report(session, nullptr, 0, &needed, nullptr);
    std::string text(needed, '\0');
    EXPECT_EQ(bitnet_session_report(session, text.data(), needed, &needed, &error_), BITNET_OK);
    bitnet_session_close(session);
    return json::parse(text);
  }

  std::mutex mutex_;
  std::vector<heard> all_;
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  bitnet_error error_ = blank_error();
};

TEST_F(trace, says_what_a_session_computes) {
  open(true);
  if (IsSkipped()) return;
  const json report = generate();
  const auto steps = of(BITNET_TRACE_STEP);
  ASSERT_EQ(steps.size(), report["steps"].get<std::size_t>());
  uint64_t tokens = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bitnet_trace_event& e = steps[i].event;
    EXPECT_EQ(e.struct_size, sizeof e);
    EXPECT_EQ(e.step, i + 1);
    EXPECT_EQ(e.n_sequences, 1U);
    EXPECT_EQ(e.n_outputs, 1U);
    EXPECT_EQ(e.status, BITNET_OK);
    EXPECT_LT(e.begin_ns, e.end_ns);
    tokens += e.n_tokens;
  }
  EXPECT_EQ(tokens, report["tokens"].get<uint64_t>());
  EXPECT_EQ(of(BITNET_TRACE_SAMPLE).size(), 5U);
  for (const uint32_t kind : {BITNET_TRACE_SUBMIT, BITNET_TRACE_WAIT, BITNET_TRACE_DEVICE}) {
    const auto parts = of(kind);
    ASSERT_EQ(parts.size(), steps.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].device, report["device"].get<std::string>());
      EXPECT_GE(parts[i].event.begin_ns, steps[i].event.begin_ns) << "a part of its step";
      EXPECT_LE(parts[i].event.end_ns, steps[i].event.end_ns);
    }
  }
}

TEST_F(trace, has_the_counters_of_the_backend) {
  open(true);
  if (IsSkipped()) return;
  const json report = generate();
  struct sums {
    uint64_t calls = 0, time_ns = 0, bytes = 0;
    bool operator==(const sums&) const = default;
  };
  std::map<std::string, sums> reported, traced;
  for (const json& k : report["kernels"])
    if (k["calls"] != 0)
      reported[k["id"]] = {k["calls"], k.value("time_ns", uint64_t{0}),
                           k.value("bytes", uint64_t{0})};
  for (const heard& one : of(BITNET_TRACE_KERNEL)) {
    EXPECT_EQ(one.event.begin_ns, one.event.end_ns);
    EXPECT_NE(one.op, "");
    sums& to = traced[one.kernel];
    to.calls += one.event.calls;
    to.time_ns += one.event.time_ns;
    to.bytes += one.event.bytes;
  }
  EXPECT_FALSE(traced.empty());
  EXPECT_EQ(traced, reported);
}

TEST_F(trace, measures_no_kernel_unless_asked) {
  open(false);
  if (IsSkipped()) return;
  generate();
  const auto kernels = of(BITNET_TRACE_KERNEL);
  EXPECT_FALSE(kernels.empty());
  for (const heard& one : kernels) EXPECT_EQ(one.event.time_ns, 0U) << one.kernel;
}

TEST_F(trace, says_what_a_scheduler_computes) {
  open(true);
  if (IsSkipped()) return;
  bitnet_scheduler* scheduler = nullptr;
  ASSERT_EQ(bitnet_scheduler_open(model_, nullptr, &scheduler, &error_), BITNET_OK)
      << error_.message;
  const std::vector<bitnet_token> prompt(3, 5);
  bitnet_generation how;
  bitnet_generation_defaults(&how, sizeof how);
  how.max_tokens = 4;
  bitnet_request_options asked;
  bitnet_request_defaults(&asked, sizeof asked);
  asked.prompt = prompt.data();
  asked.n_prompt = prompt.size();
  asked.generation = &how;
  asked.n_choices = 2;
  bitnet_request* request = nullptr;
  ASSERT_EQ(bitnet_request_submit(scheduler, &asked, &request, &error_), BITNET_OK)
      << error_.message;
  bitnet_event e{};
  e.struct_size = sizeof e;
  while (bitnet_request_next(request, 60'000, &e, &error_) == BITNET_OK)
    EXPECT_NE(e.kind, BITNET_EVENT_FAILED) << text_of(e.message);
  bitnet_request_close(request);
  bitnet_scheduler_close(scheduler);  // no event follows
  const auto steps = of(BITNET_TRACE_STEP);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.front().event.n_tokens, 3U);
  EXPECT_EQ(steps.back().event.n_sequences, 2U) << "both choices";
  EXPECT_EQ(of(BITNET_TRACE_SAMPLE).size(), steps.size());
  EXPECT_FALSE(of(BITNET_TRACE_KERNEL).empty());
}

}  // namespace
