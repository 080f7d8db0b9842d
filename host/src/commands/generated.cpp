// bitnet completion, bitnet man: generate text for shells and man from the option table.
#include <fmt/format.h>

#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "settings/completion.hpp"
#include "settings/man_page.hpp"
#include "settings/suggest.hpp"

namespace bitnet::host {
namespace {

result<int> shown(const std::string& text) {
  if (auto done = print(text); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace

result<int> completion_command(const invocation& in) {
  const std::vector<std::string> shells(completed_shells().begin(), completed_shells().end());
  if (in.positionals.size() != 1)
    return fail(exit_code::usage,
                fmt::format("expected one shell, {}; such as `bitnet completion {}`",
                            fmt::join(shells, ", "), shells.front()));
  const std::string& shell = in.positionals.front();
  const auto text = completion_for(shell);
  if (!text)
    return fail(exit_code::usage,
                fmt::format("no completion for '{}'{}; there is one for {}", shell,
                            suggestion(shell, shells), fmt::join(shells, ", ")));
  return shown(*text);
}

result<int> man_command(const invocation& in) {
  if (in.positionals.empty()) return shown(man_page_of_program(bitnet_version()));
  if (in.positionals.size() > 1)
    return fail(exit_code::usage,
                fmt::format("expected one command, found {} words", in.positionals.size()));
  if (in.positionals.front() == settings_page) return shown(man_page_of_settings(bitnet_version()));
  auto about = command_of(in.positionals.front());
  if (!about) return std::unexpected(about.error());
  return shown(man_page_of(**about, bitnet_version()));
}

}  // namespace bitnet::host
