#include "service/request_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::host {
namespace {

// vLLM's buckets: seconds, tokens, choices.
constexpr double first_token_bounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                         0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                         20,    40,    80,   160,  640,  2560};
constexpr double between_tokens_bounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                            0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
constexpr double request_bounds[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
constexpr double token_bounds[] = {1,   2,   5,   1e1, 2e1, 5e1, 1e2, 2e2, 5e2, 1e3, 2e3,
                                   5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7};
constexpr double n_bounds[] = {1, 2, 5, 10, 20};

double seconds_of(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}
double seconds_of(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

struct histogram_row {
  const char* name;
  const char* help;
  const histogram& of;
};

void write_rows(metrics_text& to, std::initializer_list<histogram_row> rows, double most) {
  for (const histogram_row& row : rows) {
    to.begin(row.name, "histogram", row.help);
    to.samples(row.of, most);
  }
}

}  // namespace

request_metrics::request_metrics()
    : first_token_(first_token_bounds),
      between_tokens_(between_tokens_bounds),
      per_token_(between_tokens_bounds),
      whole_(request_bounds),
      queue_(request_bounds),
      prefill_(request_bounds),
      decode_(request_bounds),
      inference_(request_bounds),
      prompt_tokens_(token_bounds),
      computed_tokens_(token_bounds),
      generation_tokens_(token_bounds),
      params_n_(n_bounds),
      params_max_tokens_(token_bounds) {}

// A choice that its client left counts as `abort`, as in vLLM, without times: they would not show
// how fast answers are.
bool request_metrics::choice_ended(const bitnet_event& end, double seconds,
                                   const std::optional<request_params>& asked) {
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
  if (how != finish::stop && how != finish::length) return false;
  whole_.add(seconds);
  queue_.add(seconds_of(end.queue_ns));
  prefill_.add(seconds_of(end.prompt_ns));
  decode_.add(seconds_of(end.generate_ns));
  inference_.add(seconds_of(end.prompt_ns + end.generate_ns));
  prompt_tokens_.add(static_cast<double>(end.n_prompt));
  computed_tokens_.add(static_cast<double>(end.n_prompt - std::min(end.n_prompt, end.n_cached)));
  if (!asked) return true;
  const uint64_t gaps = end.n_generated - std::min<uint64_t>(end.n_generated, 1);
  per_token_.add(gaps == 0 ? 0 : seconds_of(end.generate_ns) / static_cast<double>(gaps));
  generation_tokens_.add(static_cast<double>(end.n_generated));
  if (asked->max_tokens >= 0) params_max_tokens_.add(asked->max_tokens);
  return true;
}

void request_metrics::rejected(int status) {
  const auto at = std::ranges::find(rejected_, status, &std::pair<int, uint64_t>::first);
  if (at == rejected_.end())
    rejected_.emplace_back(status, 1);
  else
    ++at->second;
}

void request_metrics::write(metrics_text& to, uint32_t n_context) const {
  constexpr const char* reasons[] = {"stop", "length", "abort", "error"};
  to.begin("vllm:request_success_total", "counter", "Choices that ended, embeddings too, by how.");
  for (std::size_t i = 0; i < finished_.size(); ++i)
    to.sample(static_cast<double>(finished_[i]), {{"finished_reason", reasons[i]}});
  write_rows(
      to,
      {{"vllm:time_to_first_token_seconds", "From the request to a choice's first token.",
        first_token_},
       {"vllm:inter_token_latency_seconds", "Between two tokens of a choice.", between_tokens_},
       {"vllm:request_time_per_output_token_seconds",
        "Mean time between two tokens of a choice; 0 where it has one.", per_token_},
       {"vllm:e2e_request_latency_seconds", "From the request to a choice's end.", whole_},
       {"vllm:request_queue_time_seconds", "The wait of a choice for its place.", queue_},
       {"vllm:request_prefill_time_seconds", "From the wait's end to the first token.", prefill_},
       {"vllm:request_decode_time_seconds", "From the first token to the end.", decode_},
       {"vllm:request_inference_time_seconds", "From the wait's end to the end.", inference_},
       {"vllm:request_params_n", "Choices that a request asked for.", params_n_}},
      0);
  write_rows(to,
             {{"vllm:request_prompt_tokens", "Tokens of a choice's prompt.", prompt_tokens_},
              {"vllm:request_prefill_kv_computed_tokens",
               "Tokens of a choice's prompt that were not known.", computed_tokens_},
              {"vllm:request_generation_tokens", "Tokens of a choice.", generation_tokens_},
              {"vllm:request_params_max_tokens", "max_tokens of a choice whose request gave it.",
               params_max_tokens_}},
             n_context);
  to.begin("bitnet_requests_refused_total", "counter", "Requests without an answer, by status.");
  for (const auto& [status, n] : rejected_)
    to.sample(static_cast<double>(n), {{"status", fmt::format("{}", status)}});
}

void request_times::take(const bitnet_event& e, time now) {
  if (e.kind != BITNET_EVENT_TEXT) return take_end(e, now);
  if (e.token < 0) return;  // text that was held back, without a token
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

void request_times::take_end(const bitnet_event& e, time now) {
  has_answer_ |= to_.choice_ended(e, seconds_of(now - came_), asked_);
  ++n_ended_;
  if (asked_ && has_answer_ && n_ended_ == asked_->n) to_.request_ended(*asked_);
}

}  // namespace bitnet::host
