#include "base/environment.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>

namespace bitnet::environment {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
  return value == nullptr ? std::string() : std::string(value);
}

// The prefix under which this library was installed: its own directory less BITNET_LIB_DIR.
std::filesystem::path prefix() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&backend_directory), &info) == 0 ||
      info.dli_fname == nullptr)
    return BITNET_INSTALL_PREFIX;
  std::error_code ignored;
  auto directory = std::filesystem::canonical(info.dli_fname, ignored).parent_path();
  if (ignored) return BITNET_INSTALL_PREFIX;
  std::filesystem::path suffix = BITNET_LIB_DIR;
  while (!suffix.empty()) {
    if (directory.filename() != suffix.filename()) return BITNET_INSTALL_PREFIX;
    directory = directory.parent_path();
    suffix = suffix.parent_path();
  }
  return directory;
}

std::string variable_part(std::string_view name) {
  std::string out;
  for (const char c : name)
    out += (c == '-' || c == '.') ? '_'
                                  : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string device() {
  return variable("BITNET_DEVICE");
}

bool privileged() {
  return getauxval(AT_SECURE) != 0;
}

std::filesystem::path backend_directory() {
  return prefix() / BITNET_BACKEND_DIR;
}

std::filesystem::path probe_helper() {
  return prefix() / BITNET_PROBE_HELPER;
}

std::filesystem::path probe_cache() {
  if (geteuid() == 0) return "/var/cache/bitnet/probe";
  if (privileged()) return {};
  const std::filesystem::path cache_home = variable("XDG_CACHE_HOME");
  if (cache_home.is_absolute()) return cache_home / "bitnet/probe";
  const std::filesystem::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache/bitnet/probe" : std::filesystem::path();
}

std::vector<std::string> probe_variables(const std::vector<std::string>& declared) {
  // What the dynamic linker and drivers need to act as they do in the process itself.
  std::vector<std::string> names = {"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR"};
  if (!privileged()) names.emplace_back("LD_LIBRARY_PATH");
  for (const std::string& name : declared)
    if (!name.starts_with("LD_") && !name.starts_with("GLIBC_") && !name.starts_with("MALLOC_"))
      names.push_back(name);
  std::vector<std::string> out;
  for (const std::string& name : names)
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here calls setenv
    if (const char* value = std::getenv(name.c_str()); value != nullptr)
      out.push_back(name + "=" + value);
  return out;
}

std::vector<std::filesystem::path> manifest_directories() {
  std::vector<std::filesystem::path> out;
  const auto add = [&out](std::filesystem::path p) {
    for (const auto& known : out)
      if (known == p) return;
    out.push_back(std::move(p));
  };
  add(prefix() / BITNET_MANIFEST_DIR);
  add("/usr/share/bitnet/backends.d");
  add("/usr/local/share/bitnet/backends.d");
  add("/run/bitnet/backends.d");
  add("/etc/bitnet/backends.d");
  if (privileged()) return out;
  // Relative paths would mean the current directory, which never names code to load.
  const std::filesystem::path data_home = variable("XDG_DATA_HOME");
  const std::filesystem::path home = variable("HOME");
  if (data_home.is_absolute())
    add(data_home / "bitnet/backends.d");
  else if (home.is_absolute())
    add(home / ".local/share/bitnet/backends.d");
  const std::string path = variable("BITNET_BACKEND_PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::filesystem::path item = path.substr(begin, end - begin);
    if (item.is_absolute()) add(item);
    begin = end + 1;
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> backend_params(std::string_view backend_name) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string start = "BITNET_" + variable_part(backend_name) + "_";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals <= start.size() || !line.starts_with(start))
      continue;
    std::string key(line.substr(start.size(), equals - start.size()));
    for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out.emplace_back(std::move(key), std::string(line.substr(equals + 1)));
  }
  return out;
}

}  // namespace bitnet::environment
