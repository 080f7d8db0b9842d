#include "service/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"

namespace bitnet::host {
namespace {

// A number in the report; 0 if it is absent.
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

// Metrics for the gateway's model router, which expects vLLM's.
void write_load(metrics_text& to, const metrics_facts& about, const nlohmann::json& report) {
  const double blocks = number(report, {"kv", "blocks"});
  const double used = number(report, {"kv", "used"});
  const double for_room =
      number(report, {"waiting", "new"}) + number(report, {"waiting", "preempted"});
  const double for_reader = number(report, {"waiting", "paused"});
  write_rows(
      to, {{"vllm:num_requests_running", "gauge", "Choices that steps compute.",
            number(report, {"running"})},
           {"vllm:num_requests_waiting", "gauge", "Choices that wait.", for_room + for_reader},
           {"vllm:kv_cache_usage_perc", "gauge", "Part of the KV blocks in use; 1 is all of them.",
            blocks == 0 ? 0 : used / blocks}});
  to.begin("vllm:num_requests_waiting_by_reason", "gauge",
           "Choices that wait: capacity for room, deferred for their client to take tokens.");
  to.sample(for_room, {{"reason", "capacity"}});
  to.sample(for_reader, {{"reason", "deferred"}});
  to.begin("vllm:cache_config_info", "gauge",
           "Tokens of a KV block, and how many blocks there are.");
  to.sample(1, {{"block_size", fmt::format("{}", number(report, {"kv", "block_tokens"}))},
                {"num_gpu_blocks", fmt::format("{}", blocks)}});
  to.begin("vllm:lora_requests_info", "gauge",
           "LoRA adapters: there are none. The value is the time.");
  to.sample(about.now_seconds,
            {{"max_lora", "0"}, {"running_lora_adapters", ""}, {"waiting_lora_adapters", ""}});
}

void write_speculation(metrics_text& to, const nlohmann::json& report) {
  write_rows(
      to, {{"vllm:spec_decode_num_drafts_total", "counter", "Drafts that steps computed.",
            number(report, {"speculation", "steps"})},
           {"vllm:spec_decode_num_draft_tokens_total", "counter",
            "Tokens of drafts that steps computed.", number(report, {"speculation", "drafted"})},
           {"vllm:spec_decode_num_accepted_tokens_total", "counter",
            "Tokens of drafts that are in texts.", number(report, {"speculation", "accepted"})}});
  to.begin("vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
           "Tokens of drafts that are in texts, by their place in the draft.");
  const auto found = report.is_object() ? report.find("speculation") : report.end();
  if (found == report.end()) return;
  std::size_t position = 0;
  for (const auto& n : list_of(*found, "accepted_at"))
    to.sample(n.is_number() ? n.get<double>() : 0, {{"position", fmt::format("{}", position++)}});
}

void write_tokens(metrics_text& to, const nlohmann::json& report) {
  const double prompt = number(report, {"tokens", "prompt"});
  const double known = number(report, {"prefix", "found"});
  write_rows(
      to,
      {{"vllm:prompt_tokens_total", "counter", "Tokens of prompts, computed or known.", prompt},
       {"vllm:prompt_tokens_cached_total", "counter", "Tokens of prompts that were known.", known},
       {"vllm:generation_tokens_total", "counter", "Tokens that were generated.",
        number(report, {"tokens", "generated"})},
       {"vllm:prefix_cache_queries_total", "counter", "Tokens of prompts that were looked up.",
        number(report, {"prefix", "queried"})},
       {"vllm:prefix_cache_hits_total", "counter", "Tokens of prompts that were known.", known},
       {"vllm:num_preemptions_total", "counter", "Times that a choice gave up its place.",
        number(report, {"preemptions"})}});
  to.begin("vllm:prompt_tokens_by_source_total", "counter",
           "Tokens of prompts, by where they were.");
  to.sample(std::max(prompt - known, 0.0), {{"source", "local_compute"}});
  to.sample(known, {{"source", "local_cache_hit"}});
}

// Tokens computed per step. vLLM's name ends like a counter's.
void write_steps(metrics_text& to, const nlohmann::json& report) {
  std::vector<double> bounds;
  std::vector<uint64_t> counts;
  const auto found = report.is_object() ? report.find("step_tokens") : report.end();
  if (found != report.end()) {
    for (const auto& one : list_of(*found, "bounds"))
      bounds.push_back(one.is_number() ? one.get<double>() : 0);
    for (const auto& one : list_of(*found, "counts"))
      counts.push_back((one.is_number() ? one.get<uint64_t>() : 0) +
                       (counts.empty() ? 0 : counts.back()));
  }
  counts.resize(bounds.size() + 1);
  to.begin("vllm:iteration_tokens_total", "histogram", "Tokens that a step computed.");
  to.samples(bounds, counts, number(report, {"step_tokens", "sum"}));
}

void write_rejections(metrics_text& to, const nlohmann::json& report) {
  to.begin("vllm:admission_rejections_total", "counter", "Requests that found a full queue.");
  to.sample(number(report, {"requests", "refused", "requests_waiting"}),
            {{"reason", "max_num_queued_reqs"}});
  to.sample(number(report, {"requests", "refused", "tokens_waiting"}),
            {{"reason", "max_num_queued_tokens"}});
  to.begin("bitnet_admission_rejections_total", "counter", "Requests that the scheduler rejected.");
  const nlohmann::json rejected = object_in(report, "requests", "refused");  // outlives items()
  for (const auto& [reason, n] : rejected.items())
    to.sample(n.is_number() ? n.get<double>() : 0, {{"reason", reason}});
  to.begin("bitnet_choices_ended_total", "counter", "Choices of texts that ended, by reason.");
  const auto found = report.is_object() ? report.find("choices") : report.end();
  const nlohmann::json ended = found == report.end() ? nlohmann::json::object() : *found;
  if (ended.is_object())
    for (const auto& [reason, n] : ended.items())
      to.sample(n.is_number() ? n.get<double>() : 0, {{"reason", reason}});
}

void write_own(metrics_text& to, const metrics_facts& about, const model_metrics& of) {
  const nlohmann::json& report = of.report;
  to.begin("bitnet_backend_info", "gauge", "The backend and the device that compute.");
  to.sample(1, {{"backend", member(report, "backend")},
                {"device", member(report, "device")},
                {"version", about.version}});
  write_rows(
      to,
      {{"bitnet_model_load_seconds", "gauge", "Time to load the model.", of.load_seconds},
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
        number(report, {"devices_lost"})},
       {"bitnet_moves_total", "counter",
        "Times that the model went to another device, or to a new copy of its backend.",
        number(report, {"moves"})},
       {"bitnet_kv_cached_blocks", "gauge", "KV blocks of known prompts that can be given up.",
        number(report, {"kv", "cached"})},
       {"bitnet_kv_reserved_blocks", "gauge", "KV blocks that running choices may still need.",
        number(report, {"kv", "reserved"})}});
}

// Results of the shadow; 0 without one.
void write_shadow(metrics_text& to, const nlohmann::json& report) {
  const double compared = number(report, {"rows", "compared"});
  const double same_top = number(report, {"same_top"}), same_bytes = number(report, {"same_bytes"});
  to.begin("bitnet_shadow_rows_total", "counter",
           "Rows of logits that the shadow was to compute again, by what came of it.");
  to.sample(same_bytes, {{"result", "equal"}});
  to.sample(std::max(same_top - same_bytes, 0.0), {{"result", "same_top"}});
  to.sample(compared - std::max(same_top, same_bytes), {{"result", "differs"}});
  to.sample(number(report, {"rows", "dropped"}), {{"result", "dropped"}});
  write_rows(
      to, {{"bitnet_shadow_running", "gauge",
            "1: a shadow compares rows; 0: there is none, or it failed.",
            member(report, "state") == "running" ? 1.0 : 0.0},
           {"bitnet_shadow_kl_mean", "gauge",
            "Mean KL divergence of the shadow's rows from those of the texts, in nats.",
            number(report, {"kl", "mean"})},
           {"bitnet_shadow_kl_max", "gauge", "The largest of them.", number(report, {"kl", "max"})},
           {"bitnet_shadow_offering_seconds_total", "counter",
            "Time that steps took to give rows to the shadow.",
            number(report, {"offering_ns", "sum"}) / 1e9}});
}

}  // namespace

std::string metrics_of(const metrics_facts& about, std::span<const model_metrics> models,
                       std::span<const request_counts> requests) {
  metrics_text out;
  for (const model_metrics& one : models) {
    out.set_common({{"model_name", one.model_name}, {"engine", "0"}});
    write_load(out, about, one.report);
    write_tokens(out, one.report);
    write_speculation(out, one.report);
    write_steps(out, one.report);
    write_rejections(out, one.report);
    write_own(out, about, one);
    write_shadow(out, one.shadow);
  }
  for (const request_counts& one : requests) {
    out.set_common({{"model_name", one.model_name}, {"engine", "0"}});
    one.counts->write(out, one.n_context);
  }
  out.set_common({});
  write_rows(out, {{"bitnet_connections", "gauge", "Connections of clients.",
                    static_cast<double>(about.n_connections)}});
  return out.text();
}

}  // namespace bitnet::host
