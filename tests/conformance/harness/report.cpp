#include "harness/report.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace bitnet::conformance {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string fact(const json& facts, const char* key) {
  return facts.contains(key) && facts[key].is_string() ? facts[key].get<std::string>() : "";
}

// Why a suite does not count for a level; "" if it does.
std::string shortfall(const findings& found, const std::string& suite) {
  uint64_t passed = 0;
  std::string skipped;
  for (const test_result& t : found.tests) {
    if (t.suite() != suite) continue;
    if (t.status == "failed") return t.name + " failed";
    if (t.status == "known-failure") return t.name + " is known to fail";
    if (t.status == "skipped") skipped = t.text;
    passed += t.status == "passed" ? 1 : 0;
  }
  if (passed != 0) return "";
  return "of the suite " + suite + " nothing ran" + (skipped.empty() ? "" : ": " + skipped);
}

std::string shortfall_of_level(const findings& found, const std::string& level) {
  for (const std::string& suite : suites_of_level(level))
    if (std::string why = shortfall(found, suite); !why.empty()) return why;
  return "";
}

// The tests of a level's suites that judged nothing, with the reason of each.
std::vector<const test_result*> not_judged(const findings& found, const std::string& level) {
  std::vector<const test_result*> out;
  for (const std::string& suite : suites_of_level(level))
    for (const test_result& t : found.tests)
      if (t.suite() == suite && (t.status == "skipped" || t.status == "unsupported"))
        out.push_back(&t);
  return out;
}

std::string now() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

uint64_t count(const findings& found, const char* status) {
  return static_cast<uint64_t>(std::ranges::count(found.tests, status, &test_result::status));
}

}  // namespace

std::string report::level() const {
  for (const char* name : {"gold", "silver", "bronze"})
    if (shortfall_of_level(found, name).empty()) return name;
  return "none";
}

std::string report::missing() const {
  for (const char* name : {"bronze", "silver", "gold"})
    if (const std::string why = shortfall_of_level(found, name); !why.empty())
      return std::string(name) + ": " + why;
  return "";
}

int report::exit_code() const {
  if (found.failed("lint")) return exit_rejected;
  if (count(found, "failed") != 0) return exit_failed;
  if (found.facts.contains("unavailable")) return exit_nothing;
  if (count(found, "passed") == 0) return exit_nothing;
  if (!asked.level.empty() && !shortfall_of_level(found, asked.level).empty()) return exit_failed;
  return exit_passed;
}

ordered_json report::as_json() const {
  ordered_json out = {{"schema", 1}, {"suite_version", suite_version}, {"time", now()}};
  for (const char* key : {"backend", "version", "vendor", "build_id", "driver", "device", "arch",
                          "driver_version", "unavailable"})
    if (const std::string text = fact(found.facts, key); !text.empty()) out[key] = text;
  out["device_index"] = asked.device;
  out["level"] = level();
  if (const std::string why = missing(); !why.empty()) out["missing"] = why;
  ordered_json unjudged = ordered_json::array();
  for (const test_result* t : not_judged(found, level())) unjudged.push_back(t->name);
  if (!unjudged.empty()) out["not_judged"] = unjudged;
  ordered_json counts = ordered_json::object();
  for (const char* status : {"passed", "failed", "known-failure", "unsupported", "skipped"})
    counts[status] = count(found, status);
  out["counts"] = counts;
  ordered_json tests = ordered_json::array();
  for (const test_result& t : found.tests) {
    ordered_json row = {{"test", t.name}, {"status", t.status}, {"ms", t.ms}};
    if (!t.text.empty()) row["text"] = t.text;
    if (!t.weights.empty()) row["weights"] = t.weights;
    tests.push_back(row);
  }
  out["tests"] = tests;
  return out;
}

std::string report::as_text() const {
  std::string out;
  for (const test_result& t : found.tests) {
    char head[160];
    std::snprintf(head, sizeof head, "%-13s %-52s %6llu ms", t.status.c_str(), t.name.c_str(),
                  static_cast<unsigned long long>(t.ms));
    out += head;
    for (std::size_t at = 0; at < t.text.size();) {
      const std::size_t end = std::min(t.text.find('\n', at), t.text.size());
      out += "\n              " + t.text.substr(at, end - at);
      at = end + 1;
    }
    for (const std::string& how : t.weights)
      if (!how.starts_with("copied")) out += "\n              weights " + how;
    out += "\n";
  }
  const std::string unavailable = fact(found.facts, "unavailable");
  if (!unavailable.empty()) out += "skipped: no device to compute on: " + unavailable + "\n";
  out += fact(found.facts, "backend") + " " + fact(found.facts, "version") + ": " +
         std::to_string(count(found, "passed")) + " passed, " +
         std::to_string(count(found, "failed")) + " failed, " +
         std::to_string(count(found, "known-failure")) + " known to fail, " +
         std::to_string(count(found, "unsupported")) + " unsupported, " +
         std::to_string(count(found, "skipped")) + " skipped; level " + level() + "\n";
  if (const std::string why = missing(); !why.empty()) out += "not " + why + "\n";
  if (const auto unjudged = not_judged(found, level()); !unjudged.empty()) {
    out += level() + " without " + std::to_string(unjudged.size()) + " tests that judged nothing:";
    for (const test_result* t : unjudged) out += " " + t->name;
    out += "\n";
  }
  return out;
}

}  // namespace bitnet::conformance
