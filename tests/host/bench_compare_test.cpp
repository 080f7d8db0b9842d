// The judge of two results, with samples whose tests were worked out here: by counting every way to
// share the values out, and by the formulas of the normal approximation.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "judge/bench_results.hpp"
#include "judge/rank_test.hpp"

namespace bitnet::host::judge {
namespace {

// Pairs in which y is larger, ties counting half, by looking at each.
double pairs_larger(const std::vector<double>& a, const std::vector<double>& b) {
  double u = 0;
  for (const double x : a)
    for (const double y : b) u += y > x ? 1 : y == x ? 0.5 : 0;
  return u;
}

// The share of all ways to choose which values are b's that are at least as uneven.
double p_by_counting(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  const double middle = static_cast<double>(a.size() * b.size()) / 2;
  const double found = std::abs(pairs_larger(a, b) - middle);
  double ways = 0, as_far = 0;
  for (uint32_t mask = 0; mask < uint32_t{1} << all.size(); ++mask) {
    if (static_cast<std::size_t>(std::popcount(mask)) != b.size()) continue;
    std::vector<double> in, out;
    for (std::size_t i = 0; i < all.size(); ++i)
      ((mask >> i & 1) != 0 ? in : out).push_back(all[i]);
    ++ways;
    if (std::abs(pairs_larger(out, in) - middle) >= found - 1e-9) ++as_far;
  }
  return as_far / ways;
}

TEST(rank_test, counts_the_ways_to_be_so_uneven) {
  const std::vector<double> a{1, 2, 3, 4, 5}, b{6, 7, 8, 9, 10};
  const rank_test up = mann_whitney(a, b), down = mann_whitney(b, a);
  EXPECT_EQ(up.u, 25);
  EXPECT_EQ(down.u, 0);
  EXPECT_NEAR(up.p, 2.0 / 252, 1e-12) << "of 252 ways to choose 5 of 10, two are so uneven";
  EXPECT_NEAR(down.p, up.p, 1e-12);
  EXPECT_NEAR(up.least_p, up.p, 1e-12);
  EXPECT_TRUE(up.exact);
}

TEST(rank_test, small_samples_agree_with_counting) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> a(2 + random() % 5), b(2 + random() % 5);
    const unsigned values = round % 2 == 0 ? 4 : 1000;  // many ties, or hardly any
    for (double& x : a) x = 1 + random() % values;
    for (double& x : b) x = 2 + random() % values;
    const rank_test test = mann_whitney(a, b);
    EXPECT_NEAR(test.u, pairs_larger(a, b), 1e-9);
    EXPECT_NEAR(test.p, p_by_counting(a, b), 1e-9) << "round " << round;
  }
}

TEST(rank_test, equal_values_show_nothing) {
  const std::vector<double> same{3, 3, 3, 3, 3};
  EXPECT_NEAR(mann_whitney(same, same).p, 1, 1e-12);
  const std::vector<double> many(40, 3.0);
  EXPECT_NEAR(mann_whitney(many, many).p, 1, 1e-12);
}

TEST(rank_test, many_samples_by_the_normal_approximation) {
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(2 * i);
    b.push_back(2 * i + 21);  // different from all of a
  }
  const rank_test test = mann_whitney(a, b);
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.u, pairs_larger(a, b));
  const double z = (test.u - 800 - 0.5) / std::sqrt(40.0 * 40 * 81 / 12);
  EXPECT_NEAR(test.p, std::erfc(z / std::numbers::sqrt2), 1e-12);
}

TEST(rank_test, ties_narrow_the_normal_approximation) {
  std::vector<double> a(40, 1.0), b(40, 1.0);
  for (std::size_t i = 0; i < 20; ++i) b[i] = 2;
  // 60 values of 1 and 20 of 2: the sum of t^3 - t is 215940 + 7980.
  const double deviation = std::sqrt(1600.0 / 12 * (81 - (215940.0 + 7980.0) / (80 * 79)));
  const double z = (20.0 * 40 + 20.0 * 40 / 2 - 800 - 0.5) / deviation;
  EXPECT_NEAR(mann_whitney(a, b).p, std::erfc(z / std::numbers::sqrt2), 1e-12);
}

TEST(ratio, five_and_five_leave_out_two_pairs_at_each_end) {
  const std::vector<double> a{100, 100, 100, 100, 100}, b{101, 102, 103, 104, 105};
  const ratio_interval of = ratio_of(a, b, 0.95);
  EXPECT_DOUBLE_EQ(of.ratio, 1.03);
  EXPECT_DOUBLE_EQ(of.low, 1.01) << "each ratio is there five times";
  EXPECT_DOUBLE_EQ(of.high, 1.05);
  // U is 0, 1 or 2 in 1 + 1 + 2 of 252 ways.
  EXPECT_NEAR(of.confidence, 1 - 2 * 4.0 / 252, 1e-12);
}

