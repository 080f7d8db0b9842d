#pragma once
// The command line.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bitnet::conformance {

struct options {
  std::string file;                 // the plugin
  std::string json;                 // where the report goes; "-" is stdout, "" nowhere
  std::string expectations;         // "": <name>.conformance beside the plugin, if there is one
  std::string level;                // that must be reached; "" when none is asked for
  std::vector<std::string> suites;  // "": all
  std::vector<std::string> tests;   // patterns of SUITE.TEST; "": all of the suites
  std::vector<std::pair<std::string, std::string>> settings;  // for the plugin
  uint32_t device = 0;
  uint32_t timeout_s = 120;  // of one test
  bool parity = false, list = false, help = false;
  // Of a child only.
  std::string role;    // a suite, "identify" or "parity"; "": the parent
  std::string filter;  // of GoogleTest
  int channel = -1;    // descriptor that the records go to

  std::string problem;  // not empty: wrong usage, in words
};

options read_options(int argc, char** argv);

// The arguments that give a child the options of its parent.
std::vector<std::string> child_arguments(const options& o, const std::string& role,
                                         const std::string& filter, int channel);

extern const char* const usage_text;

// The suites in the order in which they run.
const std::vector<std::string>& suite_names();
// Those that a level needs, the levels below included; empty for an unknown level.
std::vector<std::string> suites_of_level(const std::string& level);

}  // namespace bitnet::conformance
