// The events of a scheduler in an Asio loop: every request gets its own, one that takes none keeps
// no other waiting and costs no time, and what is counted is what the requests report.
#include "service/scheduler_events.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "../api/many_requests.hpp"
#include "basic/json.hpp"
#include "service/metrics.hpp"

namespace bitnet::host {
namespace {

using namespace std::chrono_literals;

// Takes what comes while `open` is true, and counts it as /metrics does.
class collecting final : public event_reader {
 public:
  explicit collecting(request_metrics& to) : times(to, std::chrono::steady_clock::now()) {}
  [[nodiscard]] bool has_room() const override { return open; }
  void take(const bitnet_event& e) override {
    times.take(e, std::chrono::steady_clock::now());
    if (e.kind == BITNET_EVENT_TEXT) {
      if (e.token >= 0) tokens.push_back(e.token);
    } else {
      end = e;
    }
  }
  void ended(request_handle request) override { has_ended = request != nullptr; }

  bool open = true, has_ended = false;
  std::vector<bitnet_token> tokens;
  std::optional<bitnet_event> end;
  request_times times;
};

class loop : public test::scheduler {
 protected:
  void begin() {
    ASSERT_EQ(open(defaults()), BITNET_OK) << error_.message;
    auto opened = scheduler_events::open(io_, scheduler_);
    ASSERT_TRUE(opened);
    events_ = *std::move(opened);
  }
  void TearDown() override {
    events_.reset();
    test::scheduler::TearDown();
  }
  std::shared_ptr<collecting> add(const test::wish& w, bitnet_request** key = nullptr) {
    bitnet_request* request = nullptr;
    EXPECT_EQ(try_submit(w, &request), BITNET_OK);
    if (key != nullptr) *key = request;
    auto reader = std::make_shared<collecting>(counted_);
    readers_.push_back(reader);
    events_->add(request_handle(request), reader);
    return reader;
  }
  bool run_until(const auto& condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < end) io_.run_one_for(50ms);
    return condition();
  }

  boost::asio::io_context io_;
  request_metrics counted_;
  std::unique_ptr<scheduler_events> events_;
  std::vector<std::shared_ptr<collecting>> readers_;
};

TEST_F(loop, gives_each_request_its_own_events) {
  begin();
  for (uint32_t kind = 0; kind < 6; ++kind)
    add({.prompt = test::prompt_of(20 + kind, kind), .max_tokens = 10 + static_cast<int>(kind)});
  ASSERT_TRUE(run_until([&] { return events_->n_open() == 0; }));
  for (uint32_t kind = 0; kind < 6; ++kind) {
    EXPECT_TRUE(readers_[kind]->has_ended);
    EXPECT_EQ(readers_[kind]->tokens.size(), 10U + kind);
    EXPECT_EQ(readers_[kind]->end->n_prompt, 20U + kind);
  }
}

// The loop is idle while events lie there that a reader does not take.
TEST_F(loop, leaves_events_of_one_and_gives_those_of_others) {
  begin();
  bitnet_request* key = nullptr;
  const auto shut = add({.prompt = test::prompt_of(20, 1), .max_tokens = 8}, &key);
  shut->open = false;
  const auto other = add({.prompt = test::prompt_of(20, 2), .max_tokens = 40});
  ASSERT_TRUE(run_until([&] { return other->has_ended; }));
  io_.run_for(200ms);
  const std::size_t n_turns = io_.run_for(300ms);
  EXPECT_LT(n_turns, 5U) << "the loop turns for events that are left";
  EXPECT_FALSE(shut->has_ended);
  shut->open = true;
  events_->resume(key);
  ASSERT_TRUE(run_until([&] { return shut->has_ended; }));
  EXPECT_EQ(shut->tokens.size(), 8U);
}

TEST_F(loop, cancels_a_request_within_a_step) {
  begin();
  bitnet_request* key = nullptr;
  const auto one = add({.prompt = test::prompt_of(20, 1), .max_tokens = 400}, &key);
  ASSERT_TRUE(run_until([&] { return !one->tokens.empty(); }));
  events_->cancel(key);
  ASSERT_TRUE(run_until([&] { return one->has_ended; }));
  EXPECT_EQ(one->end->stop_reason, BITNET_STOP_CANCELLED);
  EXPECT_LT(one->tokens.size(), 400U);
}

// A load whose numbers are known from the requests: what /metrics has is their sum.
TEST_F(loop, is_counted_as_the_requests_report_it) {
  begin();
  add({.prompt = test::prompt_of(150, 1), .max_tokens = 6});
  ASSERT_TRUE(run_until([&] { return events_->n_open() == 0; }));
  add({.prompt = test::prompt_of(150, 1), .max_tokens = 9});  // two blocks of it are known
  add({.prompt = test::prompt_of(30, 2), .max_tokens = 5, .n_choices = 2});
  ASSERT_TRUE(run_until([&] { return events_->n_open() == 0; }));
  EXPECT_EQ(readers_[1]->end->n_cached, 128U);
  const auto report_of = [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_scheduler_report(scheduler_, out, capacity, needed, nullptr);
  };
  const auto read = [&] {
    std::string text;
    EXPECT_EQ(fetch(report_of, text), BITNET_OK);
    return nlohmann::json::parse(text);
  };
  // The last event comes before its step is counted.
  nlohmann::json report;
  ASSERT_TRUE(run_until([&] { return (report = read())["choices"]["length"] == 4; }));
  const std::string got =
      metrics_of({.version = "1"}, {{{"m", 0, report}}}, {{{"m", 0, &counted_}}});
  const std::string labels = R"({model_name="m",engine="0")";
  const struct {
    const char* name;
    const char* more;
    int value;
  } rows[] = {{"vllm:num_requests_running", "", 0},
              {"vllm:num_requests_waiting", "", 0},
              {"vllm:prompt_tokens_total", "", 150 + 150 + 30},
              {"vllm:generation_tokens_total", "", 6 + 9 + 5 + 5},
              {"vllm:prefix_cache_queries_total", "", 150 + 150 + 30},
              {"vllm:prefix_cache_hits_total", "", 128},
              {"vllm:num_preemptions_total", "", 0},
              {"vllm:request_success_total", R"(,finished_reason="length")", 4},
              {"vllm:request_success_total", R"(,finished_reason="stop")", 0},
              {"vllm:time_to_first_token_seconds_count", "", 4},
              {"vllm:inter_token_latency_seconds_count", "", 5 + 8 + 4 + 4},
              {"vllm:e2e_request_latency_seconds_count", "", 4},
              {"vllm:request_queue_time_seconds_count", "", 4},
              {"vllm:request_prefill_time_seconds_count", "", 4},
              {"vllm:request_decode_time_seconds_count", "", 4},
              {"bitnet_requests_accepted_total", "", 3}};
  for (const auto& row : rows) {
    const std::string line =
        '\n' + (row.name + labels) + row.more + "} " + std::to_string(row.value) + '\n';
    EXPECT_TRUE(got.contains(line)) << line << got;
  }
}

}  // namespace
}  // namespace bitnet::host
