#include "settings/settings.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "basic/text_input.hpp"
#include "settings/config_file.hpp"
#include "text/items.hpp"

namespace bitnet::host {
namespace {

// Splits a variable with a list of folders as paths are split. A list of texts stays one item,
// since any character may be part of a text.
result<value> parse_variable(const option& row, const std::string& given) {
  if (row.type != kind::list || row.between == '\0') return parse_value(row, given);
  std::vector<std::string> parts;
  for (const std::string_view item : bitnet::text::items(given, row.between))
    if (!item.empty()) parts.emplace_back(item);
  return parts;
}

// For places that only root can write to: trusted with any privilege.
constexpr auto never_deaf = static_cast<privilege>(3);

// Whether the value of a check turns it on.
bool asks(const value& content) {
  if (const auto* const on = std::get_if<bool>(&content)) return *on;
  const auto* const text = std::get_if<std::string>(&content);
  return text == nullptr || !text->empty();
}

const std::vector<std::string> no_list;
const std::string no_text;

}  // namespace

result<settings> settings::merge(const command& about, const arguments& given,
                                 const environment& variables, std::vector<std::string>& notes) {
  settings merged;
  merged.rights_ = variables.rights();
  if (auto done = merged.add_defaults(about); !done) return std::unexpected(done.error());
  if (auto done = merged.add_config(given, variables, notes); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = merged.add_environment(variables, notes); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = merged.add_flags(given, notes); !done) return std::unexpected(done.error());
  if (auto done = merged.check_unheard(); !done) return std::unexpected(done.error());
  return merged;
}

result<void> settings::add_defaults(const command& about) {
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    setting& one = settings_[row.name];
    if (row.initial.empty()) continue;
    auto content = parse_value(row, row.initial);
    if (!content) return std::unexpected(content.error());
    one.content = std::move(*content);
  }
  return {};
}

result<void> settings::add_config(const arguments& given, const environment& variables,
                                  std::vector<std::string>& notes) {
  const auto only = variables.get("BITNET_CONFIG");
  if (!only) {
    std::vector<std::string> usual = {"/usr/share/bitnet/bitnet.yaml", "/etc/bitnet/bitnet.yaml"};
    if (const auto home = variables.config_home()) {
      usual.push_back((*home / "bitnet/bitnet.yaml").string());
    }
    for (const std::string& file : usual) {
      const bool users = &file != &usual[0] && &file != &usual[1];
      const privilege deaf_from = users ? privilege::root : never_deaf;
      if (auto done = add_config_file(file, false, deaf_from, notes); !done) return done;
    }
  }
  if (only) {  // replaces the usual files
    if (auto done = add_config_file(*only, true, privilege::root, notes); !done) return done;
  }
  const option* const config = find_option("config");
  for (const flag_use& use : given.flags) {
    if (use.row != config) continue;
    if (auto done = add_config_file(use.text, true, privilege::raised, notes); !done) return done;
  }
  return {};
}

result<void> settings::add_config_file(const std::string& file, bool required, privilege deaf_from,
                                       std::vector<std::string>& notes) {
  auto text =
      required ? read_text_file(file, longest_config) : read_usual_text_file(file, longest_config);
  if (!text && text.error().number == EFBIG) {
    return fail(exit_code::usage,
                fmt::format("{}:1: larger than {} KiB", file, longest_config / 1024));
  }
  if (!text) {
    if (required || text.error().number == EILSEQ)  // EILSEQ: as broken as wrong YAML
      return fail(exit_code::usage, fmt::format("config file {}", text.error().message));
    if (text.error().number != ENOENT && text.error().number != ENOTDIR) {
      notes.push_back(fmt::format("config file {}", text.error().message));
    }
    return {};
  }
  auto contents = parse_config(*text, file);
  if (!contents) return std::unexpected(contents.error());
  notes.insert(notes.end(), contents->warnings.begin(), contents->warnings.end());
  for (config_setting& one : contents->settings) {
    const std::string origin = fmt::format("{}:{}", file, one.line);
    if (listens(*one.row, one.content, deaf_from, origin, notes))
      put(*one.row, std::move(one.content), level::config, origin);
  }
  return {};
}

