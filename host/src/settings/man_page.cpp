#include "settings/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "settings/help.hpp"
#include "settings/option_names.hpp"

namespace bitnet::host {
namespace {

// Text as roff shows it: no escapes, no requests, hyphens that can be searched and copied.
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

std::string heading(std::string_view name, std::string_view version) {
  std::string title(name);
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH \"{}\" 1 \"\" \"bitnet {}\" \"User Commands\"\n", title, version);
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

// The details of a command keep their lines: some are lists.
std::string lines_of(std::string_view text) {
  return text.empty() ? std::string() : fmt::format(".SH DESCRIPTION\n.nf\n{}.fi\n", plain(text));
}

constexpr std::string_view see_also =
    ".SH SEE ALSO\nThe documentation of bitnet, docs/README.md of its source.\n";

}  // namespace

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
  if (has_settings(about)) out += fmt::format(".SH SETTINGS\n{}", plain(settings_note()));
  return fmt::format("{}.SH SEE ALSO\n\\fBbitnet\\fR(1)\n", out);
}

}  // namespace bitnet::host
