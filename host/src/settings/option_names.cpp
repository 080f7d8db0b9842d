#include "settings/option_names.hpp"

#include <algorithm>

namespace bitnet::host {

option_names names_of(const option& row) {
  option_names out;
  out.longs.push_back("--" + std::string(row.name));
  std::string_view aliases = row.aliases;
  while (!aliases.empty()) {
    const std::size_t end = std::min(aliases.find(' '), aliases.size());
    const std::string_view name = aliases.substr(0, end);
    (name.starts_with("--") ? out.longs : out.shorts).emplace_back(name);
    aliases.remove_prefix(std::min(end + 1, aliases.size()));
  }
  if (row.type == kind::flag && row.initial == "true")
    out.longs.push_back("--no-" + std::string(row.name));
  return out;
}

std::vector<std::string> split_choices(std::string_view choices) {
  std::vector<std::string> out;
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find('|'), choices.size());
    out.emplace_back(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return out;
}

bool takes_path(const option& row) {
  return row.metavar.starts_with("FILE") || row.metavar.starts_with("DIR");
}

}  // namespace bitnet::host
