#include "openai/timings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bitnet::host::openai {

void timings::take_end(const bitnet_event& end) {
  if (end.choice == 0) {  // the prompt is computed once for all choices
    n_cached_ += end.n_cached;
    n_prompt_ += end.n_prompt - std::min(end.n_prompt, end.n_cached);
  }
  n_generated_ += end.n_generated;
  prompt_ns_ = std::max(prompt_ns_, end.prompt_ns);
  generate_ns_ = std::max(generate_ns_, end.generate_ns);
}

nlohmann::ordered_json timings::json() const {
  const auto over = [](double a, double b) { return b > 0 ? a / b : 0; };
  const auto prompt_n = static_cast<double>(n_prompt_);
  const auto predicted_n = static_cast<double>(n_generated_);
  const double prompt_ms = static_cast<double>(prompt_ns_) / 1e6;
  const double predicted_ms = static_cast<double>(generate_ns_) / 1e6;
  return {{"cache_n", n_cached_},
          {"prompt_n", n_prompt_},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", over(prompt_ms, prompt_n)},
          {"prompt_per_second", over(prompt_n * 1e3, prompt_ms)},
          {"predicted_n", n_generated_},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", over(predicted_ms, predicted_n)},
          {"predicted_per_second", over(predicted_n * 1e3, predicted_ms)}};
}

}  // namespace bitnet::host::openai