result<void> settings::add_environment(const environment& variables,
                                       std::vector<std::string>& notes) {
  std::string theirs;
  std::string ours;
  for (const option& row : all_options()) {
    if (row.command_line_only || !settings_.contains(row.name)) continue;
    const std::vector<std::string> names = variables_of(row);
    std::optional<std::string> text;
    std::string name;
    for (const std::string& one : names) {
      if (text) break;
      name = one;
      text = variables.get(name);
    }
    if (!text && !row.llama_variable.empty()) {
      text = variables.get(row.llama_variable);
      if (text) {
        theirs += fmt::format("{}{}", theirs.empty() ? "" : ", ", row.llama_variable);
        ours += fmt::format("{}{}", ours.empty() ? "" : ", ", names.front());
        name = row.llama_variable;
      }
    }
    if (!text) continue;
    auto content = parse_variable(row, *text);
    if (!content)
      return fail(exit_code::usage, fmt::format("{} {}", name, content.error().message));
    if (listens(row, *content, privilege::root, name, notes))
      put(row, std::move(*content), level::environment, name);
  }
  if (!theirs.empty()) {
    notes.push_back(fmt::format("used {}; here the name is {}", theirs, ours));
  }
  return {};
}

result<void> settings::add_flags(const arguments& given, std::vector<std::string>& notes) {
  for (const flag_use& use : given.flags) {
    const std::string flag = "--" + std::string(use.row->name);
    auto content = parse_value(*use.row, use.text);
    if (!content)
      return fail(exit_code::usage, fmt::format("{} {}", flag, content.error().message));
    if (!listens(*use.row, *content, privilege::raised, flag, notes)) continue;
    setting& one = settings_[use.row->name];
    auto* items = std::get_if<std::vector<std::string>>(&one.content);
    if (items != nullptr && one.from == level::flag) {
      items->push_back(use.text);
    } else if (auto* const text = std::get_if<std::string>(&one.content);
               text != nullptr && one.from == level::flag) {
      one.before.push_back(std::exchange(*text, std::get<std::string>(*std::move(content))));
    } else {
      put(*use.row, std::move(*content), level::flag, flag);
    }
  }
  return {};
}

bool settings::listens(const option& row, const value& content, privilege deaf_from,
                       const std::string& origin, std::vector<std::string>& notes) {
  if (row.decides.empty() || rights_ < deaf_from) return true;
  if (!settings_.contains(row.name)) return false;
  std::string note = fmt::format(
      "'{}' of {} is ignored, as {} decide {}; {}", row.name, origin,
      rights_ == privilege::root ? "root does not let the user's places"
                                 : "raised privileges do not let the user",
      row.decides,
      rights_ == privilege::root ? "say it on the command line or in /etc/bitnet/bitnet.yaml"
                                 : "say it in /etc/bitnet/bitnet.yaml");
  if (row.is_a_check && asks(content)) unheard_.insert_or_assign(row.name, note);
  notes.push_back(std::move(note));
  return false;
}

result<void> settings::check_unheard() const {
  for (const auto& [name, note] : unheard_)
    if (!given(name)) return fail(exit_code::usage, note);
  return {};
}

// Config files have settings of all commands; those of other commands are ignored.
void settings::put(const option& row, value content, level from, std::string origin) {
  const auto found = settings_.find(row.name);
  if (found != settings_.end()) found->second = {std::move(content), from, std::move(origin)};
}

const settings::setting& settings::at(std::string_view name) const {
  const auto found = settings_.find(name);
  if (found == settings_.end()) {
    throw std::logic_error(fmt::format("this command has no option {}", name));
  }
  return found->second;
}

bool settings::flag(std::string_view name) const {
  const bool* yes = std::get_if<bool>(&at(name).content);
  return yes != nullptr && *yes;
}

int64_t settings::integer(std::string_view name) const {
  return std::get<int64_t>(at(name).content);
}

double settings::real(std::string_view name) const {
  return std::get<double>(at(name).content);
}

const std::string& settings::text(std::string_view name) const {
  const auto* text = std::get_if<std::string>(&at(name).content);
  return text == nullptr ? no_text : *text;
}

const std::vector<std::string>& settings::list(std::string_view name) const {
  const auto* items = std::get_if<std::vector<std::string>>(&at(name).content);
  return items == nullptr ? no_list : *items;
}

std::vector<std::string> settings::each_text(std::string_view name) const {
  std::vector<std::string> out = at(name).before;
  out.push_back(text(name));
  return out;
}

bool settings::given(std::string_view name) const {
  return at(name).from != level::built_in;
}

bool settings::overrides(std::string_view name, std::string_view other) const {
  return at(name).from >= at(other).from;
}

bool settings::flagged(std::string_view name) const {
  return at(name).from == level::flag;
}

const std::string& settings::origin(std::string_view name) const {
  return at(name).origin;
}

result<void> settings::change(std::string_view name, std::string_view text, std::string origin) {
  const option* row = find_option(name);
  if (row == nullptr || !settings_.contains(row->name)) {
    return fail(exit_code::usage, fmt::format("there is no setting '{}'", name));
  }
  auto content = parse_value(*row, text);
  if (!content) return fail(exit_code::usage, fmt::format("{} {}", name, content.error().message));
  settings_[row->name] = {std::move(*content), level::flag, std::move(origin)};
  return {};
}

}  // namespace bitnet::host
