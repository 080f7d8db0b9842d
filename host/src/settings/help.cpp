#include "settings/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace bitnet::host {
namespace {

constexpr std::size_t help_column = 36;
constexpr std::size_t line_width = 100;

std::string names_of(const option& row) {
  std::string short_names;
  std::string long_names;
  const auto add = [&](std::string_view name) {
    std::string& names = name.starts_with("--") ? long_names : short_names;
    if (!names.empty()) names += ", ";
    names += name;
  };
  std::string_view aliases = row.aliases;
  add("--" + std::string(row.name));
  while (!aliases.empty()) {
    const std::size_t end = std::min(aliases.find(' '), aliases.size());
    add(aliases.substr(0, end));
    aliases.remove_prefix(std::min(end + 1, aliases.size()));
  }
  std::string names = short_names.empty() ? "    " : short_names + ", ";
  names += long_names;
  if (row.type == kind::flag && row.initial == "true") names += ", --no-" + std::string(row.name);
  if (!row.metavar.empty()) names += " " + std::string(row.metavar);
  return names;
}

// Text that starts at help_column and is broken at blanks.
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
  std::string line = "  " + names_of(row);
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
  for (const command& one : all_commands()) {
    text += fmt::format("  {:<12}{}\n", one.name, one.summary);
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
  bool has_settings = false;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    if (row.group != group) text += fmt::format("\n{}\n", row.group);
    group = row.group;
    text += help_line(row);
    has_settings = has_settings || !row.command_line_only;
  }
  if (has_settings) {
    text +=
        "\nEach lasting option is also a variable (--ctx-size: BITNET_CTX_SIZE) and a key of the "
        "config\n"
        "files /usr/share/bitnet/bitnet.yaml, /etc/bitnet/bitnet.yaml and\n"
        "$XDG_CONFIG_HOME/bitnet/bitnet.yaml (ctx-size: 4k). Flags win over variables, variables "
        "over\n"
        "files. BITNET_CONFIG names one file instead of these. Numbers may end in k, m, g "
        "(thousands)\n"
        "or K, M, G (1024s).\n";
  }
  return text;
}

}  // namespace bitnet::host
