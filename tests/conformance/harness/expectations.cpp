#include "harness/expectations.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

namespace bitnet::conformance {
namespace {

bool is_date(const std::string& text) {
  constexpr std::string_view shape = "dddd-dd-dd";
  if (text.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (shape[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  const int month = std::stoi(text.substr(5, 2)), day = std::stoi(text.substr(8, 2));
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

// What is wrong with a line; "" if nothing is.
std::string read_line(const std::string& line, expectations& out) {
  std::istringstream words(line);
  std::string kind;
  expectation e;
  words >> kind >> e.test;
  e.unsteady = kind == "unsteady";
  e.permanent = kind == "unsupported" || e.unsteady;
  if (!e.permanent && kind != "known-failure")
    return "expected unsupported, unsteady or known-failure, found '" + kind + "'";
  if (e.test.find('.') == std::string::npos) return "expected SUITE.TEST, found '" + e.test + "'";
  if (!e.permanent && (!(words >> e.expiry) || !is_date(e.expiry)))
    return "expected the day until which it may fail as YYYY-MM-DD, found '" + e.expiry + "'";
  std::getline(words >> std::ws, e.reason);
  if (e.reason.empty()) return "the reason is missing";
  if (std::ranges::find(out.rows, e.test, &expectation::test) != out.rows.end())
    return e.test + " has a line already";
  out.rows.push_back(std::move(e));
  return "";
}

void judge(const expectation& e, test_result& t, const std::string& today) {
  if (t.status == "skipped") return;
  if (t.status == "passed") {
    if (e.unsteady) return;
    t.status = "failed";
    t.text = std::string("it passes, though it is expected ") +
             (e.permanent ? "to be unsupported" : "to fail") + " (" + e.reason +
             "): remove its line from the expectations";
  } else if (e.permanent) {
    t.status = "unsupported";
    t.text = e.reason;
  } else if (today < e.expiry) {
    t.status = "known-failure";
    t.text = e.reason + " (until " + e.expiry + "): " + t.text;
  } else {
    t.text = "known to fail (" + e.reason + "), but only until " + e.expiry + ": " + t.text;
  }
}

}  // namespace

void expectations::apply(std::vector<test_result>& tests, const std::string& today,
                         bool whole) const {
  for (const expectation& e : rows) {
    const auto t = std::ranges::find(tests, e.test, &test_result::name);
    if (t != tests.end())
      judge(e, *t, today);
    else if (whole)
      tests.push_back({e.test, "failed",
                       "the expectations name it, and no such test ran: correct its name or remove "
                       "its line",
                       0});
  }
}

expectations parse_expectations(const std::string& text) {
  expectations out;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    if (const std::string why = read_line(line, out); !why.empty()) {
      out.problem = "line " + std::to_string(number) + ": " + why;
      return out;
    }
  }
  return out;
}

expectations read_expectations(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return {{}, file + " cannot be read"};
  expectations out = parse_expectations(text);
  if (!out.problem.empty()) out.problem = file + ": " + out.problem;
  return out;
}

}  // namespace bitnet::conformance
