#include "commands/bench_results.hpp"

#include <fmt/format.h>

#include <numeric>

#include "text/printable.hpp"

namespace bitnet::host {

std::string bench_test::name() const {
  std::string text = n_prompt != 0 ? fmt::format("pp{}", n_prompt) : "";
  if (n_gen != 0) text += fmt::format("{}tg{}", text.empty() ? "" : "+", n_gen);
  if (depth != 0) text += fmt::format(" @ d{}", depth);
  return text;
}

std::vector<double> measurement::rates() const {
  std::vector<double> out;
  out.reserve(samples_ns.size());
  for (const uint64_t ns : samples_ns) out.push_back(what.tokens() * 1e9 / static_cast<double>(ns));
  return out;
}

double measurement::total_ns() const {
  return static_cast<double>(std::accumulate(samples_ns.begin(), samples_ns.end(), uint64_t{0}));
}

double measurement::bytes_per_token() const {
  return static_cast<double>(bytes_of(kernels)) /
         (static_cast<double>(samples_ns.size()) * what.tokens());
}

double measurement::gbps() const {
  return bytes_per_token() * what.tokens() * static_cast<double>(samples_ns.size()) / total_ns();
}

namespace {

void add_kernels(ordered_json& out, const measurement& m) {
  out["kernels"] = ordered_json::array();
  for (const auto& [id, use] : m.kernels) {
    ordered_json one = {{"id", id}, {"calls", use.calls}, {"bytes", use.bytes}};
    if (use.time_ns != 0) one["time_ns"] = use.time_ns;
    if (use.time_ns != 0 && use.bytes != 0 && m.only_generates())
      one["gbps"] = static_cast<double>(use.bytes) / static_cast<double>(use.time_ns);
    out["kernels"].push_back(one);
  }
}

// llama-bench's columns, except n_depth, which older versions lack.
void add_timings(ordered_json& out, const measurement& m) {
  const std::vector<double> rates = m.rates();
  const std::vector<double> ns(m.samples_ns.begin(), m.samples_ns.end());
  out["n_prompt"] = m.what.n_prompt;
  out["n_gen"] = m.what.n_gen;
  out["n_depth"] = m.what.depth;
  out["test_time"] = m.begun;
  out["avg_ns"] = mean(ns);
  out["stddev_ns"] = deviation(ns);
  out["avg_ts"] = mean(rates);
  out["stddev_ts"] = deviation(rates);
  out["samples_ns"] = m.samples_ns;
  out["samples_ts"] = rates;
  out["test"] = m.what.name();
  out["median_ts"] = median(rates);
  out["p50_ns"] = percentile(ns, 50);
  out["p95_ns"] = percentile(ns, 95);
}

ordered_json row_of(const measurement& m, const facts& f, const ceilings& limit) {
  ordered_json out = f.json();
  add_timings(out, m);
  out.update(f.own_json());
  if (m.only_generates()) {
    out["bytes_per_token"] = m.bytes_per_token();
    out["gbps"] = m.gbps();
    if (limit.known()) out["pct_of_stream"] = 100 * m.gbps() / limit.best();
  }
  if (!m.joules.empty()) {
    out["energy_j"] = mean(m.joules);
    out["energy_source"] = f.energy_source;
  }
  if (limit.known()) out["stream"] = limit.json();
  add_kernels(out, m);
  out["version"] = bitnet_version();
  if (!f.gates.is_null()) out["gates"] = f.gates;
  return out;
}

std::string table_line(const measurement& m, const facts& f, const ceilings& limit) {
  const std::vector<double> rates = m.rates();
  return fmt::format(
      "{} {} | {:.2f} ± {:.2f} | {:.2f} | {} | {} |\n", f.cells(), m.what.name(), mean(rates),
      deviation(rates), median(rates), m.only_generates() ? fmt::format("{:.1f}", m.gbps()) : "",
      m.only_generates() && limit.known() ? fmt::format("{:.0f}", 100 * m.gbps() / limit.best())
                                          : "");
}

std::string energy_lines(const bench_result& one) {
  std::string out;
  for (const measurement& m : one.all)
    if (!m.joules.empty())
      out += fmt::format("energy of {}: {:.3f} J a token ({})\n", m.what.name(),
                         mean(m.joules) / m.what.tokens(), one.about.energy_source);
  return out;
}

// The lines below a table of one model on one device.
std::string result_lines(const bench_result& one) {
  std::string out;
  if (one.limit.known()) out += one.limit.line();
  kernel_uses seen;
  for (const measurement& m : one.all) add_difference(seen, {}, m.kernels);
  std::string kernels;
  for (const auto& [id, use] : seen) kernels += (kernels.empty() ? "" : " ") + id;
  return out + one.about.lines() + energy_lines(one) + fmt::format("kernels: {}\n", kernels);
}

std::string bench_table(const std::vector<bench_result>& all) {
  std::string out =
      "| model | size | params | backend | threads | test | t/s | median | GB/s | % of stream |\n"
      "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: |\n";
  for (const bench_result& one : all)
    for (const measurement& m : one.all) out += table_line(m, one.about, one.limit);
  for (const bench_result& one : all) {
    out += "\n";
    if (all.size() > 1)
      out += fmt::format("{}, {}:\n", one.about.model.name, one.about.device.backend);
    out += result_lines(one);
  }
  return out + fmt::format("build: bitnet {}\n", bitnet_version());
}

}  // namespace

std::vector<ordered_json> bench_rows(const std::vector<bench_result>& all) {
  std::vector<ordered_json> out;
  for (const bench_result& one : all)
    for (const measurement& m : one.all) out.push_back(row_of(m, one.about, one.limit));
  return out;
}

std::string bench_text(const std::string& format, const std::vector<bench_result>& all) {
  return format == "md" ? text::printable_lines(bench_table(all))
                        : rows_as(format, bench_rows(all));
}

}  // namespace bitnet::host
