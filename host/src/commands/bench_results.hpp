#pragma once
// Results of `bench` for one model on one device, and their printed form.

#include <string>
#include <vector>

#include "commands/bench_facts.hpp"

namespace bitnet::host {

struct bench_test {
  uint32_t n_prompt = 0, n_gen = 0, depth = 0;

  [[nodiscard]] uint32_t tokens() const { return n_prompt + n_gen; }
  // The test's name as llama-bench writes it: pp512, tg128 @ d2048, pp512+tg128.
  [[nodiscard]] std::string name() const;
};

struct measurement {
  bench_test what;
  std::vector<uint64_t> samples_ns;
  kernel_uses kernels;         // summed over all samples
  std::vector<double> joules;  // per sample; fewer if a counter could not be read
  std::string begun;           // start time: 2026-11-28T12:58:24Z

  [[nodiscard]] std::vector<double> rates() const;  // tokens per second
  [[nodiscard]] double total_ns() const;
  // Bytes of weights read per token; a prompt reads them once for many tokens.
  [[nodiscard]] double bytes_per_token() const;
  [[nodiscard]] double gbps() const;
  // Whether each token reads the weights once, which the memory limit assumes.
  [[nodiscard]] bool only_generates() const { return what.n_prompt == 0; }
};

struct bench_result {
  facts about;
  ceilings limit;
  std::vector<measurement> all;  // only those with samples
};

// A row for each measurement: llama-bench's columns first, then ours.
[[nodiscard]] std::vector<ordered_json> bench_rows(const std::vector<bench_result>& all);
// `format`: a value of --output-format.
[[nodiscard]] std::string bench_text(const std::string& format,
                                     const std::vector<bench_result>& all);

}  // namespace bitnet::host
