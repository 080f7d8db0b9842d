// The text of /metrics of a known load: every number, and a form that each reader takes.
#include "service/metrics.hpp"
#include "service/process_metrics.hpp"
#include "service/runtime_metrics.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace bitnet::host {
namespace {

using namespace std::chrono_literals;
using time = request_metrics::time;

// A report as bitnet_scheduler_report gives it.
nlohmann::json known_report() {
  return {{"backend", "cpu"},
          {"device", "cpu \"0\"\\\n"},
          {"kv",
           {{"blocks", 200}, {"block_tokens", 64}, {"used", 50}, {"cached", 60}, {"reserved", 7}}},
          {"running", 3},
          {"paused", 1},
          {"waiting", {{"new", 4}, {"preempted", 2}, {"paused", 1}, {"tokens", 999}}},
          {"n_context", 300},
          {"requests",
           {{"accepted", 11},
            {"refused",
             {{"too_long", 5}, {"closed", 0}, {"requests_waiting", 12}, {"tokens_waiting", 13}}}}},
          {"choices", {{"eos", 21}, {"stalled", 22}}},
          {"tokens", {{"prompt", 1000}, {"generated", 77}, {"recomputed", 6}}},
          {"prefix", {{"queried", 900}, {"found", 320}, {"evicted_blocks", 8}}},
          {"preemptions", 9},
          {"steps", 123456789012},
          {"step_tokens", {{"bounds", {1, 8, 16}}, {"counts", {2, 0, 3, 4}}, {"sum", 700}}},
          {"speculation",
           {{"steps", 31}, {"drafted", 90}, {"accepted", 42}, {"accepted_at", {30, 12}}}},
          {"moves", 14},
          {"failed_steps", 1},
          {"step_ns", 2500000000},
          {"devices_lost", 0}};
}

// The samples by name and labels; fails the test where a line has not the form of a sample, or
// where a name comes without HELP and TYPE before.
std::map<std::string, std::string> samples_of(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.starts_with("# TYPE " + name + " ")) << line;
      continue;
    }
    EXPECT_TRUE(line.starts_with(name)) << line;
    const auto blank = line.rfind(' ');
    EXPECT_TRUE(out.emplace(line.substr(0, blank), line.substr(blank + 1)).second)
        << "twice: " << line;
  }
  EXPECT_TRUE(text.ends_with('\n'));
  return out;
}

bitnet_event token(uint32_t choice) {
  bitnet_event e{};
  e.kind = BITNET_EVENT_TEXT;
  e.choice = choice;
  e.token = 5;
  return e;
}

bitnet_event end(uint32_t choice, uint32_t reason) {
  bitnet_event e{};
  e.kind = BITNET_EVENT_END;
  e.choice = choice;
  e.stop_reason = reason;
  e.n_prompt = 12;
  e.n_cached = 8;
  e.n_generated = choice == 0 ? 3 : 1;
  e.queue_ns = 500'000'000;
  e.prompt_ns = 1'250'000'000;
  e.generate_ns = 3'000'000'000;
  return e;
}

// Two choices of one request: tokens at 0.25 s, 0.5 s and 1.5 s, and at 2 s; then their ends. Then
// a choice that was left, one that failed, and rejections.
void drive_load(request_metrics& to) {
  const time came{};
  request_times one(to, came, request_params{.n = 2, .max_tokens = 40});
  one.take(token(0), came + 250ms);
  one.take(token(0), came + 500ms);
  bitnet_event held_back = token(0);
  held_back.token = -1;
  one.take(held_back, came + 600ms);
  one.take(token(1), came + 2s);
  one.take(token(0), came + 1500ms);
  one.take(end(0, BITNET_STOP_EOS), came + 2s);
  one.take(end(1, BITNET_STOP_LENGTH), came + 4s);
  request_times left(to, came, request_params{.n = 2});
  left.take(end(0, BITNET_STOP_CANCELLED), came + 9s);
  bitnet_event failed = end(0, 0);
  failed.kind = BITNET_EVENT_FAILED;
  left.take(failed, came + 9s);
  request_times embedding(to, came);
  embedding.take(end(0, BITNET_STOP_LENGTH), came + 1s);
  to.rejected(400);
  to.rejected(429);
  to.rejected(400);
}

// Of one model that is loaded.
std::string metrics_of_one(const std::string& name, const nlohmann::json& report,
                           const request_metrics& counted = {}) {
  const model_metrics one{.model_name = name, .load_seconds = 0, .report = report};
  const request_counts of{.model_name = name,
                          .n_context = report.is_object() ? report.value("n_context", 0U) : 0,
                          .counts = &counted};
  return metrics_of({.version = "1.2", .now_seconds = 1.5e9}, {&one, 1}, {&of, 1});
}

