#include "base/environment.hpp"

#include <fmt/core.h>

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>

#include "base/wording.hpp"
#include "tables/backend_variables.hpp"
#include "text/ascii.hpp"

namespace bitnet::environment {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no call of setenv here
  return value == nullptr ? std::string() : std::string(value);
}

result<bool> truth(const char* name) {
  std::string word = variable(name);
  for (char& c : word) c = lower_ascii(c);
  for (const char* yes : {"1", "true", "yes", "on"})
    if (word == yes) return true;
  for (const char* no : {"", "0", "false", "no", "off"})
    if (word == no) return false;
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("{} is set to something else than 1 or 0; write one of them", name));
}

// Splits at separators, trims blanks, drops empty parts.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const std::size_t first = item.find_first_not_of(' ');
    if (first != std::string::npos)
      out.push_back(item.substr(first, item.find_last_not_of(' ') + 1 - first));
    begin = end + 1;
  }
  return out;
}

// The directory of this library; "" if the system does not report it.
std::filesystem::path own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&backend_directories), &info) == 0 ||
      info.dli_fname == nullptr)
    return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path();
}

// The place of a folder of the installation, by its name in the build.
std::filesystem::path own(const std::filesystem::path& folder) {
  return place_of(folder, own_directory(), {BITNET_INSTALL_PREFIX, BITNET_LIB_DIR});
}

bool privileged() {
  return getauxval(AT_SECURE) != 0 || getuid() != geteuid() || getgid() != getegid();
}

}  // namespace

std::optional<std::filesystem::path> without_end(std::filesystem::path directory,
                                                 std::filesystem::path end) {
  if (end.is_absolute()) return std::nullopt;
  while (!end.empty()) {
    if (end.has_filename()) {  // false behind a trailing '/'
      if (directory.filename() != end.filename()) return std::nullopt;
      directory = directory.parent_path();
    }
    end = end.parent_path();
  }
  return directory;
}

std::filesystem::path place_of(const std::filesystem::path& folder,
                               const std::filesystem::path& own_directory, const installation& of) {
  const std::filesystem::path as_built = of.prefix / folder;
  std::error_code ignored;
  if (own_directory.empty() ||
      own_directory == std::filesystem::weakly_canonical(of.prefix / of.library_directory, ignored))
    return as_built;
  const auto root = without_end(own_directory, of.library_directory.relative_path());
  if (!root) return as_built;
  const std::filesystem::path moved = *root / folder.relative_path();
  return folder.is_relative() || std::filesystem::exists(moved, ignored) ? moved : as_built;
}

uint64_t step_timeout_ns() {
  constexpr uint64_t usual_s = 600, ns_per_s = 1'000'000'000;
  const std::string text = variable("BITNET_STEP_TIMEOUT");
  uint64_t seconds = usual_s;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, seconds);
      read.ec != std::errc() || read.ptr != end)
    seconds = usual_s;
  constexpr uint64_t forever = std::numeric_limits<uint64_t>::max();
  return seconds == 0 || seconds > forever / ns_per_s ? forever : seconds * ns_per_s;
}

std::string device() {
  return variable("BITNET_DEVICE");
}

std::string fake_gpus() {
  return variable("BITNET_GPU_FAKE");
}

result<bool> strict_mode() {
  return truth("BITNET_STRICT_MODE");
}

result<bool> strict_no_fake_gpu() {
  return truth("BITNET_STRICT_NO_FAKE_GPU");
}

std::vector<std::string> only_backends() {
  return split(variable("BITNET_BACKENDS"), ',');
}

std::vector<std::string> disabled_backends() {
  return split(variable("BITNET_BACKENDS_DISABLE"), ',');
}

std::string user_places_rejected(bool wanted) {
  return user_places_rejected(wanted, privileged(), geteuid());
}

std::string user_places_rejected(bool wanted, bool raised, uint32_t effective_uid) {
  if (raised) return "raised privileges do not listen to the user's folders";
  if (effective_uid == 0 && !wanted)
    return "root does not listen to the user's folders without " + say(word::user_backends);
  return "";
}

std::vector<std::filesystem::path> backend_directories(const std::filesystem::path& manifest) {
  std::vector<std::filesystem::path> out;
  const auto add = [&out](std::filesystem::path one) {
    if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  };
  if (const auto root = without_end(manifest.parent_path(), BITNET_MANIFEST_DIR)) {
    add(*root / BITNET_BACKEND_DIR);
    // "bitnet/backends-0" below other folders that CMake installs libraries into.
    const auto inner = std::filesystem::path(BITNET_BACKEND_DIR).lexically_relative(BITNET_LIB_DIR);
    if (!inner.empty() && *inner.begin() != "..")
      for (const std::filesystem::path folder : {"lib", "lib64", "lib/" BITNET_ARCHITECTURE})
        if (folder.has_filename()) add(*root / folder / inner);
  }
  add(own(BITNET_BACKEND_DIR));
  return out;
}