TEST(ratio, pairs_are_left_out_in_their_order) {
  const std::vector<double> a{1}, b{1.1, 1.2, 1.3, 1.4, 1.5};
  const ratio_interval few = ratio_of(a, b, 0.95);
  EXPECT_DOUBLE_EQ(few.low, 1.1);
  EXPECT_DOUBLE_EQ(few.high, 1.5);
  EXPECT_NEAR(few.confidence, 1 - 2 * 1.0 / 6, 1e-12) << "all that five to one can give";
  const std::vector<double> four{1, 1.0001, 1.0002, 1.0003}, other{2, 2.1, 2.2, 2.3};
  // U is 0 in 1 of 70 ways, 1 in 1: leaving one out gives 1 - 4/70 = 0.943, none gives 0.971.
  EXPECT_DOUBLE_EQ(ratio_of(four, other, 0.95).low, 2 / 1.0003);
  EXPECT_DOUBLE_EQ(ratio_of(four, other, 0.94).low, 2 / 1.0002);
}

TEST(ratio, large_samples_have_an_interval_too) {
  std::vector<double> a, b;
  for (int i = 0; i < 50; ++i) {
    a.push_back(100 + 0.01 * i);
    b.push_back(110 + 0.01 * i);
  }
  const ratio_interval of = ratio_of(a, b, 0.95);
  EXPECT_NEAR(of.ratio, 1.0998, 1e-3);
  EXPECT_LT(of.low, of.ratio);
  EXPECT_GT(of.high, of.ratio);
  EXPECT_GT(of.low, 1.09);
  EXPECT_GE(of.confidence, 0.95);
  EXPECT_LT(of.confidence, 0.96);
}

// ---- files -------------------------------------------------------------------------------------

nlohmann::json row(const char* test, std::vector<double> samples, nlohmann::json more = {}) {
  nlohmann::json out = {{"test", test},         {"model_type", "m"}, {"backend", "cpu"},
                        {"cpu_info", "a chip"}, {"n_threads", 2},    {"samples_ts", samples},
                        {"version", "0.1.0"}};
  if (more.is_object()) out.update(more);
  return out;
}

comparison of(const nlohmann::json& a, const nlohmann::json& b) {
  const auto read_a = read_bench(a.dump()), read_b = read_bench(b.dump());
  EXPECT_TRUE(read_a && read_b);
  if (!read_a || !read_b) return {};
  return compare_results(*read_a, *read_b);
}

const std::vector<double> slow{100, 100.1, 100.2, 100.3, 100.4};
const std::vector<double> fast{110, 110.1, 110.2, 110.3, 110.4};

TEST(bench_results, a_better_median_is_faster_and_a_worse_one_slower) {
  EXPECT_EQ(of(row("pp512", slow), row("pp512", fast)).rows.at(0).says, verdict::faster);
  const comparison back = of(row("pp512", fast), row("pp512", slow));
  EXPECT_EQ(back.rows.at(0).says, verdict::slower);
  EXPECT_TRUE(back.any_slower());
  EXPECT_FALSE(back.doubtful());
  EXPECT_EQ(of(row("pp512", slow), row("pp512", slow)).rows.at(0).says, verdict::no_difference);
}

TEST(bench_results, three_samples_are_too_few) {
  const comparison c = of(row("pp512", {100, 101, 102}), row("pp512", {110, 111, 112}));
  EXPECT_EQ(c.rows.at(0).says, verdict::too_few) << "2 of 20 ways, p is at least 0.1";
}

TEST(bench_results, rows_meet_by_their_configuration) {
  const comparison c =
      of({row("pp512", slow), row("tg128", slow), row("tg128", slow, {{"n_depth", 64}})},
         {row("tg128", fast), row("pp512", fast), row("pp32", fast)});
  ASSERT_EQ(c.rows.size(), 2U);
  EXPECT_EQ(c.rows[0].a.content["test"], "pp512");
  EXPECT_EQ(c.rows[0].b.content["test"], "pp512");
  EXPECT_EQ(c.only_a.size(), 1U);
  EXPECT_EQ(c.only_b, std::vector<std::string>{"pp32, m, cpu, 2 threads"});
}

