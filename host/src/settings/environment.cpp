#include "settings/environment.hpp"

#include <sys/auxv.h>
#include <unistd.h>

namespace bitnet::host {

environment environment::of_process() {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  const privilege rights = getauxval(AT_SECURE) != 0 ? privilege::raised
                           : geteuid() == 0          ? privilege::root
                                                     : privilege::none;
  return environment(std::move(variables), rights);
}

std::optional<std::string> environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<std::filesystem::path> environment::xdg(std::string_view name,
                                                      std::string_view below_home) const {
  // The XDG specification: relative paths are invalid and to be ignored.
  if (const auto set = get(name); set && set->starts_with('/')) return *set;
  if (const auto home = get("HOME")) return std::filesystem::path(*home) / below_home;
  return std::nullopt;
}

std::optional<std::filesystem::path> environment::config_home() const {
  return xdg("XDG_CONFIG_HOME", ".config");
}
std::optional<std::filesystem::path> environment::data_home() const {
  return xdg("XDG_DATA_HOME", ".local/share");
}
std::optional<std::filesystem::path> environment::state_home() const {
  return xdg("XDG_STATE_HOME", ".local/state");
}
std::optional<std::filesystem::path> environment::cache_home() const {
  return xdg("XDG_CACHE_HOME", ".cache");
}

}  // namespace bitnet::host
