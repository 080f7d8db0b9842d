#pragma once
// A model that a server can load, and the memory that it needs.

#include <cstdint>
#include <string>

namespace bitnet::host {

struct model_source {
  std::string name;  // for clients
  std::string file;  // or folder
};

// In bytes.
struct model_need {
  uint64_t weights = 0;
  uint64_t least_kv = 0;  // keys and values of one sequence with its whole context
  uint64_t most_kv = 0;   // for as many sequences as run at once
  uint64_t free = 0;      // available memory of the machine; 0: unknown
};

}  // namespace bitnet::host
