#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "json/reading.hpp"
#include "receipt/derived.hpp"
#include "receipt/rules.hpp"

namespace bitnet::receipt {
namespace {

// Collects contradictions under the name of one rule.
class agreement {
 public:
  agreement(const char* rule, findings& found) : rule_(rule), found_(found) {}

  void reject(std::string field, std::string text) {
    found_.push_back({finding::level_type::error, rule_, std::move(field), std::move(text)});
  }
  // Reports only the first violation of each kind: a receipt of a thousand kernels would fill
  // pages.
  bool require(bool holds, std::string field, std::string text) {
    if (!holds) reject(std::move(field), std::move(text));
    return holds;
  }

 private:
  const char* rule_;
  findings& found_;
};

std::string row_field(const char* list, std::size_t i, const char* member) {
  return fmt::format("{}[{}].{}", list, i, member);
}

bool is_true(const json::value& object, const char* name) {
  const json::value& found = json::member(object, name);
  return found.is_boolean() && found.get<bool>();
}

double number_in(const json::value& object, const char* name) {
  const json::value& found = json::member(object, name);
  return found.is_number() ? found.get<double>() : 0;
}

// Times are rounded when they are written, so rates computed from them differ slightly.
bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool check_row(const json::value& row, std::size_t i, const json::value& devices, agreement& a) {
  const uint64_t place = count_in(row, "place");
  if (!a.require(place < devices.size(), row_field("kernel_stats", i, "place"),
                 fmt::format("there are {} devices", devices.size())))
    return false;
  for (const char* name : {"backend", "device"})
    if (!a.require(text_in(row, name) == text_in(devices[place], name),
                   row_field("kernel_stats", i, name),
                   fmt::format("devices[{}] has another one", place)))
      return false;
  return a.require(count_in(row, "calls") != 0, row_field("kernel_stats", i, "calls"),
                   "a kernel that never ran has no row");
}

void check_devices(const json::value& predicate, agreement& a) {
  const json::value& devices = json::member(predicate, "devices");
  const json::value& plugins = json::member(predicate, "plugins");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!a.require(count_in(devices[i], "place") == i, row_field("devices", i, "place"),
                   fmt::format("expected {}", i)))
      return;
    const uint64_t plugin = count_in(devices[i], "plugin");
    if (!a.require(plugin < plugins.size() &&
                       text_in(plugins[plugin], "name") == text_in(devices[i], "backend"),
                   row_field("devices", i, "plugin"), "it is not the plugin of its backend"))
      return;
    const std::string begin = text_in(devices[i], "backend") + ":";
    if (!a.require(text_in(devices[i], "device").starts_with(begin),
                   row_field("devices", i, "device"), "it is none of its backend"))
      return;
  }
}

void check_coverage(const json::value& predicate, agreement& a) {
  const json::value& selection = json::member(predicate, "selection");
  const json::value is = json::member(predicate, "coverage");
  const json::value wanted =
      to_json(coverage_of(json::member(predicate, "kernel_stats"), text_in(selection, "device")));
  for (const auto& [name, value] : wanted.items())
    if (!a.require(count_in(is, name.c_str()) == value.get<uint64_t>(), "coverage." + name,
                   fmt::format("the counters come to {}", value.get<uint64_t>())))
      return;
}

// Devices that may have computed: the selected one, those of a split model, and those that the
// sequence moved to.
std::set<std::string> accounted_devices(const json::value& predicate) {
  std::set<std::string> out = {text_in(json::member(predicate, "selection"), "device")};
  for (const json::value& part : json::member(predicate, "parts"))
    out.insert(text_in(part, "device"));
  for (const json::value& move : json::member(predicate, "moves")) {
    out.insert(text_in(move, "from"));
    out.insert(text_in(move, "to"));
  }
  return out;
}

