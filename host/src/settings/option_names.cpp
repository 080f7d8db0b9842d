#include "settings/option_names.hpp"

#include "text/items.hpp"

namespace bitnet::host {

std::vector<std::string> split(std::string_view whole, char between) {
  std::vector<std::string> out;
  for (const std::string_view item : text::items(whole, between))
    if (!item.empty()) out.emplace_back(item);
  return out;
}

std::vector<std::string> long_names_of(const option& row) {
  std::vector<std::string> out = {std::string(row.name)};
  for (const std::string& alias : split(row.aliases, ' '))
    if (alias.starts_with("--")) out.push_back(alias.substr(2));
  return out;
}

option_names names_of(const option& row) {
  option_names out;
  for (const std::string& alias : split(row.aliases, ' '))
    if (!alias.starts_with("--")) out.shorts.push_back(alias);
  for (const std::string& name : long_names_of(row)) out.longs.push_back("--" + name);
  if (row.type == kind::flag && row.initial == "true")
    out.longs.push_back("--no-" + std::string(row.name));
  return out;
}

bool takes_path(const option& row) {
  return row.metavar.starts_with("FILE") || row.metavar.starts_with("DIR");
}

}  // namespace bitnet::host
