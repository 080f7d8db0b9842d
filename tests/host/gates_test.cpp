// Gates: which of them pass, what they say, and the exit code that follows.
#include "gates/gates.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gates/peak_memory.hpp"
#include "gates/repeats.hpp"
#include "settings/arguments.hpp"

namespace bitnet::host {
namespace {

using variables = std::map<std::string, std::string, std::less<>>;

settings settings_of(const std::vector<std::string>& words, const variables& more = {}) {
  const command& about = *find_command("run");
  const auto given = parse_arguments(about, words);
  std::vector<std::string> notes;
  return *settings::merge(about, *given, environment(more), notes);
}

const gate_result& only(const std::vector<gate_result>& all) {
  EXPECT_EQ(all.size(), 1U);
  return all.front();
}

TEST(gates, none_are_set) {
  const gates none(settings_of({}));
  EXPECT_FALSE(none.any());
  EXPECT_TRUE(none.results().empty());
  EXPECT_EQ(gates_code(none.results()), exit_code::ok);
  EXPECT_EQ(gates(settings_of({"--check-determinism", "0"})).any(), false);
}

TEST(gates, speed_is_the_lowest_of_all) {
  for (const auto& [limit, passes] : {std::pair{"19.5", true}, {"20", true}, {"20.01", false}}) {
    gates one(settings_of({"--min-tps", limit}));
    one.take_speed(35);
    one.take_speed(20);
    one.take_speed(90);
    EXPECT_EQ(only(one.results()).passed, passes) << limit;
    EXPECT_EQ(only(one.results()).measured, 20) << limit;
    EXPECT_EQ(gates_code(one.results()), passes ? exit_code::ok : exit_code::too_slow) << limit;
  }
}

TEST(gates, what_measured_nothing_does_not_pass) {
  gates one(settings_of({"--min-tps", "0"}));
  for (const double none : {0.0, -1.0, std::nan(""), HUGE_VAL}) one.take_speed(none);
  EXPECT_FALSE(only(one.results()).passed);
  EXPECT_FALSE(only(one.results()).measured);
  EXPECT_EQ(gate_line(only(one.results())),
            "gate min-tps: nothing was measured, at least 0: failed");
  EXPECT_EQ(gates_json(one.results()).dump(),
            R"([{"limit":0.0,"measured":null,"name":"min-tps","passed":false}])");
}

TEST(gates, time_and_memory_are_those_at_the_end_of_the_work) {
  gates one(settings_of({"--max-wall-ms", "1e9", "--max-rss-mb", "0.001"}));
  one.end_of_work();
  const auto first = one.results();
  one.end_of_work();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(one.results()[0].measured, first[0].measured);
  EXPECT_TRUE(first[0].passed);
  EXPECT_FALSE(first[1].passed);
  EXPECT_GT(*first[1].measured, 1);
  EXPECT_EQ(gates_code(first), exit_code::too_large);
}

// Touches memory that the kernel's mark of the process counts.
void use_megabytes(std::size_t n) {
  const std::vector<char> bytes(n * 1'000'000, 1);
  EXPECT_EQ(bytes[bytes.size() / 2], 1);
}

TEST(gates, runs_that_a_gate_adds_are_not_in_time_and_memory) {
  using clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::duration<double, std::milli>;
  const auto before = clock::now();
  gates one(settings_of({"--max-wall-ms", "1e9", "--max-rss-mb", "1e9"}));
  const double peak_before = static_cast<double>(peak_memory().value_or(0)) / 1e6;
  milliseconds extra{};
  {
    const gates::left_out runs(one);
    const auto begun = clock::now();
    use_megabytes(400);
    while (clock::now() - begun < std::chrono::milliseconds(20)) continue;
    extra = clock::now() - begun;
  }
  gates later = one;
  one.end_of_work();
  const milliseconds all = clock::now() - before;
  EXPECT_LE(one.results()[0].measured, (all - extra).count());
  EXPECT_LT(one.results()[1].measured, peak_before + 300) << "the mark of the kernel never falls";
  use_megabytes(600);
  later.end_of_work();
  EXPECT_GT(later.results()[1].measured, 600) << "work behind them that needs more";
}

TEST(gates, of_several_the_highest_code_counts) {
  gates one(settings_of(
      {"--min-tps", "50", "--max-wall-ms", "0", "--max-rss-mb", "0", "--check-determinism", "3"}));
  one.take_speed(10);
  one.take_repeats(2);
  one.take_repeats(3);
  EXPECT_EQ(one.repeats(), 3);
  EXPECT_EQ(gates_code(one.results()), exit_code::not_the_same);
  EXPECT_EQ(gate_line(one.results().back()), "gate check-determinism: 2 runs, all of 3: failed");
}

TEST(gates, variables_set_them_and_one_has_another_name) {
  const gates one(settings_of({}, {{"BITNET_MIN_TPS", "5"}, {"BITNET_MAX_MS", "900"}}));
  const auto all = one.results();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].limit, 5);
  EXPECT_EQ(all[1].name, "max-wall-ms");
  EXPECT_EQ(all[1].limit, 900);
}

TEST(peak_memory, reads_the_line_of_the_kernel) {
  for (const auto& [text, want, why] :
       std::initializer_list<std::tuple<std::string_view, std::optional<uint64_t>, const char*>>{
           {"Name:\ta\nVmPeak:\t  9 kB\nVmHWM:\t   12 kB\nVmRSS:\t 4 kB\n", 12 * 1024, "as it is"},
           {"VmHWM:\t   12 kB", 12 * 1024, "without an end of line"},
           {"", {}, "nothing"},
           {"Name:\tVmHWM: 9 kB\n", {}, "a program of that name"},
           {"VmHWM:\t 12 MB\n", {}, "another unit"},
           {"VmHWM:\t -1 kB\n", {}, "no number"},
           {"VmHWM:\n", {}, "no value"},
           {"VmHWM:\t 99999999999999999 kB\n", {}, "more bytes than 64 bits hold"}}) {
    EXPECT_EQ(peak_memory_in(text), want) << why;
  }
  EXPECT_GT(peak_memory().value_or(0), 100'000U);
}

TEST(repeats, tokens_that_differ_are_named) {
  using ids = std::vector<bitnet_token>;
  struct row {
    std::vector<ids> runs;
    int64_t n_same;
    const char* difference;
  };
  for (const auto& [runs, n_same, difference] : std::initializer_list<row>{
           {{{1, 2, 3}, {1, 2, 3}}, 2, ""},
           {{{1, 2, 3}, {1, 9, 3}, {1, 2, 4}}, 1, "run 2: token 1 is 9 in place of 2"},
           {{{1, 2}, {1, 2, 3}}, 1, "run 1: 2 tokens in place of 3"},
           {{{1, 2, 3, 4}}, 0, "run 1: 4 tokens in place of 3"},
           {{{}}, 0, "run 1: 0 tokens in place of 3"},
           {{}, 0, ""}}) {
    std::size_t at = 0;
    const auto outcome = repeated(ids{1, 2, 3}, static_cast<int64_t>(runs.size()),
                                  [&]() -> result<ids> { return runs[at++]; });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->n_same, n_same);
    EXPECT_EQ(outcome->difference, difference);
  }
}

TEST(repeats, a_failure_ends_them) {
  int n = 0;
  const auto outcome = repeated({1}, 5, [&]() -> result<std::vector<bitnet_token>> {
    if (++n == 2) return fail(exit_code::interrupted, "interrupted");
    return std::vector<bitnet_token>{1};
  });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().exit_code, exit_code::interrupted);
  EXPECT_EQ(n, 2);
}

}  // namespace
}  // namespace bitnet::host
