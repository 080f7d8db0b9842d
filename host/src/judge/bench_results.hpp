#pragma once
// Compares two result files of `bitnet bench`: pairs their rows, checks that they are comparable,
// and tests their samples. It measures nothing.

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "judge/rank_test.hpp"

namespace bitnet::host::judge {

// Samples with a larger spread (standard deviation over mean) are too noisy.
inline constexpr double most_spread = 0.05;
inline constexpr double significance = 0.05;

// A configuration of one file, with the samples of all its rows.
struct bench_row {
  nlohmann::json content;      // the first row's
  std::string name;            // shown to people: "pp512, cpu, 2 threads"
  std::vector<double> speeds;  // samples; larger is faster, all above 0
  bool per_second = true;      // tokens per second; else calls per second

  [[nodiscard]] double spread() const;
};

// Reads a list of rows (-o json), a row per line (-o jsonl), or one row. The message names the
// line.
[[nodiscard]] std::expected<std::vector<bench_row>, std::string> read_bench(std::string_view text);

enum class verdict : uint8_t { faster, slower, no_difference, too_few };
[[nodiscard]] std::string_view text_of(verdict v);

struct compared_row {
  bench_row a, b;
  rank_test test;
  ratio_interval ratio;  // b over a
  verdict says = verdict::too_few;
  std::vector<std::string> doubts;  // reasons not to compare them
  std::vector<std::string> notes;   // other differences
};

struct comparison {
  std::vector<compared_row> rows;
  std::vector<std::string> only_a, only_b;  // rows without a counterpart

  [[nodiscard]] bool doubtful() const;
  [[nodiscard]] bool any_slower() const;
};
[[nodiscard]] comparison compare_results(const std::vector<bench_row>& a,
                                         const std::vector<bench_row>& b);

}  // namespace bitnet::host::judge
