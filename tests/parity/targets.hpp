#pragma once
// What the suites of whole programs, hostile input and single ops open. The suites are compiled
// once; each binary made of them has a targets.cpp of its own.

#include <string>
#include <vector>

namespace bitnet::parity {

struct target {
  std::string name;  // letters, digits and '_' only
  const char* path;  // of the plugin
  std::string isa;   // the backend's setting; "": as it is
  // A device's own order of sums, division and exponential: near to tier0, not its bits. The work
  // of a step cannot be stopped once it is submitted.
  bool gpu = false;
};

// The backend of plain primitives, by which others are judged.
const target& tier0();

// The cpu backend once for each instruction set that it has kernels for.
std::vector<target> all_targets();

// Each plugin of them once.
std::vector<target> all_plugins();

}  // namespace bitnet::parity
