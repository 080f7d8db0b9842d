#include "plugin/inspection/versions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/system_file.hpp"

namespace bitnet::plugin {
namespace {

// "GLIBC_2.36" as "GLIBC_" and {2, 36}; "GLIBC_PRIVATE" has no numbers.
struct split_version {
  std::string_view family;
  std::vector<uint32_t> numbers;
};

split_version split(std::string_view version) {
  const std::size_t begin = version.rfind('_') + 1;  // 0 if there is none
  split_version out{version.substr(0, begin), {}};
  std::string_view rest = version.substr(begin);
  while (!rest.empty()) {
    uint32_t number = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return {out.family, {}};
    out.numbers.push_back(number);
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    if (rest.starts_with('.')) rest.remove_prefix(1);
  }
  return out;
}

bool is_older(std::string_view a, std::string_view b) {
  return split(a).numbers < split(b).numbers;
}

// The newest version of the same family; "" if there is none.
std::string newest_like(std::string_view version, const std::vector<std::string_view>& all) {
  std::string_view best;
  for (const std::string_view one : all)
    if (split(one).family == split(version).family && (best.empty() || is_older(best, one)))
      best = one;
  return printable(best);
}

// The strong needs of one library that are not in `has`, oldest first.
std::vector<std::string> lacking(const inspection& plugin, const std::string& library,
                                 const std::vector<std::string_view>& has) {
  std::vector<std::string> out;
  for (const version_need& need : plugin.versions)
    if (need.library == library && !need.weak && std::ranges::find(has, need.version) == has.end())
      out.push_back(need.version);
  std::ranges::sort(out, is_older);
  return out;
}

}  // namespace

void examine_versions(const inspection& plugin, const std::vector<needed_library>& libraries,
                      findings& found) {
  bool fine = true;
  for (const needed_library& library : libraries) {
    if (!library.needed_by.empty() || library.file.empty()) continue;
    const auto file = system_file::open(library.file);
    if (!file) continue;  // it has just disappeared; the linker will report it
    const auto has = file->image().defined_versions();
    if (has.empty()) continue;  // the linker accepts a library without versions
    const auto lacks = lacking(plugin, library.name, has);
    if (lacks.empty()) continue;
    fine = false;
    const std::string newest = newest_like(lacks.back(), has);
    found.error("versions", {code::inspect_version, BITNET_UNAVAILABLE,
                             fmt::format("needs {} of {}, but {}{}", join(lacks, ", "),
                                         library.name, printable(library.file.string(), 200),
                                         newest.empty() ? " has no such version"
                                                        : fmt::format(" has {} at most", newest)),
                             ""});
  }
  if (fine) found.ok("versions", "all that it needs are here");
}

}  // namespace bitnet::plugin
