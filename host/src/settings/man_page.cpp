#include "settings/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "settings/help.hpp"
#include "settings/option_names.hpp"
#include "text/ascii.hpp"

namespace bitnet::host {
namespace {

// Escapes text for roff: no escapes or requests, and hyphens that can be searched and copied.
std::string plain(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_start = c == '\n';
  }
  return out;
}

std::string heading(std::string_view name, std::string_view version, int section = 1) {
  std::string title(name);
  for (char& c : title) c = upper_ascii(c);
  return fmt::format(".TH \"{}\" {} \"\" \"bitnet {}\" \"{}\"\n", title, section, version,
                     section == 1 ? "User Commands" : "File Formats");
}

std::string option_entry(const option& row) {
  const option_names names = names_of(row);
  std::string line;
  for (const auto* list : {&names.shorts, &names.longs})
    for (const std::string& name : *list)
      line += fmt::format("{}\\fB{}\\fR", line.empty() ? "" : ", ", plain(name));
  if (!row.metavar.empty()) line += fmt::format(" \\fI{}\\fR", plain(row.metavar));
  std::string text = plain(row.help);
  if (row.type != kind::flag && !row.initial.empty())
    text += fmt::format(" [{}]", plain(row.initial));
  return fmt::format(".TP\n{}\n{}\n", line, text);
}

// The entry of a config file's key: its values, its purpose, and its variable.
std::string key_entry(const option& row) {
  const bool is_flag = row.type == kind::flag;
  std::string line = fmt::format("\\fB{}\\fR: \\fI{}\\fR", plain(row.name),
                                 is_flag ? std::string("true|false") : plain(row.metavar));
  if (row.type == kind::list) line += " or a list of them";
  std::string text = plain(row.help);
  if (!row.initial.empty()) text += fmt::format(" [{}]", plain(row.initial));
  const std::string one_text =
      row.between == '\0' ? "" : fmt::format(", items separated by '{}'", row.between);
  return fmt::format(
      ".TP\n{}\n{}.\n.br\nVariable: {}{}{}\n", line, text, variables_of(row).front(), one_text,
      row.decides.empty() ? "" : fmt::format("; decides {}, see below", row.decides));
}

// Keeps the line breaks of a command's details, since some are lists.
std::string lines_of(std::string_view text) {
  return text.empty() ? std::string() : fmt::format(".SH DESCRIPTION\n.nf\n{}.fi\n", plain(text));
}

constexpr std::string_view see_also =
    ".SH SEE ALSO\n\\fBbitnet.yaml\\fR(5), \\fBbitnet\\-backends\\fR(7). The documentation of "
    "bitnet, "
    "docs/README.md of its source.\n";

constexpr std::string_view about_settings =
    "A config file is one YAML mapping, of at most 64 KiB and without anchors, aliases and tags. "
    "Its keys are the lasting options of \\fBbitnet\\fR(1), of whichever command: a command "
    "takes those that it has. An unknown key is a warning, a value of a wrong type an error.\n"
    ".PP\n"
    "Later ones win: the files in the order above, then variables, then flags. BITNET_CONFIG names "
    "one file in place of the first three. Numbers may end in "
    "k, m, g (thousands) or K, M, G (1024s).\n";
constexpr std::string_view about_code =
    ".SH WHICH CODE RUNS\n"
    "That, and which file is written, may not be decided by every file. Of root such keys are "
    "heard only on the command line, in a "
    "file of \\-\\-config and in the first two files; with raised privileges (setuid, file "
    "capabilities) only in these two.\n";

}  // namespace

std::string man_page_of_settings(std::string_view version) {
  std::string out = fmt::format(
      "{}.SH NAME\nbitnet.yaml \\- settings of bitnet\n.SH SYNOPSIS\n.nf\n"
      "/usr/share/bitnet/bitnet.yaml\n/etc/bitnet/bitnet.yaml\n"
      "$XDG_CONFIG_HOME/bitnet/bitnet.yaml (~/.config/bitnet/bitnet.yaml)\n"
      "the file of \\-\\-config\n.fi\n"
      ".SH DESCRIPTION\n{}",
      heading("bitnet.yaml", version, 5), about_settings);
  std::string_view group;
  for (const option& row : all_options()) {
    if (row.command_line_only) continue;
    if (row.group != group) out += fmt::format(".SH \"{} SETTINGS\"\n", plain(row.group));
    group = row.group;
    out += key_entry(row);
  }
  return fmt::format(
      "{}{}.SH EXAMPLES\n.nf\nctx\\-size: 4k\ntemp: 0.7\ndevice: cpu\n"
      "reverse\\-prompt: [\"User:\", \"###\"]\n.fi\n.SH SEE ALSO\n\\fBbitnet\\fR(1), "
      "\\fBbitnet\\-backends\\fR(7)\n",
      out, about_code);
}

std::string man_page_of_program(std::string_view version) {
  std::string out = fmt::format(
      "{}.SH NAME\nbitnet \\- runs ternary language models\n.SH SYNOPSIS\n.B "
      "bitnet\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n",
      heading("bitnet", version));
  for (const command& one : all_commands())
    out += fmt::format(".TP\n\\fBbitnet\\-{}\\fR(1)\n{}\n", one.name, plain(one.summary));
  return fmt::format("{}.SH EXAMPLES\n.nf\nbitnet run \\-p \"Once upon a time\"\n.fi\n{}", out,
                     see_also);
}

std::string man_page_of(const command& about, std::string_view version) {
  std::string out = heading(fmt::format("bitnet-{}", about.name), version) +
                    fmt::format(".SH NAME\nbitnet\\-{} \\- {}\n.SH SYNOPSIS\n.B bitnet {}\n{}\n",
                                about.name, plain(about.summary), about.name, plain(about.usage)) +
                    lines_of(about.details);
  std::string_view group;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    if (row.group != group) out += fmt::format(".SH \"{} OPTIONS\"\n", plain(row.group));
    group = row.group;
    out += option_entry(row);
  }
  const bool settable = has_settings(about);
  if (settable) out += fmt::format(".SH SETTINGS\n{}", plain(settings_note()));
  return fmt::format("{}.SH SEE ALSO\n\\fBbitnet\\fR(1){}\n", out,
                     settable ? ", \\fBbitnet.yaml\\fR(5)" : "");
}

}  // namespace bitnet::host
