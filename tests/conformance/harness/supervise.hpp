#pragma once
// Runs children and keeps what they said, whatever becomes of them.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/options.hpp"

namespace bitnet::conformance {

struct test_result {
  std::string name;    // suite.test
  std::string status;  // passed failed skipped; known-failure unsupported after expectations
  std::string text;    // why
  uint64_t ms = 0;
  std::vector<std::string> weights = {};  // how they were kept, in the words of runner.hpp

  std::string suite() const { return name.substr(0, name.find('.')); }
};

struct child_end {
  bool done = false;    // it said that it is
  int exit_status = 0;  // and with what it meant to end
  bool timed_out = false;
  bool breached = false;  // it broke a rule that has a result of its own
  std::string death;      // how it ended if not as it should
  std::string running;    // the test that had begun
  std::string stage;
  std::string slot;     // that ran when a fatal signal came
  std::string printed;  // the last of what it printed
};

// What was found in all children together.
struct findings {
  std::vector<test_result> tests;
  nlohmann::json facts = nlohmann::json::object();
  nlohmann::json rows = nlohmann::json::array();  // of --parity

  void add(test_result r);  // the same test again: the worse one stays
  bool failed(const std::string& suite) const;
};

child_end run_child(const options& o, const std::string& role, const std::string& filter,
                    findings& out);

}  // namespace bitnet::conformance
