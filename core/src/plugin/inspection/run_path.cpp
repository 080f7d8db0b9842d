#include "plugin/inspection/run_path.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/library_search.hpp"

namespace bitnet::plugin {
namespace {

constexpr const char* check_name = "run path";

// The text behind $ORIGIN, including '/'; nullopt if the item does not begin with $ORIGIN.
std::optional<std::string_view> behind_origin(std::string_view item) {
  for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"}) {
    if (!item.starts_with(word)) continue;
    const std::string_view rest = item.substr(word.size());
    if (rest.empty() || rest.starts_with('/')) return rest;
  }
  return std::nullopt;
}

// For a library loaded through a descriptor the linker uses /proc/<pid>/fd as $ORIGIN. There
// numbers are links to open files and folders, and ".." leads to the process's folder.
bool leads_from_descriptors(std::string_view rest) {
  const auto is_number = [](const std::string& part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  return std::ranges::any_of(std::filesystem::path(rest), [&](const std::filesystem::path& part) {
    return part == ".." || is_number(part.string());
  });
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
  // DT_RPATH is ignored if there is DT_RUNPATH.
  const auto lists = image.dynamic_strings(image.dynamic_value(DT_RUNPATH) ? DT_RUNPATH : DT_RPATH);
  std::vector<std::string> out;
  for (const std::string_view list : lists)
    if (!list.empty()) split_run_path(list, out);  // the linker ignores an empty list
  return out;
}

std::string run_path_fault(std::string_view item) {
  const auto rest = behind_origin(item);
  if (rest.value_or(item).find('$') != std::string_view::npos)
    return "has a '$' that is no leading $ORIGIN: the linker puts other text there";
  if (!rest && !item.starts_with('/')) return "is relative: it would lead to the current directory";
  return "";
}

std::optional<std::filesystem::path> run_path_folder(std::string_view item,
                                                     const std::string& origin) {
  if (!run_path_fault(item).empty()) return std::nullopt;
  const auto rest = behind_origin(item);
  if (!rest) return std::filesystem::path(item);
  if (origin.empty()) return std::nullopt;
  return std::filesystem::path(origin + std::string(*rest));
}

void examine_run_path(const inspection& plugin, findings& found) {
  if (plugin.run_path.empty()) return found.ok(check_name, "none");
  for (const std::string& item : plugin.run_path) {
    const std::string shown = fmt::format("run path '{}' ", printable(item));
    if (const std::string fault = run_path_fault(item); !fault.empty()) {
      found.error(check_name, code::inspect_run_path, shown + fault);
    } else if (const auto rest = behind_origin(item)) {
      if (leads_from_descriptors(*rest))
        found.error(check_name, code::inspect_run_path,
                    fmt::format("{}leads out of $ORIGIN, which is the folder of open descriptors "
                                "for what is loaded through one",
                                shown));
      else
        found.warning(
            check_name, code::inspect_run_path,
            fmt::format(
                "{}is not followed: a plugin is loaded through a descriptor, which has no folder",
                shown),
            "link private libraries statically, or give an absolute run path");
    } else if (const auto fine = trust_place(item); !fine) {
      found.error(check_name, code::inspect_run_path,
                  fmt::format("{}cannot be trusted: {}", shown, fine.error().reason));
    } else {
      found.ok(check_name, printable(item));
    }
  }
}

}  // namespace bitnet::plugin