std::vector<std::filesystem::path> system_manifest_directories() {
  std::vector<std::filesystem::path> out = {"/usr/share/bitnet/backends.d",
                                            "/usr/local/share/bitnet/backends.d",
                                            "/run/bitnet/backends.d", "/etc/bitnet/backends.d"};
  const std::filesystem::path first = own(BITNET_MANIFEST_DIR);
  if (std::ranges::find(out, first) == out.end()) out.insert(out.begin(), first);
  return out;
}

std::filesystem::path probe_helper() {
  return own(BITNET_PROBE_HELPER);
}

bool caches_rejected() {
  return privileged();
}

std::filesystem::path probe_cache() {
  if (caches_rejected()) return {};
  if (geteuid() == 0) return "/var/cache/bitnet/probe";
  const std::filesystem::path cache_home = variable("XDG_CACHE_HOME");
  if (cache_home.is_absolute()) return cache_home / "bitnet/probe";
  const std::filesystem::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache/bitnet/probe" : std::filesystem::path();
}

std::filesystem::path receipt_keys() {
  if (privileged()) return {};
  const std::filesystem::path data_home = variable("XDG_DATA_HOME");
  if (data_home.is_absolute()) return data_home / "bitnet";
  const std::filesystem::path home = variable("HOME");
  return home.is_absolute() ? home / ".local/share/bitnet" : std::filesystem::path();
}

std::filesystem::path temporary_directory() {
  return temporary_directory(privileged());
}

std::filesystem::path temporary_directory(bool raised) {
  const std::filesystem::path named = variable("TMPDIR");
  return named.is_absolute() && !raised ? named : "/tmp";
}

std::filesystem::path backend_cache(std::string_view name) {
  const std::filesystem::path probes = probe_cache();
  return probes.empty() ? probes : probes.parent_path() / "backends" / name;
}

std::vector<std::string> declared_variables(const std::vector<std::string>& declared) {
  std::vector<std::string> out;
  for (const std::string& name : declared) {
    if (name.starts_with("LD_") || name.starts_with("GLIBC_") || name.starts_with("MALLOC_"))
      continue;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no call of setenv here
    if (const char* value = std::getenv(name.c_str()); value != nullptr)
      out.push_back(name + "=" + value);
  }
  return out;
}

std::vector<std::string> probe_variables(const std::vector<std::string>& declared) {
  // Variables that the dynamic linker and drivers need to behave as in the process itself.
  std::vector<std::string> out = declared_variables({"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR"});
  const std::string libraries = privileged() ? "" : variable("LD_LIBRARY_PATH");
  if (!libraries.empty()) out.push_back("LD_LIBRARY_PATH=" + libraries);
  std::ranges::copy(declared_variables(declared), std::back_inserter(out));
  return out;
}

std::filesystem::path declared_folder(const std::string& name, const std::filesystem::path& usual) {
  if (privileged()) return usual;
  const auto named = std::filesystem::path(variable(name.c_str())).lexically_normal();
  return named.is_absolute() && named.has_relative_path() ? named : usual;
}

std::vector<user_directory> user_manifest_directories() {
  std::vector<user_directory> out;
  // A relative path would mean the current directory, and no code is loaded from there.
  const std::filesystem::path data_home = variable("XDG_DATA_HOME");
  const std::filesystem::path home = variable("HOME");
  if (data_home.is_absolute())
    out.push_back({data_home / "bitnet/backends.d", "XDG_DATA_HOME"});
  else if (home.is_absolute())
    out.push_back({home / ".local/share/bitnet/backends.d", "HOME"});
  for (const std::filesystem::path item : split(variable("BITNET_BACKEND_PATH"), ':'))
    if (item.is_absolute()) out.push_back({item, "BITNET_BACKEND_PATH"});
  return out;
}

std::map<std::string, std::string> all_variables() {
  std::map<std::string, std::string> out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const auto equals = std::min(text.find('='), text.size());
    out.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> backend_params(std::string_view backend_name) {
  std::vector<std::pair<std::string, std::string>> out;
  if (privileged()) return out;  // a variable may name a folder to write to
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    if (auto key = backend_setting(backend_name, line.substr(0, equals)))
      out.emplace_back(*std::move(key), std::string(line.substr(equals + 1)));
  }
  return out;
}

}  // namespace bitnet::environment
