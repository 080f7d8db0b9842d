#pragma once
// What `bench` measured of one model on one device, and how it is printed.

#include <string>
#include <vector>

#include "commands/bench_facts.hpp"

namespace bitnet::host {

struct bench_test {
  uint32_t n_prompt = 0, n_gen = 0, depth = 0;

  [[nodiscard]] uint32_t tokens() const { return n_prompt + n_gen; }
  // llama-bench's: pp512, tg128 @ d2048, pp512+tg128
  [[nodiscard]] std::string name() const;
};

struct measurement {
  bench_test what;
  std::vector<uint64_t> samples_ns;
  kernel_uses kernels;         // of all samples
  std::vector<double> joules;  // of each sample; fewer where the counters were not readable
  std::string begun;           // when: 2026-11-28T12:58:24Z

  [[nodiscard]] std::vector<double> rates() const;  // tokens per second
  [[nodiscard]] double total_ns() const;
  // Of weights; a prompt reads them once for many tokens.
  [[nodiscard]] double bytes_per_token() const;
  [[nodiscard]] double gbps() const;
  // Whether each token reads the weights once, as the limit of the memory supposes.
  [[nodiscard]] bool only_generates() const { return what.n_prompt == 0; }
};

struct bench_result {
  facts about;
  ceilings limit;
  std::vector<measurement> all;  // those with samples
};

// A row for each measurement: llama-bench's columns first, then ours.
[[nodiscard]] std::vector<ordered_json> bench_rows(const std::vector<bench_result>& all);
// `format` as --output-format has it.
[[nodiscard]] std::string bench_text(const std::string& format,
                                     const std::vector<bench_result>& all);

}  // namespace bitnet::host
