#include "settings/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "settings/option_names.hpp"

namespace bitnet::host {
namespace {

constexpr std::size_t help_column = 36;
constexpr std::size_t line_width = 100;

std::string spelled(const option& row) {
  const option_names names = names_of(row);
  std::string out =
      names.shorts.empty() ? "    " : fmt::format("{}, ", fmt::join(names.shorts, ", "));
  out += fmt::format("{}", fmt::join(names.longs, ", "));
  if (!row.metavar.empty()) out += fmt::format(" {}", row.metavar);
  return out;
}

// Text that starts at help_column and wraps at blanks.
std::string wrapped(std::string_view text, std::size_t used) {
  std::string out;
  std::size_t at = used;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (at + end + 1 > line_width && at > help_column) {
      out += "\n" + std::string(help_column, ' ');
      at = help_column;
    } else if (at > help_column) {
      out += ' ';
      ++at;
    }
    out += text.substr(0, end);
    at += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string help_line(const option& row) {
  std::string line = fmt::format("  {}", spelled(row));
  if (line.size() + 2 > help_column)
    line += "\n" + std::string(help_column, ' ');
  else
    line.resize(help_column, ' ');
  std::string text(row.help);
  if (row.type != kind::flag && !row.initial.empty()) text += fmt::format(" [{}]", row.initial);
  return line + wrapped(text, help_column) + "\n";
}

}  // namespace

std::string help_of_program() {
  std::string text = "Usage: bitnet COMMAND [options]\n\nRuns ternary language models.\n\n";
  std::size_t widest = 0;
  for (const command& one : all_commands()) widest = std::max(widest, one.name.size());
  for (const command& one : all_commands()) {
    text += fmt::format("  {:<{}}{}\n", one.name, widest + 2, one.summary);
  }
  text +=
      "\nbitnet COMMAND --help lists the options of a command. Start with:\n\n"
      "  bitnet run -p \"Once upon a time\"\n";
  return text;
}

std::string help_of(const command& about) {
  std::string text = fmt::format("Usage: bitnet {} {}\n", about.name, about.usage);
  if (!about.details.empty()) text += fmt::format("\n{}", about.details);
  std::string_view group;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    if (row.group != group) text += fmt::format("\n{}\n", row.group);
    group = row.group;
    text += help_line(row);
  }
  if (has_settings(about)) text += fmt::format("\n{}", settings_note());
  return text;
}

bool has_settings(const command& about) {
  return std::ranges::any_of(all_options(), [&](const option& row) {
    return (row.commands & about.bit) != 0 && !row.command_line_only;
  });
}

std::string_view settings_note() {
  return "Each lasting option is also a variable (--ctx-size: BITNET_CTX_SIZE) and a key of the "
         "config\n"
         "files /usr/share/bitnet/bitnet.yaml, /etc/bitnet/bitnet.yaml and\n"
         "$XDG_CONFIG_HOME/bitnet/bitnet.yaml (ctx-size: 4k). Flags win over variables, variables "
         "over\n"
         "files. BITNET_CONFIG names one file instead of these. Numbers may end in k, m, g "
         "(thousands)\n"
         "or K, M, G (1024s).\n";
}

}  // namespace bitnet::host