TEST(bench_results, other_threads_are_another_configuration) {
  EXPECT_TRUE(of(row("pp512", slow), row("pp512", fast, {{"n_threads", 4}})).rows.empty());
}

TEST(bench_results, a_column_that_one_file_lacks_does_not_count) {
  EXPECT_EQ(of(row("pp512", slow), row("pp512", fast, {{"n_ubatch", 512}})).rows.size(), 1U);
}

TEST(bench_results, another_machine_is_named) {
  const comparison c = of(row("pp512", slow), row("pp512", fast, {{"cpu_info", "other\nchip"}}));
  ASSERT_EQ(c.rows.at(0).doubts.size(), 1U);
  EXPECT_EQ(c.rows[0].doubts[0], "cpu_info differs: a chip in A, other\\nchip in B");
  EXPECT_TRUE(c.doubtful());
}

TEST(bench_results, samples_that_spread_are_named) {
  const std::vector<double> wide{80, 90, 100, 110, 120};  // deviation 15.8 of 100
  const comparison c = of(row("pp512", slow), row("pp512", wide));
  ASSERT_EQ(c.rows.at(0).doubts.size(), 1U);
  EXPECT_EQ(c.rows[0].doubts[0], "the samples of B spread by 15.8 %, more than 5 %");
}

TEST(bench_results, equal_rows_of_a_file_are_one_sample) {
  const comparison c = of({row("pp512", slow), row("pp512", slow)}, row("pp512", fast));
  ASSERT_EQ(c.rows.size(), 1U);
  EXPECT_EQ(c.rows[0].a.speeds.size(), 10U);
  EXPECT_TRUE(c.only_a.empty());
}

TEST(bench_results, other_kernels_and_versions_are_noted) {
  const nlohmann::json other = {{"kernels", {{{"id", "k2"}}}}, {"version", "0.2.0"}};
  const comparison c =
      of(row("pp512", slow, {{"kernels", {{{"id", "k1"}}}}}), row("pp512", fast, other));
  EXPECT_EQ(c.rows.at(0).notes, (std::vector<std::string>{"version: 0.1.0 in A, 0.2.0 in B",
                                                          "other kernels ran in B than in A"}));
}

TEST(bench_results, times_stand_for_speeds) {
  const nlohmann::json a = {{"kernel", "k"}, {"samples_ns", {100, 101, 102, 103, 104}}};
  const nlohmann::json b = {{"kernel", "k"}, {"samples_ns", {90, 91, 92, 93, 94}}};
  EXPECT_EQ(of(a, b).rows.at(0).says, verdict::faster);
}

TEST(bench_results, each_form_is_read) {
  const std::string line = row("pp512", slow).dump();
  EXPECT_EQ(read_bench(line)->size(), 1U);
  EXPECT_EQ(read_bench(line + "\n\n" + row("tg128", slow).dump() + "\n")->size(), 2U);
  EXPECT_EQ(read_bench("[" + line + "]")->size(), 1U);
  EXPECT_EQ(read_bench("[]")->size(), 0U);
}

TEST(bench_results, wrong_files_say_where) {
  struct bad {
    std::string text, why;
  };
  const std::string line = row("pp512", slow).dump();
  for (const auto& [text, why] :
       std::vector<bad>{{line + "\n{", "line 2: it is no JSON"},
                        {"| model | size |", "line 1: it is no JSON"},
                        {"[1]", "row 1: it is no JSON object"},
                        {line + "\n{}", "line 2: it has neither 'test' nor 'kernel'"},
                        {R"({"test": "a"})", "samples_ts"},
                        {R"({"test": "a", "samples_ts": [1, "x"]})", "samples_ts"},
                        {R"({"test": "a", "samples_ts": [1, 0]})", "samples_ts"},
                        {R"({"test": "a", "samples_ts": [-1]})", "samples_ts"},
                        {R"({"test": "a", "samples_ts": [1e999]})", "no JSON"},
                        {R"({"test": "a", "samples_ts": []})", "samples_ts"},
                        {row("a", std::vector<double>(1001, 1.0)).dump(), "samples_ts"},
                        {row("a", std::vector<double>(600, 1.0)).dump() + "\n" +
                             row("a", std::vector<double>(600, 1.0)).dump(),
                         "line 2: its configuration has more than 1000 samples"}}) {
    const auto rows = read_bench(text);
    ASSERT_FALSE(rows) << text.substr(0, 80);
    EXPECT_NE(rows.error().find(why), std::string::npos) << rows.error();
  }
}

}  // namespace
}  // namespace bitnet::host::judge
