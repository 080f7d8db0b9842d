#pragma once
// The task that a broker gives its child.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

struct task {
  std::string name;  // of the backend
  std::filesystem::path library;
  plugin::file_identity identity;  // of the inspected file
  std::vector<std::pair<std::string, std::string>> params;
  int parent = 0;                 // process id
  bool unloadable = false;        // from its note: unload it on trial after closing
  std::filesystem::path scratch;  // a folder that only this child can write to; ""
  std::map<std::string, std::filesystem::path> late_nodes;  // from the manifest; see sandbox.hpp
  std::vector<std::filesystem::path> pipes;                 // folders; see sandbox.hpp
  // Ids of kernels that an earlier child of this probe found wrong, and why; as in facts.
  std::vector<std::string> disabled{}, wrong_results{};
};

[[nodiscard]] std::string write_task(const task& t);
[[nodiscard]] plugin::checked<task> read_task(std::string_view text);

}  // namespace bitnet::probe