TEST(metrics, gives_the_schedulers_report_under_vllms_names) {
  const auto got = samples_of(metrics_of_one("m\"1\\\n", known_report()));
  const std::string common = R"({model_name="m\"1\\\n",engine="0")";
  const struct {
    const char* name;
    const char* more;
    const char* value;
  } rows[] = {
      {"vllm:num_requests_running", "", "3"},
      {"vllm:num_requests_waiting", "", "7"},
      {"vllm:num_requests_waiting_by_reason", R"(,reason="capacity")", "6"},
      {"vllm:num_requests_waiting_by_reason", R"(,reason="deferred")", "1"},
      {"vllm:lora_requests_info",
       R"(,max_lora="0",running_lora_adapters="",waiting_lora_adapters="")", "1500000000"},
      {"vllm:prompt_tokens_cached_total", "", "320"},
      {"vllm:prompt_tokens_by_source_total", R"(,source="local_compute")", "680"},
      {"vllm:prompt_tokens_by_source_total", R"(,source="local_cache_hit")", "320"},
      {"vllm:spec_decode_num_drafts_total", "", "31"},
      {"vllm:spec_decode_num_draft_tokens_total", "", "90"},
      {"vllm:spec_decode_num_accepted_tokens_total", "", "42"},
      {"vllm:spec_decode_num_accepted_tokens_per_pos_total", R"(,position="0")", "30"},
      {"vllm:spec_decode_num_accepted_tokens_per_pos_total", R"(,position="1")", "12"},
      {"vllm:iteration_tokens_total_bucket", R"(,le="1")", "2"},
      {"vllm:iteration_tokens_total_bucket", R"(,le="16")", "5"},
      {"vllm:iteration_tokens_total_bucket", R"(,le="+Inf")", "9"},
      {"vllm:iteration_tokens_total_sum", "", "700"},
      {"vllm:iteration_tokens_total_count", "", "9"},
      {"vllm:admission_rejections_total", R"(,reason="max_num_queued_reqs")", "12"},
      {"vllm:admission_rejections_total", R"(,reason="max_num_queued_tokens")", "13"},
      {"bitnet_choices_ended_total", R"(,reason="eos")", "21"},
      {"bitnet_choices_ended_total", R"(,reason="stalled")", "22"},
      {"bitnet_moves_total", "", "14"},
      {"bitnet_kv_cached_blocks", "", "60"},
      {"bitnet_kv_reserved_blocks", "", "7"},
      {"vllm:kv_cache_usage_perc", "", "0.25"},
      {"vllm:prefix_cache_queries_total", "", "900"},
      {"vllm:prefix_cache_hits_total", "", "320"},
      {"vllm:num_preemptions_total", "", "9"},
      {"vllm:prompt_tokens_total", "", "1000"},
      {"vllm:generation_tokens_total", "", "77"},
      {"vllm:cache_config_info", R"(,block_size="64",num_gpu_blocks="200")", "1"},
      {"bitnet_backend_info", R"(,backend="cpu",device="cpu \"0\"\\\n",version="1.2")", "1"},
      {"bitnet_requests_paused", "", "2"},
      {"bitnet_waiting_tokens", "", "999"},
      {"bitnet_requests_accepted_total", "", "11"},
      {"bitnet_recomputed_tokens_total", "", "6"},
      {"bitnet_evicted_blocks_total", "", "8"},
      {"bitnet_steps_total", "", "123456789012"},
      {"bitnet_failed_steps_total", "", "1"},
      {"bitnet_step_seconds_total", "", "2.5"},
      {"bitnet_admission_rejections_total", R"(,reason="too_long")", "5"},
      {"bitnet_admission_rejections_total", R"(,reason="closed")", "0"}};
  for (const auto& row : rows) {
    const auto at = got.find(row.name + common + row.more + "}");
    ASSERT_NE(at, got.end()) << row.name;
    EXPECT_EQ(at->second, row.value) << row.name;
  }
}