// The driver in the last row of the selected device; a replaced copy of its backend has an earlier
// row.
json::value driver_of_selected(const json::value& predicate) {
  json::value out;
  const std::string selected = text_in(json::member(predicate, "selection"), "device");
  for (const json::value& device : json::member(predicate, "devices"))
    if (text_in(device, "device") == selected) out = json::member(device, "driver_version");
  return out;
}

void check_executed(const json::value& predicate, agreement& a) {
  const json::value& selection = json::member(predicate, "selection");
  const json::value& rows = json::member(predicate, "kernel_stats");
  const std::string selected = text_in(selection, "device");
  const std::set<std::string> accounted = accounted_devices(predicate);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string device = text_in(rows[i], "device");
    if (!a.require(accounted.contains(device), row_field("kernel_stats", i, "device"),
                   fmt::format("{} computed, but {} was selected, and neither a part of the model "
                               "nor a move accounts for it",
                               device, selected)))
      return;
  }
  a.require(
      coverage_of(rows, selected).ops_on_selected != 0 || !json::member(predicate, "moves").empty(),
      "selection.device", fmt::format("{} was selected, and no kernel ran on it", selected));
}

void check_tokens(const json::value& predicate, const char* what, const char* sum_name,
                  agreement& a) {
  const json::value& of = json::member(predicate, what);
  const std::string field = what;
  a.require(text_in(of, "sha256") == text_in(predicate, sum_name), sum_name,
            fmt::format("{}.sha256 is another one", what));
  const json::value& ids = json::member(of, "ids");
  if (!ids.is_array()) return;
  if (!a.require(ids.size() == count_in(of, "tokens"), field + ".ids",
                 fmt::format("expected {} of them, found {}", count_in(of, "tokens"), ids.size())))
    return;
  a.require(token_sum(text_in(predicate, "salt"), what, ids.get<std::vector<int32_t>>()) ==
                text_in(of, "sha256"),
            field + ".ids", "their salted sum is not the one that was noted");
}

void check_rates(const json::value& predicate, agreement& a) {
  const json::value& timings = json::member(predicate, "timings");
  const uint64_t generated = count_in(predicate, "tokens_generated");
  a.require(count_in(json::member(predicate, "output"), "tokens") == generated, "tokens_generated",
            "output.tokens is another number");
  a.require(count_in(timings, "generated_tokens") == generated, "timings.generated_tokens",
            "tokens_generated is another number");
  a.require(
      count_in(timings, "prompt_tokens") <= count_in(json::member(predicate, "prompt"), "tokens"),
      "timings.prompt_tokens", "more than the prompt has");
  const double rate = tokens_per_second(generated, number_in(timings, "generate_ms"));
  for (const char* name : {"tokens_per_second", "tokens_per_sec"})
    a.require(is_near(number_in(predicate, name), rate), name,
              fmt::format("the counted tokens and their time come to {:.3f}", rate));
  a.require(number_in(timings, "wall_ms") + 1 >=
                number_in(timings, "prompt_ms") + number_in(timings, "generate_ms"),
            "timings.wall_ms", "less than its parts");
}

// For a scheduler's request: its own part of its steps must not exceed their totals.
void check_shares(const json::value& predicate, agreement& a) {
  const json::value& batch = json::member(predicate, "batch");
  if (!batch.contains("step_tokens") && !batch.contains("mean_sequences")) return;
  const uint64_t own = count_in(batch, "tokens");
  const uint64_t all = count_in(batch, "step_tokens");
  const uint64_t most = count_in(batch, "sequences");
  const double mean = number_in(batch, "mean_sequences");
  a.require(own <= all, "batch.tokens", fmt::format("the steps had {}", all));
  a.require(count_in(batch, "steps") <= own, "batch.steps", "a step without a token of its own");
  a.require(most > 1 || own == all, "batch.step_tokens",
            "tokens of others, in steps that had no other sequence");
  a.require(mean <= static_cast<double>(most) && (mean >= 1 || own == 0), "batch.mean_sequences",
            fmt::format("expected 1 to {}", most));
}

}  // namespace

