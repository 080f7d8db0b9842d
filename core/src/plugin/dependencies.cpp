#include "plugin/dependencies.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <system_error>

#include "plugin/mapped_files.hpp"

namespace bitnet::plugin {
namespace {

constexpr int max_include_depth = 4;

void read_configuration(const std::filesystem::path& file, int depth,
                        std::vector<std::filesystem::path>& out) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    constexpr std::string_view include = "include";
    if (!line.starts_with(include)) {
      if (line.starts_with('/')) out.emplace_back(line);
      continue;
    }
    const std::size_t pattern = line.find_first_not_of(" \t", include.size());
    if (pattern == std::string::npos || depth == max_include_depth) continue;
    const std::string absolute = (file.parent_path() / line.substr(pattern)).string();
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

bool is_loaded(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

std::filesystem::path expand(std::string directory, const std::filesystem::path& origin) {
  for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"})
    if (const auto at = directory.find(word); at != std::string::npos)
      directory.replace(at, word.size(), origin.string());
  return directory;
}

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

std::vector<std::filesystem::path> linker_directories(const std::filesystem::path& configuration) {
  std::vector<std::filesystem::path> out;
  read_configuration(configuration, 0, out);
  return out;
}

std::vector<std::string> missing_libraries(const inspection& plugin,
                                           const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> places = search_path();
  if (places.empty()) return {};
  for (const std::string& item : plugin.run_path) places.push_back(expand(item, directory));
  std::ranges::copy(linker_directories("/etc/ld.so.conf"), std::back_inserter(places));

  const auto is_present = [&places](const std::string& name) {
    std::error_code ignored;
    if (name.find('/') != std::string::npos) return std::filesystem::exists(name, ignored);
    return is_loaded(name) || std::ranges::any_of(places, [&](const std::filesystem::path& place) {
             return std::filesystem::exists(place / name, ignored);
           });
  };
  std::vector<std::string> out;
  for (const std::string& name : plugin.needed)
    if (!is_present(name)) out.push_back(name);
  return out;
}

}  // namespace bitnet::plugin
