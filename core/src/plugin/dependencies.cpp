#include "plugin/dependencies.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>

#include "plugin/mapped_files.hpp"
#include "plugin/run_path.hpp"
#include "plugin/system_file.hpp"
#include "plugin/text.hpp"

namespace bitnet::plugin {
namespace {

constexpr int max_include_depth = 4;
// Libraries that one plugin may bring; keeps a hostile chain of them from costing time.
constexpr std::size_t max_libraries = 1024;

void read_configuration(const std::filesystem::path& file, int depth,
                        std::vector<std::filesystem::path>& out) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const linker_line& line : parse_linker_lines(text)) {
    if (!line.includes) {
      out.emplace_back(line.text);
      continue;
    }
    if (depth == max_include_depth) continue;
    const std::string absolute = (file.parent_path() / line.text).string();
    glob_t matches{};
    if (glob(absolute.c_str(), 0, nullptr, &matches) == 0)
      for (std::size_t i = 0; i < matches.gl_pathc; ++i)
        read_configuration(matches.gl_pathv[i], depth + 1, out);
    globfree(&matches);
  }
}

// The linker's search path for this program; empty if it does not say.
std::vector<std::filesystem::path> search_path() {
  std::vector<std::filesystem::path> out;
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (self != nullptr && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    // The list follows the header in one block whose size only the linker knows.
    const std::unique_ptr<std::byte[]> block(new std::byte[size.dls_size]());
    auto* info = reinterpret_cast<Dl_serinfo*>(block.get());
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0 && dlinfo(self, RTLD_DI_SERINFO, info) == 0) {
      const Dl_serpath* paths = &info->dls_serpath[0];
      for (unsigned i = 0; i < info->dls_cnt; ++i) out.emplace_back(paths[i].dls_name);
    }
  }
  if (self != nullptr) dlclose(self);
  return out;
}

// Where a library lies that this process has loaded; "" if it has not.
std::filesystem::path loaded_file(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  const link_map* map = nullptr;
  std::filesystem::path out;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name != nullptr)
    out = map->l_name;
  dlclose(handle);
  return out;
}

// The absolute folders of a run path. $ORIGIN is the folder of a library; a plugin, which is loaded
// through a descriptor, has none.
std::vector<std::filesystem::path> places_of(const std::vector<std::string>& run_path,
                                             const std::string& origin = "") {
  std::vector<std::filesystem::path> out;
  for (std::string item : run_path) {
    for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"})
      if (const auto at = item.find(word); at != std::string::npos && !origin.empty())
        item.replace(at, word.size(), origin);
    if (item.starts_with('/')) out.emplace_back(item);
  }
  return out;
}

// A library that is still to be looked for, on behalf of `needed_by`.
struct search {
  std::string name, needed_by;
  std::vector<std::filesystem::path> run_path;
};

// A loaded object, by the name that the linker found it under.
struct loaded_object {
  std::string path;
  uint64_t begin;  // of its first segment
};

std::vector<loaded_object> loaded_objects() {
  std::vector<loaded_object> out;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
      static_cast<std::vector<loaded_object>*>(to)->push_back(
          {info->dlpi_name, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr});
      break;
    }
    return 0;
  };
  dl_iterate_phdr(add, &out);
  return out;
}

}  // namespace

std::vector<std::string> stale_libraries(const inspection& plugin) {
  std::vector<std::string> out;
  for (const loaded_object& o : loaded_objects()) {
    const std::string name = std::filesystem::path(o.path).filename().string();
    if (std::ranges::find(plugin.needed, name) == plugin.needed.end()) continue;
    const file_descriptor now(::open(o.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (now.get() < 0 || identity_when_mapped(now.get()) != mapped_at(o.begin))
      out.push_back(o.path);
  }
  return out;
}

std::vector<linker_line> parse_linker_lines(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  constexpr std::string_view include = "include";
  std::vector<linker_line> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    line = line.substr(0, line.find_last_not_of(blanks) + 1);
    // The system reads a path up to its first zero byte, which would be another path.
    if (line.find('\0') != std::string_view::npos) continue;
    if (line.starts_with('/')) out.push_back({false, std::string(line)});
    if (!line.starts_with(include)) continue;
    line.remove_prefix(include.size());
    const std::size_t pattern = line.find_first_not_of(blanks);
    if (pattern == 0 || pattern == std::string_view::npos) continue;
    out.push_back({true, std::string(line.substr(pattern))});
  }
  return out;
}

std::vector<std::filesystem::path> linker_directories(const std::filesystem::path& configuration) {
  std::vector<std::filesystem::path> out;
  read_configuration(configuration, 0, out);
  return out;
}

std::vector<needed_library> resolve_libraries(const inspection& plugin) {
  std::vector<std::filesystem::path> usual = search_path();
  if (usual.empty()) return {};
  std::ranges::copy(linker_directories("/etc/ld.so.conf"), std::back_inserter(usual));

  std::vector<search> todo;
  todo.reserve(plugin.needed.size());
  for (const std::string& name : plugin.needed)
    todo.push_back({name, "", places_of(plugin.run_path)});
  std::set<std::string> seen;
  std::vector<needed_library> out;
  for (std::size_t i = 0; i < todo.size() && i < max_libraries; ++i) {
    const search one = todo[i];
    if (!seen.insert(one.name).second) continue;
    needed_library& found = out.emplace_back(one.name, one.needed_by, loaded_file(one.name));
    // What is loaded has all that it needs.
    if (!found.file.empty()) continue;
    std::vector<std::filesystem::path> places = one.run_path;
    std::ranges::copy(usual, std::back_inserter(places));
    if (one.name.find('/') != std::string::npos) places = {""};
    for (const std::filesystem::path& place : places) {
      const auto library = system_file::open(place / one.name);
      if (!library) continue;
      found.file = place / one.name;
      const auto theirs = places_of(run_path_of(library->image()), place.string());
      for (const std::string_view name : library->image().dynamic_strings(DT_NEEDED))
        todo.push_back({printable(name), one.name, theirs});
      break;
    }
  }
  return out;
}

void examine_dependencies(const std::vector<needed_library>& libraries,
                          const std::map<std::string, std::string>& packages, findings& found) {
  std::vector<std::string> missing;
  std::vector<std::string> install;
  for (const needed_library& one : libraries) {
    if (!one.file.empty()) continue;
    missing.push_back(one.needed_by.empty() ? one.name : one.name + " (for " + one.needed_by + ")");
    if (const auto known = packages.find(one.name);
        known != packages.end() && std::ranges::find(install, known->second) == install.end())
      install.push_back(known->second);
  }
  if (missing.empty())
    return found.ok("dependencies",
                    std::to_string(libraries.size()) +
                        (libraries.size() == 1 ? " library, here" : " libraries, all here"));
  found.error("dependencies",
              {code::inspect_dependency, BITNET_UNAVAILABLE,
               "needs libraries that this machine does not have: " + join(missing, ", "),
               install.empty() ? "" : "install " + join(install, " ")});
}

}  // namespace bitnet::plugin
