#pragma once
// One function per command: does it and returns the exit code, or says why it could not.

#include "library/engine.hpp"
#include "result.hpp"

namespace bitnet::host {

[[nodiscard]] result<int> run_command(const invocation& in);
[[nodiscard]] result<int> chat_command(const invocation& in);
[[nodiscard]] result<int> backends_command(const invocation& in);
[[nodiscard]] result<int> parity_command(const invocation& in);
[[nodiscard]] result<int> inspect_command(const invocation& in);
[[nodiscard]] result<int> tokenize_command(const invocation& in);
[[nodiscard]] result<int> detokenize_command(const invocation& in);
[[nodiscard]] result<int> logits_command(const invocation& in);
[[nodiscard]] result<int> bench_command(const invocation& in);
[[nodiscard]] result<int> quantize_command(const invocation& in);
[[nodiscard]] result<int> convert_command(const invocation& in);
[[nodiscard]] result<int> version_command(const invocation& in);
[[nodiscard]] result<int> help_command(const invocation& in);
[[nodiscard]] result<int> completion_command(const invocation& in);
[[nodiscard]] result<int> man_command(const invocation& in);

// The command of that name, or a usage error that suggests one. version.cpp
[[nodiscard]] result<const command*> command_of(const std::string& name);

// bench --kernel, and bench --list.
[[nodiscard]] result<int> bench_kernels(const invocation& in);
// What bench does with --tune: `wanted` as in find_model.
[[nodiscard]] result<int> bench_tuning(const invocation& in, const std::string& wanted);
[[nodiscard]] result<int> list_kernels(const invocation& in);

// --list-devices of run and chat.
[[nodiscard]] result<int> list_devices(const invocation& in);

// MODEL and what follows it: with -m on the command line, no positional is the model.
struct model_and_rest {
  std::string model;  // "" for the demo model
  std::vector<std::string> rest;
};
[[nodiscard]] model_and_rest split_positionals(const invocation& in);

}  // namespace bitnet::host
