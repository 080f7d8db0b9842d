// Finds backends in the search path, and excludes those that the user disables.

#include <fmt/core.h>

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "base/environment.hpp"
#include "plugin/codes/text.hpp"
#include "select/contents.hpp"

namespace bitnet::select {
namespace {

using plugin::code;
using plugin::join;

// The search path, lowest precedence first: a user adds backends and cannot replace the system's.
// `rejected` gets the ignored folders.
std::vector<std::filesystem::path> usual_directories(
    bool user_places, plugin::host_services& host,
    std::vector<plugin::searched_directory>& rejected) {
  std::vector<std::filesystem::path> out;
  const std::string why = environment::user_places_rejected(user_places);
  for (const auto& [path, named_by] : environment::user_manifest_directories()) {
    host.log(BITNET_LOG_INFO, "manifest",
             fmt::format("{} names {}{}", named_by, plugin::printable(path.string(), 400),
                         why.empty() ? "" : fmt::format(", not searched: {}", why)));
    if (why.empty())
      out.push_back(path);
    else
      rejected.push_back({path, fmt::format("not searched: {}", why),
                          environment::user_places_rejected(true).empty()});
  }
  for (const auto& path : environment::system_manifest_directories()) {
    std::erase(out, path);
    out.push_back(path);
  }
  return out;
}

}  // namespace

plugin::discovery registry::contents::discover() const {
  std::vector<plugin::searched_directory> rejected;
  auto found = plugin::discover(
      directories.empty() ? usual_directories(rules.user_places, *host, rejected) : directories);
  std::ranges::move(rejected, std::back_inserter(found.searched));
  return found;
}

void registry::contents::find() {
  auto discovered = discover();
  searched = std::move(discovered.searched);
  for (plugin::found_manifest& found : discovered.found)
    candidates.emplace_back(std::move(found), rules);
  leave_out_filtered();
  for (const candidate& one : candidates)
    for (const std::string& warning : one.warnings())
      host->log(BITNET_LOG_WARN, "manifest", warning);
}

// Excludes backends by BITNET_BACKENDS and BITNET_BACKENDS_DISABLE.
void registry::contents::leave_out_filtered() {
  const std::vector<std::string> only = environment::only_backends();
  const std::vector<std::string> disabled = environment::disabled_backends();
  for (candidate& c : candidates) {
    std::string why;
    std::string hint;
    if (!only.empty() && std::ranges::find(only, c.name()) == only.end()) {
      why = fmt::format("left out by BITNET_BACKENDS={}", plugin::printable(join(only, ","), 100));
      hint = fmt::format("add {} to BITNET_BACKENDS, or unset it", c.name());
    }
    for (const std::string& pattern : disabled)
      if (fnmatch(pattern.c_str(), c.name().c_str(), 0) == 0) {
        const std::string shown = plugin::printable(pattern, 100);
        why = fmt::format("left out by BITNET_BACKENDS_DISABLE={}", shown);
        hint = fmt::format("take {} out of BITNET_BACKENDS_DISABLE", shown);
      }
    if (why.empty()) continue;
    host->log(BITNET_LOG_INFO, "manifest", fmt::format("backend {} is {}", c.name(), why));
    c.leave_out({code::select_filtered, BITNET_UNAVAILABLE, why, hint});
  }
}

}  // namespace bitnet::select
