#include "plugin/inspection/dependencies.hpp"

#include <fmt/core.h>

#include <elf.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/foreign.hpp"
#include "plugin/inspection/run_path.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {
namespace {

// Maximum number of libraries of one plugin; limits the time for a hostile chain of them.
constexpr std::size_t max_libraries = 1024;

// A library to search for, on behalf of `needed_by`.
struct request {
  std::string name, needed_by;
  library_search::folders before, after;  // see library_search::find()
};

// The folders to search for an object's libraries. `inherited`: DT_RPATH of the objects that need
// it, used if it has no DT_RUNPATH.
request request_of(const std::vector<std::string>& run_path, bool is_new_kind,
                   const std::string& origin, const library_search::folders& inherited) {
  request out;
  auto& own = is_new_kind ? out.after : out.before;
  for (const std::string& item : run_path)
    if (auto folder = run_path_folder(item, origin)) own.push_back(std::move(*folder));
  if (!is_new_kind) out.before.insert(out.before.end(), inherited.begin(), inherited.end());
  return out;
}

defect named(const std::string& name, defect d) {
  d.reason = fmt::format("needs {}, which {}", name, d.reason);
  return d;
}

// The needs of a library that the linker would map, or why it must not be mapped.
checked<std::vector<request>> needs_of(const std::filesystem::path& file, const request& by) {
  const auto opened = open_any(file);
  if (!opened) return std::unexpected(opened.error());
  const auto map = file_map::open(opened->fd.get(), opened->identity.size_bytes);
  if (!map) return reject(code::inspect_not_elf, "cannot be mapped into memory");
  const auto image = elf_image::open(map->bytes());
  if (!image) return std::unexpected(image.error());
  if (const auto tags = redirections(*image); !tags.empty())
    return reject(
        code::inspect_foreign,
        fmt::format("has {}, by which the linker would load libraries that were not checked",
                    join(tags, " and ")));
  const std::vector<std::string> run_path = run_path_of(*image);
  for (const std::string& item : run_path)
    if (const std::string fault = run_path_fault(item); !fault.empty())
      return reject(code::inspect_run_path,
                    fmt::format("has the run path '{}': {}", printable(item), fault));
  const request like = request_of(run_path, image->dynamic_value(DT_RUNPATH).has_value(),
                                  file.parent_path().string(), by.before);
  std::vector<request> out;
  for (const std::string_view name : image->dynamic_strings(DT_NEEDED)) {
    if (const std::string fault = name_fault(name); !fault.empty())
      return reject(code::inspect_foreign,
                    fmt::format("needs '{}', which {}", printable(name), fault));
    out.push_back(like);
    out.back().name = name;
    out.back().needed_by = by.name;
  }
  return out;
}

// The hash of a file that the linker would map, or why there is none.
checked<std::string> hash_of(const std::filesystem::path& path) {
  const auto file = open_trusted(path);
  if (!file) return std::unexpected(file.error());
  const auto map = file_map::open(file->fd.get(), file->identity.size_bytes);
  if (!map)
    return reject(code::trust_kind,
                  fmt::format("{} cannot be mapped", printable(path.string(), 200)));
  return sha256_of(map->bytes());
}

void compare_hashes(const std::vector<needed_library>& libraries,
                    const std::map<std::string, std::string>& hashes, findings& found) {
  constexpr const char* check = "hashes of dependencies";
  for (const auto& [name, wanted] : hashes) {
    const auto one = std::ranges::find(libraries, name, &needed_library::name);
    if (one == libraries.end()) {
      found.warning(check, code::manifest_field,
                    fmt::format("the manifest has a hash of {}, which is not needed here", name));
      continue;
    }
    auto files = one->variants;
    if (!one->file.empty()) files.push_back(one->file);
    bool fine = true;
    for (const auto& file : files) {
      const auto is = hash_of(file);
      if (is && *is == wanted) continue;
      fine = false;
      found.error(check, code::trust_hash,
                  fmt::format("needs {} with the SHA-256 {}, but {}", name, wanted,
                              is ? fmt::format("{} has {}", printable(file.string(), 200), *is)
                                 : is.error().reason),
                  "install the library that the manifest means, or correct `dependencies` in it");
    }
    if (fine) found.ok(check, name);
  }
}

}  // namespace

std::vector<needed_library> resolve_libraries(const inspection& plugin, const resolution& how) {
  library_search search;
  if (!search.is_known()) return {};
  request first = request_of(plugin.run_path, plugin.run_path_is_new, how.origin, {});
  std::vector<request> todo;
  for (const std::string& name : plugin.needed) {
    first.name = name;
    todo.push_back(first);
  }
  std::set<std::string> seen;
  std::vector<needed_library> out;
  for (std::size_t i = 0; i < todo.size() && i < max_libraries; ++i) {
    const request one = todo[i];
    if (!seen.insert(one.name).second) continue;
    needed_library& found = out.emplace_back(one.name, one.needed_by);
    if (const std::string fault = name_fault(one.name); !fault.empty()) {
      found.fault = defect{code::inspect_foreign, BITNET_REJECTED,
                           fmt::format("needs '{}', which {}", printable(one.name), fault), ""};
      continue;
    }
    // A loaded library has everything that it needs, and no other file can replace it.
    if (const auto file = loaded_file(one.name)) {
      found.file = *file;
      found.loaded = true;
      continue;
    }
    auto answer = search.find(one.name, one.before, one.after);
    found.file = std::move(answer.file);
    found.variants = std::move(answer.variants);
    if (answer.fault) found.fault = named(one.name, std::move(*answer.fault));
    if (found.file.empty() || (found.fault && !how.follows_untrusted)) continue;
    auto needs = needs_of(found.file, one);
    if (needs)
      std::ranges::move(*needs, std::back_inserter(todo));
    else if (!found.fault)
      found.fault = named(one.name, std::move(needs.error()));
  }
  return out;
}

checked<void> check_libraries(const std::vector<needed_library>& libraries) {
  for (const needed_library& one : libraries)
    if (one.fault) return std::unexpected(*one.fault);
  return {};
}

void examine_dependencies(const std::vector<needed_library>& libraries,
                          const std::map<std::string, std::string>& packages,
                          const std::map<std::string, std::string>& hashes, findings& found) {
  constexpr const char* check = "dependencies";
  std::vector<std::string> missing;
  std::vector<std::string> install;
  bool trusted = true;
  for (const needed_library& one : libraries) {
    if (one.fault) {
      trusted = false;
      found.error(check, *one.fault);
    } else if (one.file.empty() && !one.loaded) {
      missing.push_back(
          one.needed_by.empty() ? one.name : fmt::format("{} (for {})", one.name, one.needed_by));
      if (const auto known = packages.find(one.name);
          known != packages.end() && std::ranges::find(install, known->second) == install.end())
        install.push_back(known->second);
    }
  }
  if (!missing.empty())
    found.error(check, {code::inspect_dependency, BITNET_UNAVAILABLE,
                        fmt::format("needs libraries that this machine does not have: {}",
                                    join(missing, ", ")),
                        install.empty() ? "" : fmt::format("install {}", join(install, " "))});
  else if (trusted)
    found.ok(check, fmt::format("{} {}", libraries.size(),
                                libraries.size() == 1 ? "library, here" : "libraries, all here"));
  compare_hashes(libraries, hashes, found);
}

}  // namespace bitnet::plugin
