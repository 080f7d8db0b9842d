#pragma once
// One function per command. It runs the command and returns its exit code, or a failure.

#include <nlohmann/json_fwd.hpp>

#include "basic/result.hpp"
#include "gates/gates.hpp"
#include "session/engine.hpp"
#include "settings/command_list.hpp"

namespace bitnet::host {

#define BITNET_COMMAND_FUNCTION(name, ...) \
  [[nodiscard]] result<int> name##_command(const invocation& in);
BITNET_COMMANDS(BITNET_COMMAND_FUNCTION)
#undef BITNET_COMMAND_FUNCTION

// Returns the command of that name, or a usage error that suggests one. In version.cpp.
[[nodiscard]] result<const command*> command_of(const std::string& name);

// Runs bench --kernel and bench --list.
[[nodiscard]] result<int> bench_kernels(const invocation& in);
// Runs bench --tune. `wanted` as in find_model.
[[nodiscard]] result<int> bench_tuning(const invocation& in, const std::string& wanted);
// Runs bench --parallel. `wanted` as in find_model.
[[nodiscard]] result<int> bench_parallel(const invocation& in, const std::string& wanted,
                                         gates& limits);
[[nodiscard]] result<int> list_kernels(const invocation& in);
// Runs bench serve URL; `urls` are the words after `serve`.
[[nodiscard]] result<int> bench_serve(const invocation& in, const std::vector<std::string>& urls);
// Runs bench compare A B; `files` are the words after `compare`.
[[nodiscard]] result<int> bench_compare(const invocation& in,
                                        const std::vector<std::string>& files);

// Runs --list-devices of run and chat.
[[nodiscard]] result<int> list_devices(const invocation& in);

// Returns the report of bitnet_inspect. In inspect.cpp.
[[nodiscard]] result<nlohmann::json> inspected_model(const std::string& file,
                                                     const bitnet_model_options& options);

// The model and the remaining words. If -m is on the command line, no word is taken as the model.
struct model_and_rest {
  std::string model;  // "" for the demo model
  std::vector<std::string> rest;
};
[[nodiscard]] model_and_rest split_positionals(const invocation& in);

}  // namespace bitnet::host
