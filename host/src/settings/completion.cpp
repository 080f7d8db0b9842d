#include "settings/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "settings/option.hpp"
#include "settings/option_names.hpp"

namespace bitnet::host {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> command_names() {
  std::vector<std::string> out;
  for (const command& one : all_commands()) out.emplace_back(one.name);
  return out;
}

// Positional words: those of the table, or all commands for COMMAND.
std::vector<std::string> words_of(const command& about) {
  std::vector<std::string> out;
  for (const std::string& word : split(about.words, '|')) {
    if (word == "COMMAND")
      std::ranges::copy(command_names(), std::back_inserter(out));
    else
      out.push_back(word);
  }
  return out;
}

template <class F>
void each_option(const command& about, F f) {
  for (const option& row : all_options())
    if ((row.commands & about.bit) != 0) f(row, names_of(row));
}

// Puts a backslash before each character of `from`.
std::string escaped(std::string_view text, std::string_view from) {
  std::string out;
  for (const char c : text) {
    if (from.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Quotes for a POSIX shell, with single quotes.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

// ---- bash

std::string bash_command(const command& about) {
  std::vector<std::string> flags;
  std::string values;
  each_option(about, [&](const option& row, const option_names& names) {
    std::vector<std::string> all = names.shorts;
    all.insert(all.end(), names.longs.begin(), names.longs.end());
    flags.insert(flags.end(), all.begin(), all.end());
    if (row.type == kind::flag) return;
    const std::string what =
        !row.choices.empty()
            ? fmt::format("words {}", shell_quoted(joined(split(row.choices, '|'))))
        : takes_path(row) ? "files"
                          : "nothing";
    values += fmt::format("      {}) _bitnet_{}; return ;;\n", joined(all, "|"), what);
  });
  const std::vector<std::string> words = words_of(about);
  return fmt::format(
      "    {})\n      case $previous in\n{}      esac\n"
      "      if [[ $current == -* ]]; then _bitnet_words {}\n"
      "      else {}; fi ;;\n",
      about.name, values, shell_quoted(joined(flags)),
      words.empty() ? std::string("_bitnet_files")
                    : fmt::format("_bitnet_words {}", shell_quoted(joined(words))));
}

std::string bash() {
  std::string cases;
  for (const command& one : all_commands()) cases += bash_command(one);
  return fmt::format(
      "# bash completion of bitnet, printed by: bitnet completion bash\n"
      "_bitnet_words() {{ mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }}\n"
      "_bitnet_files() {{ compopt -o filenames 2>/dev/null || :; mapfile -t COMPREPLY < <(compgen "
      "-f -- "
      "\"$current\"); }}\n"
      "_bitnet_nothing() {{ COMPREPLY=(); }}\n"
      "_bitnet() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then _bitnet_words {}; return; fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}"
      "  esac\n"
      "}}\n"
      "complete -F _bitnet bitnet\n",
      shell_quoted(joined(command_names())), cases);
}

// ---- zsh

std::string zsh_value(const option& row) {
  if (row.type == kind::flag) return "";
  const std::string name = escaped(row.metavar, "[]:\\|");
  if (!row.choices.empty()) return fmt::format(":{}:({})", name, joined(split(row.choices, '|')));
  return takes_path(row) ? fmt::format(":{}:_files", name) : fmt::format(":{}: ", name);
}

std::string zsh_command(const command& about) {
  std::string specs;
  each_option(about, [&](const option& row, const option_names& names) {
    std::vector<std::string> all = names.shorts;
    all.insert(all.end(), names.longs.begin(), names.longs.end());
    // A list may be repeated; for other options each spelling excludes the rest.
    for (const std::string& name : all)
      specs += fmt::format(
          " \\\n        {}",
          shell_quoted(fmt::format("{}{}[{}]{}",
                                   row.type == kind::list ? "*" : fmt::format("({})", joined(all)),
                                   name, escaped(row.help, "[]:\\"), zsh_value(row))));
  });
  const std::vector<std::string> words = words_of(about);
  return fmt::format("    {})\n      _arguments -S{} \\\n        {} ;;\n", about.name, specs,
                     words.empty() ? std::string("'*:file:_files'")
                                   : shell_quoted(fmt::format("*:word:({})", joined(words))));
}

std::string zsh() {
  std::string commands;
  std::string cases;
  for (const command& one : all_commands()) {
    commands += fmt::format(
        "    {}\n", shell_quoted(fmt::format("{}:{}", one.name, escaped(one.summary, ":\\"))));
    cases += zsh_command(one);
  }
  return fmt::format(
      "#compdef bitnet\n"
      "# zsh completion of bitnet, printed by: bitnet completion zsh\n"
      "_bitnet() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n"
      "  shift words; ((CURRENT--))\n"
      "  case $command in\n{}"
      "  esac\n"
      "}}\n"
      "compdef _bitnet bitnet\n",
      commands, cases);
}

// ---- fish

std::string fish_option(const command& about, const option& row, const option_names& names) {
  std::string line =
      fmt::format("complete -c bitnet -n '__fish_seen_subcommand_from {}'", about.name);
  for (const std::string& name : names.longs) line += fmt::format(" -l {}", name.substr(2));
  for (const std::string& name : names.shorts)
    line += (name.size() == 2 ? " -s " : " -o ") + name.substr(1);
  if (row.type != kind::flag) {
    line += takes_path(row) ? " -r -F" : " -x";
    if (!row.choices.empty())
      line += fmt::format(" -a {}", shell_quoted(joined(split(row.choices, '|'))));
  }
  std::string help;  // fish reads \' and \\ inside single quotes
  help = escaped(row.help, "'\\");
  return fmt::format("{} -d '{}'\n", line, help);
}

std::string fish() {
  std::string out =
      "# fish completion of bitnet, printed by: bitnet completion fish\n"
      "complete -c bitnet -n __fish_use_subcommand -f\n";
  for (const command& one : all_commands()) {
    out += fmt::format("complete -c bitnet -n __fish_use_subcommand -f -a {} -d '{}'\n", one.name,
                       escaped(one.summary, "'\\"));
    if (const std::vector<std::string> words = words_of(one); !words.empty())
      out += fmt::format("complete -c bitnet -n '__fish_seen_subcommand_from {}' -f -a '{}'\n",
                         one.name, joined(words));
    each_option(one, [&](const option& row, const option_names& names) {
      out += fish_option(one, row, names);
    });
  }
  return out;
}

constexpr auto shells = std::to_array<std::string_view>({"bash", "zsh", "fish"});

}  // namespace

std::span<const std::string_view> completed_shells() {
  return shells;
}

std::optional<std::string> completion_for(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  return std::nullopt;
}

}  // namespace bitnet::host
