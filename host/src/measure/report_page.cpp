#include "measure/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "measure/chart.hpp"

namespace bitnet::host::measure {
namespace {

using nlohmann::ordered_json;
using rows_of_page = std::vector<ordered_json>;

constexpr std::size_t most_dots = 200;  // per bar

constexpr std::string_view page_style = R"(
:root { --back: #fff; --text: #1b1f24; --dim: #5b6570; --grid: #d9dee4; --limit: #b3261e;
  --c0: #0b6e99; --c1: #c05717; --c2: #3a7d2c; --c3: #8d4aa8; --c4: #a8871a; --c5: #b0325f; }
@media (prefers-color-scheme: dark) { :root { --back: #15181c; --text: #e6e9ec; --dim: #9aa4ae;
  --grid: #343b43; --limit: #ff8a80; --c0: #4fb3de; --c1: #f0975a; --c2: #7cc46b; --c3: #c792e0;
  --c4: #dcbf57; --c5: #ee7fa8; } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.4rem; }
p { color: var(--dim); margin: 0.2rem 0 0.8rem; } svg { display: block; width: 100%; height: auto; min-width: 38rem; }
section { overflow-x: auto; }
svg text { fill: var(--text); font-size: 12px; } .label { text-anchor: end; }
.tick { text-anchor: middle; } .value { text-anchor: start; } .grid { stroke: var(--grid); }
.limit { stroke: var(--limit); stroke-dasharray: 5 4; stroke-width: 1.5; }
.spread { stroke: var(--text); stroke-width: 1.2; } .sample { fill: var(--text); opacity: 0.55; }
.line { fill: none; stroke-width: 2; } .legend span { margin-right: 1.2rem; white-space: nowrap; }
.legend i { display: inline-block; height: 0.7rem; margin-right: 0.4rem; width: 0.7rem; }
.s0 { fill: var(--c0); } .s1 { fill: var(--c1); } .s2 { fill: var(--c2); } .s3 { fill: var(--c3); }
.s4 { fill: var(--c4); } .s5 { fill: var(--c5); }
.l0 { stroke: var(--c0); } .l1 { stroke: var(--c1); } .l2 { stroke: var(--c2); }
.l3 { stroke: var(--c3); } .l4 { stroke: var(--c4); } .l5 { stroke: var(--c5); }
.k0 { background: var(--c0); } .k1 { background: var(--c1); } .k2 { background: var(--c2); }
.k3 { background: var(--c3); } .k4 { background: var(--c4); } .k5 { background: var(--c5); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--grid); padding: 0.25rem 0.6rem; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
)";

std::optional<double> number_at(const ordered_json& row, std::string_view key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  const double x = found->get<double>();
  return std::isfinite(x) ? std::optional(x) : std::nullopt;
}

std::string text_at(const ordered_json& row, std::string_view key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<double> numbers_at(const ordered_json& row, std::string_view key) {
  std::vector<double> out;
  const auto found = row.find(key);
  if (found == row.end() || !found->is_array()) return out;
  for (const ordered_json& one : *found)
    if (out.size() < most_dots && one.is_number() && std::isfinite(one.get<double>()))
      out.push_back(one.get<double>());
  return out;
}

// A column with one value in all rows is left out of the names.
bool differs(const rows_of_page& rows, std::string_view key) {
  return std::ranges::any_of(rows, [&](const ordered_json& row) {
    return text_at(row, key) != text_at(rows.front(), key);
  });
}

std::string name_of(const ordered_json& row, const rows_of_page& rows, bool with_test = true) {
  std::string out = with_test ? text_at(row, row.contains("test") ? "test" : "kernel") : "";
  for (const char* key : {"shape", "n", "model_type", "model_filename", "url", "backend",
                          "n_threads", "head", "precision", "type_k"}) {
    const std::string value = text_at(row, key);
    if (value.empty() || !differs(rows, key)) continue;
    out += fmt::format("{}{}{}", out.empty() ? "" : " · ",
                       std::string_view(key) == "n_threads" ? "t" : "", value);
  }
  if (const auto n = number_at(row, "n_parallel"))
    out += fmt::format("{}{:.0f} at once", out.empty() ? "" : " · ", *n);
  return out;
}

// One colour per backend or server.
int colour_of(const ordered_json& row, std::map<std::string, int>& known) {
  const std::string of = text_at(row, row.contains("backend") ? "backend" : "url");
  return known.emplace(of, static_cast<int>(known.size())).first->second;
}

std::string section(std::string_view title, std::string_view about, const std::string& chart) {
  return fmt::format("<section><h2>{}</h2>\n<p>{}</p>\n{}</section>\n", html_text(title),
                     html_text(about), chart);
}

std::string throughput(const rows_of_page& rows) {
  std::map<std::string, int> colours;
  std::vector<bar> bars;
  for (const ordered_json& row : rows) {
    auto value = number_at(row, "median_ts");
    const bool is_server = !value && row.contains("url");
    if (is_server) value = number_at(row, "generated_ts");
    if (!value) continue;
    bars.push_back({name_of(row, rows),
                    *value,
                    is_server ? std::vector<double>{} : numbers_at(row, "samples_ts"),
                    {},
                    {},
                    colour_of(row, colours)});
  }
  if (bars.empty()) return "";
  return section("Throughput",
                 "Tokens per second: the median, and each repetition as a dot. Of a "
                 "server, the tokens of all its streams.",
                 bar_chart(bars, " t/s"));
}

// The bar ends at the median, the line across it at the highest percentile.
void add_times(std::vector<bar>& to, const ordered_json& row, const rows_of_page& rows,
               std::string_view prefix, std::string_view what, double scale, int colour) {
  const auto key = [&](int percent) {
    return prefix.empty() ? fmt::format("p{}_ns", percent)
                          : fmt::format("{}_ms_p{}", prefix, percent);
  };
  const auto p50 = number_at(row, key(50));
  auto high = number_at(row, key(99));
  if (!high) high = number_at(row, key(95));
  if (!p50 || !high) return;
  to.push_back({fmt::format("{}{}", name_of(row, rows), what),
                *p50 * scale,
                {},
                *p50 * scale,
                *high * scale,
                colour});
}

std::string percentiles(const rows_of_page& rows) {
  std::string out;
  std::map<std::string, int> colours;
  std::vector<bar> whole;
  for (const ordered_json& row : rows)
    add_times(whole, row, rows, "", "", 1e-6, colour_of(row, colours));
  if (!whole.empty())
    out += section("Time of a repetition",
                   "The bar ends at the 50th percentile, the line at the "
                   "95th.",
                   bar_chart(whole, " ms"));
  struct kind {
    const char *prefix, *title;
  };
  for (const auto& [prefix, title] : {kind{"first_token", "Time to the first token"},
                                      {"between_tokens", "Time between tokens"},
                                      {"request", "Time of a request"}}) {
    std::vector<bar> bars;
    for (const ordered_json& row : rows)
      add_times(bars, row, rows, prefix, "", 1, colour_of(row, colours));
    if (!bars.empty())
      out += section(title, "The bar ends at the 50th percentile, the line at the 99th.",
                     bar_chart(bars, " ms"));
  }
  return out;
}

std::string roofline(const rows_of_page& rows) {
  std::map<std::string, int> colours;
  std::vector<bar> bars;
  for (const ordered_json& row : rows)
    if (const auto share = number_at(row, "pct_of_stream"))
      bars.push_back({name_of(row, rows), *share, {}, {}, {}, colour_of(row, colours)});
  if (bars.empty()) return "";
  return section("Share of the roofline",
                 "Bytes of weights that were read each second, as a share of what the memory gave "
                 "to a program that only reads, in the same minute. A model that fits the caches "
                 "can be above 100 %.",
                 bar_chart(bars, " %", 100));
}

// Draws series with at least two values of `x` each.
std::string lines_over(const rows_of_page& rows, std::string_view x_key, std::string_view y_key,
                       const std::vector<std::string_view>& alike, std::string_view title,
                       std::string_view about, std::string_view x_name) {
  std::map<std::string, std::map<double, double>> series;
  for (const ordered_json& row : rows) {
    const auto x = number_at(row, x_key), y = number_at(row, y_key);
    if (!x || !y) continue;
    std::string name = text_at(row, "test");
    name = name.substr(0, name.find(" @ "));
    for (const std::string_view key : alike)
      if (differs(rows, key)) name += " · " + text_at(row, key);
    series[name][*x] = *y;
  }
  std::vector<line_series> all;
  for (const auto& [name, points] : series)
    if (points.size() > 1) all.push_back({name, {points.begin(), points.end()}});
  return all.empty() ? "" : section(title, about, line_chart(all, x_name, "tokens per second"));
}

std::string depth(const rows_of_page& rows) {
  return lines_over(rows, "n_depth", "median_ts",
                    {"model_type", "model_filename", "backend", "n_threads", "head", "type_k"},
                    "Depth of the context", "Tokens per second behind so many tokens of context.",
                    "tokens of context");
}

std::string streams(const rows_of_page& rows) {
  return lines_over(rows, "n_parallel", "median_ts", {"model_type", "model_filename", "backend"},
                    "Requests at once", "Generated tokens per second of all of them.",
                    "requests at once") +
         lines_over(rows, "n_parallel", "generated_ts", {"model_type", "url"}, "Streams",
                    "Generated tokens per second of all streams.", "streams");
}

std::string cell_of(const ordered_json& row, const char* key) {
  const auto number = number_at(row, key);
  return number ? short_number(*number) : text_at(row, key);
}

std::string table(const rows_of_page& rows) {
  constexpr const char* columns[] = {"backend",
                                     "n_threads",
                                     "n_parallel",
                                     "avg_ts",
                                     "stddev_ts",
                                     "median_ts",
                                     "p50_ns",
                                     "p95_ns",
                                     "bytes_per_token",
                                     "gbps",
                                     "pct_of_stream",
                                     "energy_j",
                                     "generated_ts",
                                     "requests_per_s",
                                     "goodput_per_s",
                                     "failed",
                                     "first_token_ms_p50",
                                     "first_token_ms_p99",
                                     "between_tokens_ms_p50",
                                     "load_begin",
                                     "load_end",
                                     "stolen_pct",
                                     "others_pct"};
  std::string out = "<tr><th>test</th>";
  std::vector<const char*> shown;
  for (const char* key : columns)
    if (std::ranges::any_of(rows, [&](const ordered_json& row) { return row.contains(key); }))
      shown.push_back(key);
  for (const char* key : shown) out += fmt::format("<th>{}</th>", html_text(key));
  out += "</tr>\n";
  for (const ordered_json& row : rows) {
    out += fmt::format("<tr><td>{}</td>", html_text(name_of(row, rows)));
    for (const char* key : shown) out += fmt::format("<td>{}</td>", html_text(cell_of(row, key)));
    out += "</tr>\n";
  }
  return fmt::format(
      "<section><h2>Numbers</h2>\n<p>All columns and samples are in the results of -o json."
      "</p>\n<div class=\"wide\"><table>\n{}</table></div></section>\n",
      out);
}

// Facts that all rows share: model, machine, version.
std::string about(const rows_of_page& rows) {
  std::string out;
  for (const char* key : {"model_type", "url", "cpu_info", "gpu_info", "n_cpus", "isa", "governor",
                          "kernel_release", "driver", "test_time", "version"}) {
    const std::string value = text_at(rows.front(), key);
    if (value.empty() || (differs(rows, key) && std::string_view(key) != "test_time")) continue;
    out += fmt::format("{}{}: {}", out.empty() ? "" : " · ", key, value);
  }
  return html_text(out);
}

}  // namespace

std::string report_page(const rows_of_page& rows) {
  std::string body = "<p>No results.</p>\n";
  if (!rows.empty())
    body = fmt::format("<p>{}</p>\n", about(rows)) + throughput(rows) + roofline(rows) +
           depth(rows) + streams(rows) + percentiles(rows) + table(rows);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>bitnet bench</title>\n<style>{}</style>\n</head>\n<body>\n<h1>bitnet bench</h1>\n"
      "{}</body>\n</html>\n",
      page_style, body);
}

}  // namespace bitnet::host::measure
