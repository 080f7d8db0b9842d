#include "probe/hardware.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;

// Major numbers of character devices by Linux's list (Documentation/admin-guide/devices.txt):
// memory, terminals, virtual consoles, misc devices, input, sound, frame buffers, video, buses,
// printers, links, pseudo-terminals, USB, MSR and CPUID, serial lines.
constexpr auto common_majors =
    std::to_array<unsigned>({1,   2,   3,   4,   5,   6,   7,   10,  13,  14,  21,  29,  81,  89,
                             90,  99,  108, 116, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137,
                             138, 139, 140, 141, 142, 143, 166, 180, 188, 189, 202, 203, 204, 229});
// From here on the kernel assigns numbers dynamically. Most belong to buses, clocks and disks;
// computing devices have a folder in /dev or a place on the PCI bus.
constexpr unsigned first_dynamic = 234;

bool has_entries(const fs::path& folder, std::string_view start) {
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored))
    if (at->path().filename().string().starts_with(start)) return true;
  return false;
}

bool is_uncommon(const fs::path& node) {
  struct stat facts{};
  if (lstat(node.c_str(), &facts) != 0 || !S_ISCHR(facts.st_mode)) return false;
  const unsigned number = major(facts.st_rdev);
  return number < first_dynamic && std::ranges::find(common_majors, number) == common_majors.end();
}

}  // namespace

bool is_computing_class(const fs::path& pci_device) {
  constexpr std::string_view display = "0x03", accelerator = "0x12";
  std::ifstream in(pci_device / "class");
  std::string kind;
  std::getline(in, kind);
  return kind.starts_with(display) || kind.starts_with(accelerator);
}

bool shows_devices() {
  return shows_devices("/");
}

bool shows_devices(const fs::path& root) {
  std::error_code ignored;
  for (fs::directory_iterator at(root / "sys/bus/pci/devices", ignored), end; !ignored && at != end;
       at.increment(ignored))
    if (is_computing_class(at->path())) return true;
  if (has_entries(root / "dev/dri", "render") || has_entries(root / "dev/accel", "")) return true;
  if (has_entries(root / "dev", "dxg")) return true;  // WSL's node for the GPU of its host
  ignored.clear();
  for (fs::directory_iterator at(root / "dev", ignored), end; !ignored && at != end;
       at.increment(ignored))
    if (is_uncommon(at->path())) return true;
  return false;
}

std::vector<fs::path> nodes_like(const fs::path& root, const fs::path& pattern) {
  std::vector<fs::path> out;
  std::error_code ignored;
  const fs::path whole = root / pattern.relative_path();
  const std::string name = pattern.filename().string();
  const std::size_t star = name.find('*');
  if (star == std::string::npos) {
    if (fs::exists(whole, ignored)) out.push_back(whole);
    return out;
  }
  const std::string_view start = std::string_view(name).substr(0, star);
  const std::string_view end = std::string_view(name).substr(star + 1);
  for (fs::directory_iterator at(whole.parent_path(), ignored), last; !ignored && at != last;
       at.increment(ignored)) {
    const std::string found = at->path().filename().string();
    if (found.size() >= start.size() + end.size() && found.starts_with(start) &&
        found.ends_with(end))
      out.push_back(at->path());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace bitnet::probe