// Each row that was compared counts once, by the most that can be said of it.
TEST(metrics, counts_what_a_shadow_compared) {
  const request_metrics counted;
  const model_metrics with{
      .model_name = "m", .report = known_report(), .shadow = nlohmann::json::parse(R"({
        "state": "running", "rows": {"seen": 90, "offered": 33, "compared": 30, "dropped": 2},
        "same_bytes": 11, "same_top": 25, "kl": {"mean": 0.25, "max": 1.5},
        "offering_ns": {"sum": 500000000, "longest": 1}})")};
  const request_counts all{.model_name = "m", .counts = &counted};
  const auto got = samples_of(metrics_of({}, {&with, 1}, {&all, 1}));
  const std::pair<const char*, const char*> rows[] = {
      {R"(bitnet_shadow_rows_total{model_name="m",engine="0",result="equal"})", "11"},
      {R"(bitnet_shadow_rows_total{model_name="m",engine="0",result="same_top"})", "14"},
      {R"(bitnet_shadow_rows_total{model_name="m",engine="0",result="differs"})", "5"},
      {R"(bitnet_shadow_rows_total{model_name="m",engine="0",result="dropped"})", "2"},
      {R"(bitnet_shadow_running{model_name="m",engine="0"})", "1"},
      {R"(bitnet_shadow_kl_mean{model_name="m",engine="0"})", "0.25"},
      {R"(bitnet_shadow_kl_max{model_name="m",engine="0"})", "1.5"},
      {R"(bitnet_shadow_offering_seconds_total{model_name="m",engine="0"})", "0.5"}};
  for (const auto& [name, value] : rows) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name), value) << name;
  }
}

TEST(metrics, counts_a_known_load) {
  request_metrics counted;
  drive_load(counted);
  const auto got = samples_of(metrics_of_one("m", known_report(), counted));
  const std::string common = R"({model_name="m",engine="0")";
  const struct {
    const char* name;
    const char* more;
    const char* value;
  } rows[] = {
      {"vllm:request_success_total", R"(,finished_reason="stop")", "1"},
      {"vllm:request_success_total", R"(,finished_reason="length")", "2"},
      {"vllm:request_success_total", R"(,finished_reason="abort")", "1"},
      {"vllm:request_success_total", R"(,finished_reason="error")", "1"},
      {"vllm:time_to_first_token_seconds_bucket", R"(,le="0.1")", "0"},
      {"vllm:time_to_first_token_seconds_bucket", R"(,le="0.25")", "1"},  // a bound is within
      {"vllm:time_to_first_token_seconds_bucket", R"(,le="2.5")", "2"},
      {"vllm:time_to_first_token_seconds_bucket", R"(,le="+Inf")", "2"},
      {"vllm:time_to_first_token_seconds_sum", "", "2.25"},
      {"vllm:time_to_first_token_seconds_count", "", "2"},
      {"vllm:inter_token_latency_seconds_bucket", R"(,le="0.2")", "0"},
      {"vllm:inter_token_latency_seconds_bucket", R"(,le="0.3")", "1"},
      {"vllm:inter_token_latency_seconds_bucket", R"(,le="1")", "2"},
      {"vllm:inter_token_latency_seconds_sum", "", "1.25"},
      {"vllm:inter_token_latency_seconds_count", "", "2"},
      {"vllm:e2e_request_latency_seconds_bucket", R"(,le="2")", "2"},
      {"vllm:e2e_request_latency_seconds_sum", "", "7"},
      {"vllm:e2e_request_latency_seconds_count", "", "3"},
      {"vllm:request_queue_time_seconds_bucket", R"(,le="0.5")", "3"},
      {"vllm:request_queue_time_seconds_sum", "", "1.5"},
      {"vllm:request_prefill_time_seconds_sum", "", "3.75"},
      {"vllm:request_decode_time_seconds_sum", "", "9"},
      {"vllm:request_decode_time_seconds_bucket", R"(,le="7680")", "3"},
      {"vllm:request_inference_time_seconds_sum", "", "12.75"},
      {"vllm:request_time_per_output_token_seconds_count", "", "2"},  // 1.5 s, and 0 of one token
      {"vllm:request_time_per_output_token_seconds_sum", "", "1.5"},
      {"vllm:request_prompt_tokens_sum", "", "36"},
      {"vllm:request_prompt_tokens_bucket", R"(,le="10")", "0"},
      {"vllm:request_prompt_tokens_bucket", R"(,le="200")", "3"},  // the last up to 300
      {"vllm:request_prompt_tokens_bucket", R"(,le="+Inf")", "3"},
      {"vllm:request_prefill_kv_computed_tokens_sum", "", "12"},
      {"vllm:request_generation_tokens_sum", "", "4"},
      {"vllm:request_generation_tokens_count", "", "2"},
      {"vllm:request_params_n_sum", "", "2"},
      {"vllm:request_params_n_count", "", "1"},
      {"vllm:request_params_max_tokens_sum", "", "80"},
      {"vllm:request_params_max_tokens_count", "", "2"},
      {"bitnet_requests_refused_total", R"(,status="400")", "2"},
      {"bitnet_requests_refused_total", R"(,status="429")", "1"}};
  for (const auto& row : rows) {
    const auto at = got.find(row.name + common + row.more + "}");
    ASSERT_NE(at, got.end()) << row.name << row.more;
    EXPECT_EQ(at->second, row.value) << row.name << row.more;
  }
  EXPECT_EQ(got.count("vllm:request_prompt_tokens_bucket" + common + R"(,le="500"})"), 0U)
      << "a prompt has at most 300 tokens";
}

