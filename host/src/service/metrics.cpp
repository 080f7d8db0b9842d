#include "service/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "library/json.hpp"

namespace bitnet::host {
namespace {

// vLLM's buckets, in seconds.
constexpr double first_token_bounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                         0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                         20,    40,    80,   160,  640,  2560};
constexpr double between_tokens_bounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                            0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
constexpr double request_bounds[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};

double seconds_of(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}
double seconds_of(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// A number of the report, 0 where it has none.
double number(const nlohmann::json& report, std::initializer_list<const char*> path) {
  const nlohmann::json* at = &report;
  for (const char* key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (found == at->end()) return 0;
    at = &*found;
  }
  return at->is_number() ? at->get<double>() : 0;
}

nlohmann::json object_in(const nlohmann::json& report, const char* outer, const char* inner) {
  const auto first = report.find(outer);
  if (first == report.end() || !first->is_object()) return nlohmann::json::object();
  const auto second = first->find(inner);
  return second == first->end() || !second->is_object() ? nlohmann::json::object() : *second;
}

struct row {
  const char* name;
  const char* type;
  const char* help;
  double value;
};

void write_rows(metrics_text& to, std::initializer_list<row> rows) {
  for (const row& one : rows) {
    to.begin(one.name, one.type, one.help);
    to.sample(one.value);
  }
}

void write_scheduler(metrics_text& to, const nlohmann::json& report) {
  const double blocks = number(report, {"kv", "blocks"});
  const double used = number(report, {"kv", "used"});
  const double waiting =
      number(report, {"waiting", "new"}) + number(report, {"waiting", "preempted"});
  write_rows(
      to,
      {{"vllm:num_requests_running", "gauge", "Choices that steps compute.",
        number(report, {"running"})},
       {"vllm:num_requests_waiting", "gauge", "Choices that wait to be computed.", waiting},
       {"vllm:kv_cache_usage_perc", "gauge", "Part of the KV blocks in use; 1 is all of them.",
        blocks == 0 ? 0 : used / blocks},
       {"vllm:prefix_cache_queries_total", "counter", "Tokens of prompts that were looked up.",
        number(report, {"prefix", "queried"})},
       {"vllm:prefix_cache_hits_total", "counter", "Tokens of prompts that were known.",
        number(report, {"prefix", "found"})},
       {"vllm:num_preemptions_total", "counter", "Times that a choice gave up its place.",
        number(report, {"preemptions"})},
       {"vllm:spec_decode_num_drafts_total", "counter", "Drafts that steps computed.",
        number(report, {"speculation", "steps"})},
       {"vllm:spec_decode_num_draft_tokens_total", "counter", "Tokens of these drafts.",
        number(report, {"speculation", "drafted"})},
       {"vllm:spec_decode_num_accepted_tokens_total", "counter",
        "Tokens of these drafts that are in texts.", number(report, {"speculation", "accepted"})},
       {"vllm:prompt_tokens_total", "counter", "Tokens of prompts, computed or known.",
        number(report, {"tokens", "prompt"})},
       {"vllm:generation_tokens_total", "counter", "Tokens that were generated.",
        number(report, {"tokens", "generated"})}});
  to.begin("vllm:cache_config_info", "gauge",
           "Tokens of a KV block, and how many blocks there are.");
  to.sample(1, {{"block_size", fmt::format("{}", number(report, {"kv", "block_tokens"}))},
                {"num_gpu_blocks", fmt::format("{}", blocks)}});
}

void write_own(metrics_text& to, const metrics_facts& about, const nlohmann::json& report) {
  to.begin("bitnet_backend_info", "gauge", "What computes.");
  to.sample(1, {{"backend", member(report, "backend")},
                {"device", member(report, "device")},
                {"version", about.version}});
  write_rows(
      to,
      {{"bitnet_model_load_seconds", "gauge", "Time to load the model.", about.load_seconds},
       {"bitnet_connections", "gauge", "Connections of clients.",
        static_cast<double>(about.n_connections)},
       {"bitnet_requests_paused", "gauge", "Choices whose client does not take their tokens.",
        number(report, {"paused"}) + number(report, {"waiting", "paused"})},
       {"bitnet_waiting_tokens", "gauge", "Tokens of prompts that wait.",
        number(report, {"waiting", "tokens"})},
       {"bitnet_requests_accepted_total", "counter", "Requests that the scheduler took.",
        number(report, {"requests", "accepted"})},
       {"bitnet_recomputed_tokens_total", "counter",
        "Tokens that were computed once more, after a preemption or a move.",
        number(report, {"tokens", "recomputed"})},
       {"bitnet_evicted_blocks_total", "counter", "KV blocks of known prompts that were given up.",
        number(report, {"prefix", "evicted_blocks"})},
       {"bitnet_steps_total", "counter", "Steps of the engine.", number(report, {"steps"})},
       {"bitnet_failed_steps_total", "counter", "Steps that failed.",
        number(report, {"failed_steps"})},
       {"bitnet_step_seconds_total", "counter", "Time in steps.",
        number(report, {"step_ns"}) / 1e9},
       {"bitnet_devices_lost_total", "counter", "Times that a device was lost.",
        number(report, {"devices_lost"})}});
  to.begin("bitnet_admission_rejections_total", "counter", "Requests that the scheduler refused.");
  const nlohmann::json refused = object_in(report, "requests", "refused");  // outlives items()
  for (const auto& [reason, n] : refused.items())
    to.sample(n.is_number() ? n.get<double>() : 0, {{"reason", reason}});
}

}  // namespace

request_metrics::request_metrics()
    : first_token_(first_token_bounds),
      between_tokens_(between_tokens_bounds),
      whole_(request_bounds),
      queue_(request_bounds),
      prefill_(request_bounds),
      decode_(request_bounds) {}

// A choice that its client left is `abort`, as in vLLM, and has no times: they say nothing of how
// fast answers are.
void request_metrics::choice_ended(const bitnet_event& end, double seconds) {
  const auto finish_of = [&] {
    if (end.kind == BITNET_EVENT_FAILED) return finish::error;
    switch (end.stop_reason) {
      case BITNET_STOP_LENGTH:
      case BITNET_STOP_CONTEXT:
        return finish::length;
      case BITNET_STOP_CANCELLED:
        return finish::abort;
      default:
        return finish::stop;
    }
  };
  const finish how = finish_of();
  ++finished_[static_cast<std::size_t>(how)];
  if (how != finish::stop && how != finish::length) return;
  whole_.add(seconds);
  queue_.add(seconds_of(end.queue_ns));
  prefill_.add(seconds_of(end.prompt_ns));
  decode_.add(seconds_of(end.generate_ns));
}

void request_metrics::refused(int status) {
  const auto at = std::ranges::find(refused_, status, &std::pair<int, uint64_t>::first);
  if (at == refused_.end())
    refused_.emplace_back(status, 1);
  else
    ++at->second;
}

void request_metrics::write(metrics_text& to) const {
  constexpr const char* reasons[] = {"stop", "length", "abort", "error"};
  to.begin("vllm:request_success_total", "counter", "Choices that ended, by how.");
  for (std::size_t i = 0; i < finished_.size(); ++i)
    to.sample(static_cast<double>(finished_[i]), {{"finished_reason", reasons[i]}});
  const struct {
    const char* name;
    const char* help;
    const histogram& of;
  } rows[] = {
      {"vllm:time_to_first_token_seconds", "From the request to a choice's first token.",
       first_token_},
      {"vllm:inter_token_latency_seconds", "Between two tokens of a choice.", between_tokens_},
      {"vllm:e2e_request_latency_seconds", "From the request to a choice's end.", whole_},
      {"vllm:request_queue_time_seconds", "In which a choice waited.", queue_},
      {"vllm:request_prefill_time_seconds", "From the wait's end to the first token.", prefill_},
      {"vllm:request_decode_time_seconds", "From the first token to the end.", decode_}};
  for (const auto& row : rows) {
    to.begin(row.name, "histogram", row.help);
    to.samples(row.of);
  }
  to.begin("bitnet_requests_refused_total", "counter", "Requests without an answer, by status.");
  for (const auto& [status, n] : refused_)
    to.sample(static_cast<double>(n), {{"status", fmt::format("{}", status)}});
}

void request_times::take(const bitnet_event& e, time now) {
  if (e.kind != BITNET_EVENT_TEXT) return to_.choice_ended(e, seconds_of(now - came_));
  if (e.token < 0) return;  // text that was held back, and no token
  if (e.choice >= last_.size()) {
    last_.resize(e.choice + std::size_t{1}, came_);
    has_token_.resize(last_.size(), false);
  }
  const double passed = seconds_of(now - last_[e.choice]);
  if (has_token_[e.choice])
    to_.next_token_after(passed);
  else
    to_.first_token_after(passed);
  has_token_[e.choice] = true;
  last_[e.choice] = now;
}

std::string metrics_of(const metrics_facts& about, const nlohmann::json& report,
                       const request_metrics& requests) {
  metrics_text out({{"model_name", about.model_name}, {"engine", "0"}});
  write_scheduler(out, report);
  requests.write(out);
  write_own(out, about, report);
  return out.text();
}

}  // namespace bitnet::host