void check_counters(const json::value& predicate, findings& found) {
  agreement a("counters", found);
  const json::value& rows = json::member(predicate, "kernel_stats");
  const json::value& devices = json::member(predicate, "devices");
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!check_row(rows[i], i, devices, a)) return;
  check_devices(predicate, a);
  a.require(json::member(predicate, "kernels") == kernel_ids(rows), "kernels",
            "they are not the ids of kernel_stats, each once and in their order");
  check_coverage(predicate, a);
  const std::string path = compute_path(rows, devices);
  a.require(text_in(predicate, "compute_path") == path, "compute_path",
            fmt::format("the counters come to '{}'", path));
}

void check_selection(const json::value& predicate, findings& found) {
  agreement a("selection", found);
  const json::value& selection = json::member(predicate, "selection");
  const std::string status = text_in(predicate, "status");
  a.require(status != "failed", "status", "the run failed: it proves no answer");
  a.require((status == "failed") == predicate.contains("failure"), "failure",
            "a run that failed has one, and no other has");
  if (status == "failed") return;
  const std::string selected = text_in(selection, "selected");
  a.require(!is_true(selection, "fake"), "selection.fake", "fakes were among the backends");
  const json::value& devices = json::member(predicate, "devices");
  for (std::size_t i = 0; i < devices.size(); ++i)
    a.require(!is_true(devices[i], "fake"), row_field("devices", i, "fake"),
              "it is pretended, and computes nothing");
  a.require(text_in(predicate, "compute_path") == "real", "compute_path",
            "expected real: the kernels that ran are no answer's");
  a.require(text_in(predicate, "backend") == selected, "backend",
            fmt::format("{} was selected", selected));
  a.require(text_in(selection, "device").starts_with(selected + ":"), "selection.device",
            "it is none of the selected backend");
  const json::value& detected = json::member(selection, "detected");
  a.require(std::ranges::find(detected, json::value(selected)) != detected.end(),
            "selection.detected", fmt::format("{} is not among them", selected));
  std::string line = "requested=" + text_in(selection, "requested") + " detected=[";
  for (std::size_t i = 0; i < detected.size(); ++i)
    line += (i == 0 ? "" : ",") + detected[i].get<std::string>();
  a.require(text_in(predicate, "backend_summary") == line + "] selected=" + selected,
            "backend_summary", "it is not the line of the selection");
  a.require(json::member(predicate, "driver_version") == driver_of_selected(predicate),
            "driver_version", "the selected device has another one");
  check_executed(predicate, a);
}

void check_answer(const json::value& predicate, findings& found) {
  if (text_in(predicate, "status") == "failed") return;
  agreement a("answer", found);
  check_tokens(predicate, "prompt", "prompt_sha256", a);
  check_tokens(predicate, "output", "output_token_sha256", a);
  check_rates(predicate, a);
  check_shares(predicate, a);
}

// "min-..." is a lower bound, "max-..." an upper one.
void check_gates(const json::value& predicate, findings& found) {
  agreement a("gates", found);
  const json::value& gates = json::member(predicate, "gates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string name = text_in(gates[i], "name");
    const double limit = number_in(gates[i], "limit");
    const double measured = number_in(gates[i], "measured");
    const bool passed = is_true(gates[i], "passed");
    const bool is_bound = name.starts_with("min-") || name.starts_with("max-");
    const bool holds = name.starts_with("min-") ? measured >= limit : measured <= limit;
    if (is_bound)
      a.require(passed == holds, row_field("gates", i, "passed"),
                fmt::format("{} of {} with a limit of {} says otherwise", name, measured, limit));
    if (!passed)
      found.push_back({finding::level_type::gate, "gates", row_field("gates", i, "passed"),
                       fmt::format("{}: {} with a limit of {}", name, measured, limit)});
  }
}

}  // namespace bitnet::receipt