TEST(metrics, give_the_runtimes_report) {
  metrics_text out;
  write_runtime(
      out, {{"version", "1.2"}, {"abi_major", 1}, {"abi_minor", 3}, {"compiler", "g++"}},
      {{"requested", "auto"},
       {"detected", {"cpu", "vulkan"}},
       {"selected", "cpu"},
       {"backends",
        {{{"name", "cpu"}, {"code", "BN-OK"}, {"generations", {{{"number", 1}}, {{"number", 3}}}}},
         {{"name", "cuda"}, {"code", "BN-P-NODEVICE"}}}}});
  const auto got = samples_of(out.text());
  const std::map<std::string, std::string> want = {
      {R"(bitnet_build_info{version="1.2",abi="1.3",compiler="g++"})", "1"},
      {R"(bitnet_selection_info{requested="auto",detected="cpu,vulkan",selected="cpu"})", "1"},
      {R"(bitnet_backend_usable{backend="cpu",code="BN-OK"})", "1"},
      {R"(bitnet_backend_usable{backend="cuda",code="BN-P-NODEVICE"})", "0"},
      {R"(bitnet_backend_reloads_total{backend="cpu"})", "2"}};
  EXPECT_EQ(got, want);
}

TEST(metrics, give_what_the_process_takes) {
  metrics_text out;
  write_process(out);
  const auto got = samples_of(out.text());
  for (const char* name :
       {"process_cpu_seconds_total", "process_start_time_seconds", "process_resident_memory_bytes",
        "process_virtual_memory_bytes", "process_open_fds", "process_max_fds"})
    EXPECT_EQ(got.count(name), 1U) << name;
  const auto n = [&](const char* name) { return std::stod(got.at(name)); };
  EXPECT_GE(n("process_open_fds"), 3);
  EXPECT_LE(n("process_open_fds"), n("process_max_fds"));
  EXPECT_LE(n("process_resident_memory_bytes"), n("process_virtual_memory_bytes"));
}

TEST(metrics, of_two_models_have_one_head_for_each_name) {
  const std::vector<model_metrics> loaded = {{"a", 1.5, known_report()}, {"b", 2, known_report()}};
  const request_metrics counted;
  const std::vector<request_counts> requests = {{"a", 300, &counted}, {"gone", 0, &counted}};
  const std::string text = metrics_of({.version = "1", .n_connections = 7}, loaded, requests);
  const auto got = samples_of(text);
  EXPECT_EQ(got.at(R"(bitnet_model_load_seconds{model_name="a",engine="0"})"), "1.5");
  EXPECT_EQ(got.at(R"(bitnet_model_load_seconds{model_name="b",engine="0"})"), "2");
  EXPECT_EQ(got.at("bitnet_connections"), "7");
  EXPECT_EQ(got.at(R"(vllm:time_to_first_token_seconds_count{model_name="gone",engine="0"})"), "0");
  EXPECT_EQ(got.count(R"(vllm:num_requests_running{model_name="gone",engine="0"})"), 0U);
  // All samples of a name follow its one head.
  std::map<std::string, int> heads;
  std::string of;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP")) continue;
    if (line.starts_with("# TYPE ")) {
      of = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(++heads[of], 1) << of;
    } else {
      EXPECT_TRUE(line.starts_with(of)) << line;
    }
  }
  EXPECT_GT(heads.size(), 40U);
}

TEST(metrics, survives_a_report_of_another_form) {
  for (const auto& report : {nlohmann::json::object(), nlohmann::json::array(),
                             nlohmann::json({{"kv", 5}, {"requests", {{"refused", "x"}}}}),
                             nlohmann::json({{"step_tokens", {{"bounds", {1, "x"}}}},
                                             {"speculation", {1}},
                                             {"choices", {{"eos", "x"}}}})})
    EXPECT_EQ(samples_of(metrics_of_one("", report))
                  .at(R"(vllm:kv_cache_usage_perc{model_name="",engine="0"})"),
              "0");
}

}  // namespace
}  // namespace bitnet::host
