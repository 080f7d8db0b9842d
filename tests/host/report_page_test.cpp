// The page of results: charts have what the rows have, and nothing of a row is markup.
#include "measure/report_page.hpp"

#include <gtest/gtest.h>

#include "measure/chart.hpp"

namespace bitnet::host::measure {
namespace {

using nlohmann::ordered_json;

bool has(const std::string& page, std::string_view part) {
  return page.find(part) != std::string::npos;
}

std::size_t count(std::string_view page, std::string_view part) {
  std::size_t out = 0;
  for (auto at = page.find(part); at != std::string_view::npos; at = page.find(part, at + 1)) ++out;
  return out;
}

TEST(chart, steps_divide_an_axis) {
  for (const auto& [most, step] : std::initializer_list<std::pair<double, double>>{{1, 0.2},
                                                                                   {1.7, 0.5},
                                                                                   {4, 0.5},
                                                                                   {4.1, 1},
                                                                                   {8, 1},
                                                                                   {8.5, 2},
                                                                                   {100, 20},
                                                                                   {4096, 1000},
                                                                                   {0, 1},
                                                                                   {-3, 1}})
    EXPECT_DOUBLE_EQ(tick_step(most), step) << most;
}

TEST(chart, numbers_are_short) {
  for (const auto& [x, want] :
       std::initializer_list<std::pair<double, const char*>>{{0, "0"},
                                                             {512, "512"},
                                                             {1234.5, "1234"},
                                                             {56.74, "56.7"},
                                                             {1.234, "1.23"},
                                                             {0.0456, "0.046"},
                                                             {0.00001, "1.00e-05"},
                                                             {12345678.0, "1.23e+07"},
                                                             {-3.5, "-3.50"}})
    EXPECT_EQ(short_number(x), want) << x;
}

TEST(chart, bars_are_as_long_as_their_values) {
  const std::string svg = bar_chart({{"a", 100, {}, {}, {}, 0}, {"b", 50, {}, {}, {}, 1}}, " t/s");
  EXPECT_TRUE(has(svg, R"(width="450.0" height="14.0" rx="2" class="s0")")) << svg;
  EXPECT_TRUE(has(svg, R"(width="225.0" height="14.0" rx="2" class="s1")")) << svg;
  EXPECT_TRUE(has(svg, ">100 t/s</text>")) << svg;
  EXPECT_TRUE(has(bar_chart({{"a", 50, {}, {}, {}, 0}}, " %", 100), R"(<line x1="750.0")"));
  EXPECT_FALSE(has(bar_chart({{"a", 0, {}, {}, {}, 0}}, ""), "nan"));
}

TEST(chart, a_line_goes_through_its_points) {
  const std::string svg = line_chart({{"one", {{0, 0}, {100, 50}}}}, "x", "y");
  EXPECT_TRUE(has(svg, R"(points="70.0,274.0 840.0,)")) << svg;
  EXPECT_EQ(count(svg, "<circle"), 2U);
}

ordered_json bench_row(const char* test, double depth, double speed) {
  return {{"test", test},          {"backend", "cpu"},    {"model_type", "tiny"},
          {"n_depth", depth},      {"median_ts", speed},  {"samples_ts", {speed, speed + 1}},
          {"pct_of_stream", 42.5}, {"p50_ns", 2'000'000}, {"p95_ns", 3'000'000}};
}

TEST(report_page, has_a_chart_for_what_there_is) {
  const std::string page = report_page(
      {bench_row("tg8", 0, 30), bench_row("tg8 @ d64", 64, 20), bench_row("pp8", 0, 90)});
  for (const char* part :
       {"<h2>Throughput</h2>", "<h2>Share of the roofline</h2>", "<h2>Depth of the context</h2>",
        "<h2>Time of a repetition</h2>", "<h2>Numbers</h2>", ">42.5 %</text>", ">2 ms</text>",
        "30 at 0", "20 at 64"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "<h2>Streams</h2>"));
  EXPECT_EQ(count(page, R"(class="sample")"), 6U);
  EXPECT_EQ(count(page, "<polyline"), 1U) << "pp8 has one depth";
  for (const char* part : {"src=", "href=", "url(", "@import", "http:", "https:"})
    EXPECT_FALSE(has(page, part)) << part;
  EXPECT_TRUE(has(report_page({}), "No results"));
}

TEST(report_page, has_the_times_of_a_server) {
  ordered_json row = {{"test", "serve pp8+tg8"},
                      {"url", "http://a:1"},
                      {"model_type", "m"},
                      {"n_parallel", 1},
                      {"generated_ts", 10}};
  for (const char* name : {"first_token", "between_tokens", "request"})
    for (const int percent : {50, 95, 99})
      row[std::string(name) + "_ms_p" + std::to_string(percent)] = percent;
  ordered_json more = row;
  more["n_parallel"] = 4;
  more["generated_ts"] = 35;
  const std::string page = report_page({row, more});
  for (const char* part : {"<h2>Time to the first token</h2>", "<h2>Time between tokens</h2>",
                           "<h2>Time of a request</h2>", "<h2>Streams</h2>", "35 at 4"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(report_page, takes_nothing_from_elsewhere_and_runs_nothing) {
  ordered_json row = bench_row("<script>alert(1)</script>", 0, 30);
  row["model_type"] = "a\"><img src=x onerror=alert(1)>&";
  row["backend"] = "\xff\x1b[31m";
  row["version"] = "'";
  row["median_ts"] = 30;
  row["samples_ts"] = {1, "x", nullptr};
  row["gbps"] = HUGE_VAL;
  const std::string page = report_page({row, bench_row("tg8", 0, 3)});
  for (const char* part : {"<script", "<img", "onerror=alert(1)>", "\x1b", "\xff", "nan", "inf\""})
    EXPECT_FALSE(has(page, part)) << part;
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_TRUE(has(page, "&lt;script&gt;"));
  for (const char* tag : {"svg", "section", "g", "title", "table", "html", "body"})
    EXPECT_EQ(count(page, "<" + std::string(tag) + ">") + count(page, "<" + std::string(tag) + " "),
              count(page, "</" + std::string(tag) + ">"))
        << tag;
}

}  // namespace
}  // namespace bitnet::host::measure
