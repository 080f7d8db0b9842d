#include "system/control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace bitnet {
namespace {

constexpr std::ptrdiff_t deepest = 64;       // nested folders
constexpr std::size_t most_groups = 1024;    // version 1 has some ten controllers
constexpr std::size_t longest_line = 4'096;  // bytes, the maximum of a path

// libstdc++ 12 frees memory that it does not own if allocation fails while it appends an empty
// path.
std::filesystem::path within(const std::filesystem::path& folder,
                             const std::filesystem::path& name) {
  return name.empty() ? folder : folder / name;
}

// number:controllers:/path
void add_groups(std::string_view line, const std::filesystem::path& root,
                std::vector<control_group>& out) {
  const auto first = line.find(':');
  const auto second = line.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  if (line.size() > longest_line) return;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  // Without the leading slash: an absolute path would replace the root.
  const auto top =
      within(root / "sys/fs/cgroup", std::filesystem::path(controllers).relative_path());
  std::filesystem::path path = line.substr(second + 1);
  if (std::distance(path.begin(), path.end()) > deepest) return;
  for (;; path = path.parent_path()) {
    if (out.size() == most_groups) return;
    out.push_back({within(top, path.relative_path()), controllers.empty()});
    if (path == path.parent_path()) return;
  }
}

}  // namespace

std::vector<control_group> control_groups_in(std::string_view listing,
                                             const std::filesystem::path& root) {
  std::vector<control_group> out;
  for (std::size_t at = 0; at < listing.size();) {
    const std::size_t end = std::min(listing.find('\n', at), listing.size());
    add_groups(listing.substr(at, end - at), root, out);
    at = end + 1;
  }
  return out;
}

std::vector<control_group> control_groups(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  const std::string listing((std::istreambuf_iterator<char>(in)), {});
  return control_groups_in(listing, root);
}

}  // namespace bitnet
