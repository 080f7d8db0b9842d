#pragma once
// One function per command: does it and returns the exit code, or says why it could not.

#include <nlohmann/json_fwd.hpp>

#include "gates/gates.hpp"
#include "library/engine.hpp"
#include "result.hpp"
#include "settings/command_list.hpp"

namespace bitnet::host {

#define BITNET_COMMAND_FUNCTION(name, ...) \
  [[nodiscard]] result<int> name##_command(const invocation& in);
BITNET_COMMANDS(BITNET_COMMAND_FUNCTION)
#undef BITNET_COMMAND_FUNCTION

// The command of that name, or a usage error that suggests one. version.cpp
[[nodiscard]] result<const command*> command_of(const std::string& name);

// bench --kernel, and bench --list.
[[nodiscard]] result<int> bench_kernels(const invocation& in);
// What bench does with --tune: `wanted` as in find_model.
[[nodiscard]] result<int> bench_tuning(const invocation& in, const std::string& wanted);
// What bench does with --parallel: the same.
[[nodiscard]] result<int> bench_parallel(const invocation& in, const std::string& wanted,
                                         gates& limits);
[[nodiscard]] result<int> list_kernels(const invocation& in);
// bench serve URL: `urls` are what follows the word.
[[nodiscard]] result<int> bench_serve(const invocation& in, const std::vector<std::string>& urls);
// bench compare A B: `files` are what follows the word.
[[nodiscard]] result<int> bench_compare(const invocation& in,
                                        const std::vector<std::string>& files);

// --list-devices of run and chat.
[[nodiscard]] result<int> list_devices(const invocation& in);

// The report of bitnet_inspect. inspect.cpp
[[nodiscard]] result<nlohmann::json> inspected_model(const std::string& file,
                                                     const bitnet_model_options& options);

// MODEL and what follows it: with -m on the command line, no positional is the model.
struct model_and_rest {
  std::string model;  // "" for the demo model
  std::vector<std::string> rest;
};
[[nodiscard]] model_and_rest split_positionals(const invocation& in);

}  // namespace bitnet::host
