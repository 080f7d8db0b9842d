#include "base/control_groups.hpp"

#include <fstream>
#include <string>

namespace bitnet {
namespace {

// libstdc++ 12 frees what it does not own where memory is short while an empty path is appended.
std::filesystem::path within(const std::filesystem::path& folder,
                             const std::filesystem::path& name) {
  return name.empty() ? folder : folder / name;
}

}  // namespace

std::vector<control_group> control_groups(const std::filesystem::path& root) {
  std::vector<control_group> out;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:/path
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const auto top = within(root / "sys/fs/cgroup", controllers);
    for (std::filesystem::path path = line.substr(second + 1);; path = path.parent_path()) {
      out.push_back({within(top, path.relative_path()), controllers.empty()});
      if (path == path.parent_path()) break;
    }
  }
  return out;
}

}  // namespace bitnet
