#pragma once
// Two result files of `bitnet bench`, judged: which rows belong together, whether they can be
// compared, and what their samples say. Nothing here measures anything.

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "judge/rank_test.hpp"

namespace bitnet::host::judge {

// Above this a set of samples says little: the standard deviation over the mean.
inline constexpr double most_spread = 0.05;
inline constexpr double significance = 0.05;

// A configuration of one file, with the samples of all its rows of that configuration.
struct bench_row {
  nlohmann::json content;      // the first such row
  std::string name;            // for people: "pp512, cpu, 2 threads"
  std::vector<double> speeds;  // samples, larger is faster, all above 0
  bool per_second = true;      // tokens per second; else calls per second

  [[nodiscard]] double spread() const;
};

// A list of rows (-o json), a row on each line (-o jsonl), or one row. The message names the line.
[[nodiscard]] std::expected<std::vector<bench_row>, std::string> read_bench(std::string_view text);

enum class verdict : uint8_t { faster, slower, no_difference, too_few };
[[nodiscard]] std::string_view text_of(verdict v);

struct compared_row {
  bench_row a, b;
  rank_test test;
  ratio_interval ratio;  // b over a
  verdict says = verdict::too_few;
  std::vector<std::string> doubts;  // why it should not be compared
  std::vector<std::string> notes;   // what else differs
};

struct comparison {
  std::vector<compared_row> rows;
  std::vector<std::string> only_a, only_b;  // names of rows without a like

  [[nodiscard]] bool doubtful() const;
  [[nodiscard]] bool any_slower() const;
};
[[nodiscard]] comparison compare_results(const std::vector<bench_row>& a,
                                         const std::vector<bench_row>& b);

}  // namespace bitnet::host::judge
