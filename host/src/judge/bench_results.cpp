#include "judge/bench_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "judge/statistics.hpp"
#include "text/json_members.hpp"
#include "text/printable.hpp"

namespace bitnet::host::judge {
namespace {

using nlohmann::json;
using rows_read = std::expected<std::vector<bench_row>, std::string>;

// Columns that identify what was measured. A column that only one of two rows has, as with an older
// version, is not compared.
constexpr std::array configuration{
    "test",          "model_type", "model_size",      "model_n_params",
    "backend",       "n_threads",  "n_prompt",        "n_gen",
    "n_depth",       "n_parallel", "n_shared_prefix", "head",
    "n_batch",       "n_ubatch",   "type_k",          "type_v",
    "n_gpu_layers",  "split_mode", "tensor_split",    "layers",
    "thread_places", "cpu_mask",   "cpu_strict",      "poll",
    "flash_attn",    "spec_type",  "precision",       "deterministic",
    "kernel",        "shape",      "scale_group",     "n",
    "matrices",      "timed_by",   "endpoint"};

// Columns that identify the machine.
constexpr std::array machine{"cpu_info", "gpu_info", "device", "device_name",    "device_pci",
                             "driver",   "governor", "isa",    "kernel_release", "n_cpus"};

constexpr std::size_t most_samples = 1000;  // per configuration

bool both_have(const json& a, const json& b, const char* key) {
  return a.contains(key) && b.contains(key);
}

bool same_configuration(const json& a, const json& b) {
  return std::ranges::all_of(
      configuration, [&](const char* key) { return !both_have(a, b, key) || a[key] == b[key]; });
}

// All rows of a file come from one version, so a column that only one of them has is a difference.
bool same_in_a_file(const json& a, const json& b) {
  return std::ranges::all_of(configuration, [&](const char* key) {
    return a.contains(key) == b.contains(key) && (!a.contains(key) || a[key] == b[key]);
  });
}

// Returns the differing facts.
std::vector<const char*> other_machine(const json& a, const json& b) {
  std::vector<const char*> out;
  std::ranges::copy_if(machine, std::back_inserter(out),
                       [&](const char* key) { return both_have(a, b, key) && a[key] != b[key]; });
  return out;
}

std::string shown(const json& value) {
  return text::printable(value.is_string()
                             ? value.get<std::string>()
                             : value.dump(-1, ' ', false, json::error_handler_t::replace),
                         80);
}

std::string name_of(const json& row) {
  std::string out = shown(row.contains("test") ? row["test"] : text::at(row, "kernel"));
  for (const char* key : {"shape", "model_type", "backend"})
    if (row.contains(key)) out += ", " + shown(row[key]);
  if (row.contains("n")) out += fmt::format(", {} tokens", shown(row["n"]));
  if (row.contains("n_parallel")) out += fmt::format(", {} at once", shown(row["n_parallel"]));
  if (row.contains("n_threads")) out += fmt::format(", {} threads", shown(row["n_threads"]));
  return out;
}

// Far enough from 0 and from the largest double that ratios are finite.
bool is_measure(double x) {
  return x > 1e-100 && x < 1e100;
}

std::optional<std::vector<double>> numbers_of(const json& list) {
  if (!list.is_array() || list.empty() || list.size() > most_samples) return std::nullopt;
  std::vector<double> out;
  for (const json& one : list) {
    if (!one.is_number()) return std::nullopt;
    const double x = one.get<double>();
    if (!is_measure(x)) return std::nullopt;
    out.push_back(x);
  }
  return out;
}

std::expected<bench_row, std::string> read_row(const json& row) {
  if (!row.is_object()) return std::unexpected("it is no JSON object");
  if (!row.contains("test") && !row.contains("kernel"))
    return std::unexpected("it has neither 'test' nor 'kernel', as rows of `bitnet bench` have");
  bench_row out;
  out.content = row;
  out.name = name_of(row);
  if (const auto rates = numbers_of(text::at(row, "samples_ts"))) {
    out.speeds = *rates;
    return out;
  }
  const auto times = numbers_of(text::at(row, "samples_ns"));
  if (!times)
    return std::unexpected(fmt::format(
        "it has neither 'samples_ts' nor 'samples_ns' with 1 to {} numbers above 0; -o json and -o "
        "jsonl write them",
        most_samples));
  out.per_second = false;
  for (const double ns : *times) out.speeds.push_back(1e9 / ns);
  return out;
}

// Adds samples to the row of the same configuration and machine, or adds the row. False: too many
// samples.
bool add_row(std::vector<bench_row>& to, bench_row row) {
  const auto same = std::ranges::find_if(to, [&](const bench_row& other) {
    return other.per_second == row.per_second && same_in_a_file(other.content, row.content) &&
           other_machine(other.content, row.content).empty();
  });
  if (same == to.end()) {
    to.push_back(std::move(row));
    return true;
  }
  same->speeds.insert(same->speeds.end(), row.speeds.begin(), row.speeds.end());
  return same->speeds.size() <= most_samples;
}

std::expected<void, std::string> add_value(std::vector<bench_row>& to, const json& value,
                                           const std::string& where) {
  auto row = read_row(value);
  if (!row) return std::unexpected(fmt::format("{}: {}", where, row.error()));
  if (!add_row(to, *std::move(row)))
    return std::unexpected(fmt::format("{}: its configuration has more than {} samples in the file",
                                       where, most_samples));
  return {};
}

rows_read read_lines(std::string_view text) {
  std::vector<bench_row> out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json value = text::json_of(line);
    const std::string where = fmt::format("line {}", number);
    if (value.is_discarded()) return std::unexpected(where + ": it is no JSON");
    if (auto done = add_value(out, value, where); !done) return std::unexpected(done.error());
  }
  return out;
}

std::vector<std::string> doubts_of(const bench_row& a, const bench_row& b) {
  std::vector<std::string> out;
  for (const char* key : other_machine(a.content, b.content))
    out.push_back(fmt::format("{} differs: {} in A, {} in B", key, shown(a.content[key]),
                              shown(b.content[key])));
  for (const auto& [name, row] : {std::pair{"A", &a}, std::pair{"B", &b}})
    if (row->spread() > most_spread)
      out.push_back(fmt::format("the samples of {} spread by {:.1f} %, more than {:.0f} %", name,
                                100 * row->spread(), 100 * most_spread));
  return out;
}

std::vector<std::string> kernels_of(const json& row) {
  std::vector<std::string> out;
  for (const json& one : text::at(row, "kernels")) out.push_back(text::text_at(one, "id"));
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> notes_of(const json& a, const json& b) {
  std::vector<std::string> out;
  for (const char* key : {"version", "tuning", "model_filename"})
    if (both_have(a, b, key) && a[key] != b[key])
      out.push_back(fmt::format("{}: {} in A, {} in B", key, shown(a[key]), shown(b[key])));
  if (both_have(a, b, "kernels") && kernels_of(a) != kernels_of(b))
    out.emplace_back("other kernels ran in B than in A");
  return out;
}

verdict verdict_of(const rank_test& test, const ratio_interval& ratio) {
  if (test.least_p >= significance) return verdict::too_few;
  if (test.p >= significance) return verdict::no_difference;
  return ratio.ratio > 1 ? verdict::faster : verdict::slower;
}

compared_row compare_rows(const bench_row& a, const bench_row& b) {
  compared_row out;
  out.a = a;
  out.b = b;
  out.test = mann_whitney(a.speeds, b.speeds);
  out.ratio = ratio_of(a.speeds, b.speeds, 1 - significance);
  out.says = verdict_of(out.test, out.ratio);
  out.doubts = doubts_of(a, b);
  out.notes = notes_of(a.content, b.content);
  return out;
}

}  // namespace

double bench_row::spread() const {
  return deviation(speeds) / mean(speeds);
}

rows_read read_bench(std::string_view text) {
  const json whole = text::json_of(text);
  if (whole.is_discarded()) return read_lines(text);
  std::vector<bench_row> out;
  if (!whole.is_array()) {
    if (auto done = add_value(out, whole, "row 1"); !done) return std::unexpected(done.error());
    return out;
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (auto done = add_value(out, whole[i], fmt::format("row {}", i + 1)); !done)
      return std::unexpected(done.error());
  return out;
}

std::string_view text_of(verdict v) {
  switch (v) {
    case verdict::faster:
      return "faster";
    case verdict::slower:
      return "slower";
    case verdict::no_difference:
      return "no difference shown";
    default:
      return "too few samples";
  }
}

bool comparison::doubtful() const {
  return std::ranges::any_of(rows, [](const compared_row& row) { return !row.doubts.empty(); });
}

bool comparison::any_slower() const {
  return std::ranges::any_of(rows,
                             [](const compared_row& row) { return row.says == verdict::slower; });
}

comparison compare_results(const std::vector<bench_row>& a, const std::vector<bench_row>& b) {
  comparison out;
  std::vector<bool> taken(b.size(), false);
  for (const bench_row& row : a) {
    std::size_t at = 0;
    while (at < b.size() && (taken[at] || b[at].per_second != row.per_second ||
                             !same_configuration(row.content, b[at].content)))
      ++at;
    if (at == b.size()) {
      out.only_a.push_back(row.name);
      continue;
    }
    taken[at] = true;
    out.rows.push_back(compare_rows(row, b[at]));
  }
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!taken[i]) out.only_b.push_back(b[i].name);
  return out;
}

}  // namespace bitnet::host::judge
