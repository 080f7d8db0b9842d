// bitnet version and bitnet help.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "settings/help.hpp"
#include "settings/suggest.hpp"

namespace bitnet::host {

result<int> version_command(const invocation& in) {
  if (!in.positionals.empty())
    return fail(exit_code::usage, fmt::format("takes no '{}'", in.positionals.front()));
  std::string text;
  library_error err;
  const bitnet_status status =
      fetch([&](char* out, uint64_t capacity,
                uint64_t* needed) { return bitnet_build_info(out, capacity, needed, &err); },
            text);
  if (status != BITNET_OK) return failed(status, err, stage::work);
  auto info = parse_json(text);
  if (!info) return std::unexpected(info.error());
  std::string out = json_line(*info);
  if (!in.set.flag("json")) {
    out = fmt::format("bitnet {} (backend ABI {}.{}, {}, {})\n", bitnet_version(),
                      info->value("abi_major", 0), info->value("abi_minor", 0),
                      info->value("compiler", "unknown compiler"),
                      info->value("build_type", "unknown build"));
  }
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

result<const command*> command_of(const std::string& name) {
  if (const command* about = find_command(name)) return about;
  std::vector<std::string> names;
  for (const command& one : all_commands()) names.emplace_back(one.name);
  return fail(exit_code::usage, fmt::format("unknown command '{}'{}; `bitnet help` lists them",
                                            name, suggestion(name, names)));
}

result<int> help_command(const invocation& in) {
  if (in.positionals.size() > 1)
    return fail(exit_code::usage,
                fmt::format("expected one command, found {} words", in.positionals.size()));
  std::string text = help_of_program();
  if (!in.positionals.empty()) {
    auto about = command_of(in.positionals.front());
    if (!about) return std::unexpected(about.error());
    text = help_of(**about);
  }
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
