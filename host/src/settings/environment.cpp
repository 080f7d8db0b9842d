#include "settings/environment.hpp"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tables/backend_variables.hpp"

namespace bitnet::host {

environment environment::of_process() {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  const bool differs = getauxval(AT_SECURE) != 0 || getuid() != geteuid() || getgid() != getegid();
  const privilege rights = differs          ? privilege::raised
                           : geteuid() == 0 ? privilege::root
                                            : privilege::none;
  return environment(std::move(variables), rights);
}

std::optional<std::string> environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::vector<std::pair<std::string, std::string>> environment::backend_settings(
    std::string_view backend) const {
  std::vector<std::pair<std::string, std::string>> out;
  if (rights_ == privilege::raised) return out;
  for (const auto& [name, setting] : variables_)
    if (auto key = backend_setting(backend, name)) out.emplace_back(*std::move(key), setting);
  return out;
}

std::optional<std::filesystem::path> environment::xdg(std::string_view name,
                                                      std::string_view below_home) const {
  // The XDG specification says that relative paths are invalid and must be ignored.
  if (const auto set = get(name); set && set->starts_with('/')) return *set;
  if (const auto home = get("HOME")) return std::filesystem::path(*home) / below_home;
  return std::nullopt;
}

namespace {

// Whether root owns the folder, or its nearest existing parent.
bool is_of_root(std::filesystem::path folder) {
  struct stat s{};
  while (::stat(folder.c_str(), &s) != 0) {
    if (errno != ENOENT || !folder.has_relative_path()) return false;
    folder = folder.parent_path();
  }
  return s.st_uid == 0;
}

}  // namespace

std::optional<std::filesystem::path> environment::to_write_in(
    std::optional<std::filesystem::path> folder) const {
  if (rights_ == privilege::raised) return std::nullopt;
  if (folder && rights_ == privilege::root && !is_of_root(*folder)) return std::nullopt;
  return folder;
}

std::optional<std::filesystem::path> environment::config_home() const {
  return xdg("XDG_CONFIG_HOME", ".config");
}
std::optional<std::filesystem::path> environment::data_home() const {
  return xdg("XDG_DATA_HOME", ".local/share");
}
std::optional<std::filesystem::path> environment::state_home() const {
  return to_write_in(xdg("XDG_STATE_HOME", ".local/state"));
}
std::optional<std::filesystem::path> environment::cache_home() const {
  return to_write_in(xdg("XDG_CACHE_HOME", ".cache"));
}

}  // namespace bitnet::host
