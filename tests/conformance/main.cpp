// bitnet-backend-conformance: runs a backend through what the contract asks of it. The parent reads
// the command line, starts a process for each suite and judges; only children load the plugin.

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>

#include "files/new_file.hpp"
#include "harness/channel.hpp"
#include "harness/child.hpp"
#include "harness/expectations.hpp"
#include "harness/interpose.hpp"
#include "harness/lint_suite.hpp"
#include "harness/named_slots.hpp"
#include "harness/plugin.hpp"
#include "harness/report.hpp"

namespace bitnet::conformance {
namespace {

constexpr const char* about_suites =
    "lint        what the loader says of the file, nothing of which is run    bronze\n"
    "abi         entry, table, versions, statuses, facts and lists            bronze\n"
    "ops         each op against its definition, on shapes and formats        bronze\n"
    "sizes       each op at the sizes of real models                          bronze\n"
    "program     whole models: batches, buckets, sequences, windows, blocks   bronze\n"
    "sequences   many sequences: random steps, moved blocks, cancelling       bronze\n"
    "robustness  rejections, cancelling, time-outs, streams cut short         bronze\n"
    "hygiene     nothing but the return value leaves a call                   bronze\n"
    "threads     several queues and backends at once                          silver\n"
    "lifecycle   200 openings, two generations, blocks moved                  silver\n"
    "unload      nothing is left once it is unmapped                          gold\n";

int play_child(const options& o) {
  set_run_options(o);
  channel::open(o.channel);
  on_throw = [] { channel::breach("hygiene", "throws", "something was thrown over the boundary"); };
  watch_calls();
  report_slot_of_crash();
  if (o.role == "identify") return identify(o);
  if (o.role == "parity") return compare_ops(o);
  return run_suite(o);
}

std::string today() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[16] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

// Whether the suites can run at all.
bool look(const options& o, findings& out) {
  const child_end end = run_child(o, "identify", "*", out);
  if (!end.death.empty() && !(end.breached && !end.timed_out))
    out.add({"abi.opens", "failed",
             end.death + " in " + end.stage +
                 (end.printed.empty() ? "" : "; its last words: " + end.printed),
             0});
  if (end.death.empty() && !out.failed("abi")) {
    out.add({"abi.opens", "passed", "", 0});
    return true;
  }
  return false;
}

// One suite, in as many processes as it needs: what comes after a crash, or after the first test
// that does not end, runs in the next.
void run_suite_of(const options& o, const std::string& suite, findings& out) {
  std::string filter;
  for (const std::string& pattern : o.tests)
    if (pattern.starts_with(suite + ".")) filter += (filter.empty() ? "" : ":") + pattern;
  if (filter.empty()) filter = suite + ".*";
  constexpr int most_crashes = 5;
  bool timed_out = false;
  std::string without;
  for (int crashes = 0; crashes < most_crashes; ++crashes) {
    const child_end end = run_child(o, suite, filter + without, out);
    if (end.death.empty()) return;
    const std::string text = end.death + (end.slot.empty() ? "" : " in the slot " + end.slot) +
                             (end.printed.empty() ? "" : "; its last words: " + end.printed);
    if (end.running.empty()) {
      out.add({suite + ".process", "failed",
               text + (end.done ? " after its tests" : " between its tests"), 0});
      return;
    }
    out.add({end.running, "failed", text, 0});
    if (end.timed_out && timed_out) {
      out.add({suite + ".process", "failed", "two tests did not end: the rest was not run", 0});
      return;
    }
    timed_out = timed_out || end.timed_out;
    // Those that ran already, this one too.
    without = "-";
    for (const test_result& t : out.tests)
      if (t.suite() == suite) without += t.name + ":";
  }
  out.add({suite + ".process", "failed", "too many crashes: the rest was not run", 0});
}

void skip(const std::string& suite, const std::string& why, findings& out) {
  out.add({suite + ".suite", "skipped", why, 0});
}

bool needs_device(const std::string& suite) {
  return suite != "lint" && suite != "abi" && suite != "hygiene";
}

void run_suites(const options& o, const std::vector<std::string>& suites, findings& out) {
  bool opens = true, looked = false;
  for (const std::string& suite : suites) {
    if (suite == "lint") {
      run_lint(o.file, out);
      continue;
    }
    if (out.failed("lint")) {
      skip(suite, "the loader would reject this file", out);
      continue;
    }
    if (!looked) opens = look(o, out);
    looked = true;
    const auto reason = out.facts.find("unavailable");
    if (!opens)
      skip(suite, "the first look at the backend failed", out);
    else if (reason != out.facts.end() && (needs_device(suite) || out.facts.contains("opens")))
      skip(suite, reason->get<std::string>(), out);
    else
      run_suite_of(o, suite, out);
  }
}

// What a plugin said need not be UTF-8; what leaves here is.
template <class Json>
std::string text_of(const Json& content) {
  return content.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int write_report(const std::string& to, const std::string& text) {
  if (to == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
  const auto written = files::write_file(to, text);
  if (written) return 0;
  std::fprintf(stderr, "bitnet-backend-conformance: %s cannot be written: %s\n", to.c_str(),
               written.error().text.c_str());
  return exit_failed;
}

// NAME.conformance beside the file, where the backend is called NAME.
std::string default_expectations(const options& o, const findings& found) {
  const auto name = found.facts.find("backend");
  if (name == found.facts.end() || !name->is_string()) return "";
  const std::string text = name->get<std::string>();
  if (text.empty() || text.find('/') != std::string::npos) return "";
  const auto file = std::filesystem::absolute(o.file).parent_path() / (text + ".conformance");
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) ? file.string() : "";
}

int show_parity(const options& o) {
  findings found;
  const child_end end = run_child(o, "parity", "*", found);
  nlohmann::ordered_json out = {{"schema", 1}, {"suite_version", suite_version}};
  for (const auto& [key, value] : found.facts.items()) out[key] = value;
  out["rows"] = found.rows;
  std::string problem = end.death;
  if (!problem.empty() && !end.printed.empty()) problem += "; its last words: " + end.printed;
  for (const test_result& t : found.tests)
    if (t.status == "failed") problem += (problem.empty() ? "" : "; ") + t.name + ": " + t.text;
  if (!problem.empty()) out["problem"] = problem;
  const int written = write_report(o.json.empty() ? "-" : o.json, text_of(out));
  if (written != 0 || !problem.empty()) return exit_failed;
  if (found.rows.empty()) return exit_nothing;
  for (const auto& row : found.rows)
    if (!row.value("ok", false)) return exit_failed;
  return exit_passed;
}

int run(const options& o) {
  if (o.help) return std::printf("%s", usage_text) > 0 ? exit_passed : exit_failed;
  if (o.list) return std::printf("%s", about_suites) > 0 ? exit_passed : exit_failed;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(o.file, ignored)) {
    std::fprintf(stderr, "bitnet-backend-conformance: %s is no file; expected the plugin's .so\n",
                 o.file.c_str());
    return exit_usage;
  }
  if (o.parity) return show_parity(o);
  std::vector<std::string> suites = o.suites;
  if (suites.empty()) suites = o.level.empty() ? suite_names() : suites_of_level(o.level);
  report r{o, {}};
  run_suites(o, suites, r.found);
  const std::string file =
      o.expectations.empty() ? default_expectations(o, r.found) : o.expectations;
  if (!file.empty()) {
    const expectations said = read_expectations(file);
    if (!said.problem.empty()) {
      std::fprintf(stderr, "bitnet-backend-conformance: %s\n", said.problem.c_str());
      return exit_usage;
    }
    said.apply(r.found.tests, today(),
               suites.size() == suite_names().size() && !r.found.facts.contains("unavailable"));
  }
  if (o.json != "-") std::printf("%s", r.as_text().c_str());
  if (!o.json.empty() && write_report(o.json, text_of(r.as_json())) != 0) return exit_failed;
  return r.exit_code();
}

}  // namespace
}  // namespace bitnet::conformance

int main(int argc, char** argv) {
  using namespace bitnet::conformance;
  try {
    const options o = read_options(argc, argv);
    if (!o.problem.empty()) {
      std::fprintf(stderr, "bitnet-backend-conformance: %s\n", o.problem.c_str());
      return exit_usage;
    }
    return o.role.empty() ? run(o) : play_child(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bitnet-backend-conformance: %s\n", e.what());
    return exit_failed;
  }
}
