#include "serve/request_facts.hpp"

#include <algorithm>

namespace bitnet::host {
namespace {

double seconds_from_ns(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

void request_facts::take(const bitnet_event& e, time now) {
  if (e.kind == BITNET_EVENT_TEXT && e.token >= 0 && !first_token_) first_token_ = now;
  if (e.kind != BITNET_EVENT_END && e.kind != BITNET_EVENT_FAILED) return;
  ++n_ended_;
  if (e.choice == 0) {  // all choices share the prompt
    n_prompt_ += e.n_prompt;
    n_cached_ += e.n_cached;
  }
  n_generated_ += e.n_generated;
  queue_ns_ = std::max(queue_ns_, e.queue_ns);
  prompt_ns_ = std::max(prompt_ns_, e.prompt_ns);
  generate_ns_ = std::max(generate_ns_, e.generate_ns);
}

std::vector<log_field> request_facts::fields() const {
  std::vector<log_field> out;
  if (first_token_)
    out.push_back({"gen_ai.latency.time_to_first_token",
                   std::chrono::duration<double>(*first_token_ - came_).count()});
  if (n_ended_ == 0) return out;
  out.push_back({"gen_ai.usage.input_tokens", static_cast<int64_t>(n_prompt_)});
  out.push_back({"gen_ai.usage.cached_tokens", static_cast<int64_t>(n_cached_)});
  out.push_back({"gen_ai.usage.output_tokens", static_cast<int64_t>(n_generated_)});
  out.push_back({"gen_ai.latency.time_in_queue", seconds_from_ns(queue_ns_)});
  out.push_back({"gen_ai.latency.time_in_model_prefill", seconds_from_ns(prompt_ns_)});
  out.push_back({"gen_ai.latency.time_in_model_decode", seconds_from_ns(generate_ns_)});
  return out;
}

}  // namespace bitnet::host
