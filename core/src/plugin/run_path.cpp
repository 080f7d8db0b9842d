#include "plugin/run_path.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "plugin/text.hpp"
#include "plugin/trust.hpp"

namespace bitnet::plugin {
namespace {

constexpr const char* subject = "run path";

// What is not there can be made by whoever may write where it would lie, also in a sticky folder.
checked<void> trust_place(const std::filesystem::path& folder) {
  std::error_code ignored;
  auto nearest = folder;
  while (nearest != nearest.root_path() && !std::filesystem::exists(nearest, ignored))
    nearest = nearest.parent_path();
  if (auto fine = trust_directory(nearest); !fine) return fine;
  struct stat s{};
  if (nearest != folder && ::stat(nearest.c_str(), &s) == 0 &&
      (s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return reject(code::trust_mode, "is not there, and " + printable(nearest.string(), 200) +
                                        " is writable by others, who could make it");
  return {};
}

}  // namespace

void split_run_path(std::string_view list, std::vector<std::string>& out) {
  for (;;) {
    const std::size_t end = std::min(list.find(':'), list.size());
    out.emplace_back(list.substr(0, end));
    if (end == list.size()) break;
    list.remove_prefix(end + 1);
  }
}

std::vector<std::string> run_path_of(const elf_image& image) {
  // DT_RPATH only counts where there is no DT_RUNPATH.
  auto lists = image.dynamic_strings(DT_RUNPATH);
  if (lists.empty()) lists = image.dynamic_strings(DT_RPATH);
  std::vector<std::string> out;
  for (const std::string_view list : lists) split_run_path(list, out);
  return out;
}

void examine_run_path(const inspection& plugin, findings& found) {
  if (plugin.run_path.empty()) return found.ok(subject, "none");
  for (const std::string& item : plugin.run_path) {
    const std::string shown = "run path '" + printable(item) + "' ";
    if (item.starts_with("$ORIGIN") || item.starts_with("${ORIGIN}")) {
      found.warning(subject, code::inspect_run_path,
                    shown +
                        "is not followed: a plugin is loaded through a descriptor, which has "
                        "no folder",
                    "link private libraries statically, or give an absolute run path");
    } else if (!item.starts_with('/')) {
      found.error(subject, code::inspect_run_path,
                  shown + "is relative: it would lead to the current directory");
    } else if (const auto fine = trust_place(std::filesystem::path(item).lexically_normal());
               !fine) {
      found.error(subject, code::inspect_run_path,
                  shown + "cannot be trusted: " + fine.error().reason);
    } else {
      found.ok(subject, printable(item));
    }
  }
}

}  // namespace bitnet::plugin
