#include "base/new_thread.hpp"

#include <fstream>
#include <string>

#include "system/control_groups.hpp"
#include "system/limits.hpp"

namespace bitnet {

std::string shortage_text(int error, const std::filesystem::path& root) {
  std::string text = limits::shortage(error);
  for (const control_group& group : control_groups(root)) {
    std::ifstream in(group.folder / "pids.max");
    if (uint64_t most = 0; in >> most)
      text += fmt::format("; the limit is {} processes and threads of a control group ({})", most,
                          (group.folder / "pids.max").string());
  }
  return text;
}

failure thread_shortage(int error, const std::filesystem::path& root) {
  return {BITNET_OUT_OF_MEMORY,
          fmt::format("the system makes no further thread: {}; raise the limit, end other "
                      "processes, or use fewer threads",
                      shortage_text(error, root)),
          {"errno", error}};
}

}  // namespace bitnet
