#include "doctor/nodes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "doctor/pci.hpp"
#include "text/items.hpp"
#include "text/printable.hpp"

namespace bitnet::host::doctor {
namespace {

// The user and groups of this process, from /proc/self/status.
struct identity {
  std::optional<uint64_t> user;
  std::vector<uint64_t> groups;
};

// The effective id, second in "Uid: real effective saved file".
std::optional<uint64_t> effective(std::string_view status, std::string_view name) {
  const auto words = words_of(field_of(status, name).value_or(""));
  return words.size() < 2 ? std::nullopt : number_of(words[1]);
}

identity read_identity(const system_tree& system) {
  const std::string status = system.text("proc/self/status").value_or("");
  identity out{effective(status, "Uid"), {}};
  if (const auto group = effective(status, "Gid")) out.groups.push_back(*group);
  for (const std::string_view word : words_of(field_of(status, "Groups").value_or("")))
    if (const auto group = number_of(word)) out.groups.push_back(*group);
  return out;
}

// The name of group `id` in a text like /etc/group: "render:x:105:ann,bob".
std::string group_name(std::string_view groups, uint32_t id) {
  std::string number = std::to_string(id);
  for (const std::string_view line : text::items(groups, '\n')) {
    const auto fields = text::items(line, ':');
    if (fields.size() >= 3 && fields[2] == number && !fields[0].empty())
      return text::printable(fields[0], 64);
  }
  return number;
}

bool may_use(const struct stat& facts, const identity& who) {
  constexpr uint32_t read_and_write = 6;
  if (who.user == 0U) return true;
  const bool owns = who.user == facts.st_uid;
  const bool member = std::ranges::count(who.groups, uint64_t{facts.st_gid}) != 0;
  const uint32_t bits = owns ? facts.st_mode >> 6U : member ? facts.st_mode >> 3U : facts.st_mode;
  return (bits & read_and_write) == read_and_write;
}

struct node_kind {
  std::string_view folder, start;
};
constexpr auto node_kinds = std::to_array<node_kind>({
    {"dev/dri", "renderD"},
    {"dev/accel", "accel"},
    {"dev", "kfd"},
    {"dev", "nvidia"},
    {"dev", "dxg"},
});

// "/proc/driver/nvidia/gpus/0000:01:00.0/information" has "Device Minor: 0".
std::string address_of_nvidia(const system_tree& system, std::string_view minor) {
  const std::filesystem::path all = "proc/driver/nvidia/gpus";
  for (const std::string& address : system.names(all)) {
    const std::string about = system.text(all / address / "information").value_or("");
    if (field_of(about, "Device Minor") == minor) return lower_address(address);
  }
  return "";
}

std::string address_behind(const system_tree& system, std::string_view name) {
  constexpr std::string_view nvidia = "nvidia";
  if (name.starts_with("renderD"))
    return lower_address(system.link_end("sys/class/drm/" + std::string(name) + "/device"));
  if (name.starts_with("accel"))
    return lower_address(system.link_end("sys/class/accel/" + std::string(name) + "/device"));
  if (name.starts_with(nvidia) && number_of(name.substr(nvidia.size())))
    return address_of_nvidia(system, name.substr(nvidia.size()));
  return "";
}

}  // namespace

std::vector<node> device_nodes(const system_tree& system) {
  const identity who = read_identity(system);
  const std::string groups = system.text("etc/group").value_or("");
  std::vector<node> out;
  for (const auto& [folder, start] : node_kinds)
    for (const std::string& name : system.names(folder)) {
      if (!name.starts_with(start)) continue;
      const auto path = std::filesystem::path(folder) / name;
      struct stat facts{};
      if (stat(system.whole(path).c_str(), &facts) != 0 || S_ISDIR(facts.st_mode)) continue;
      // The kernel decides: besides the mode it applies access lists, which let a seat's user open
      // the GPU.
      const bool usable = system.is_this_machine() ? faccessat(AT_FDCWD, system.whole(path).c_str(),
                                                               R_OK | W_OK, AT_EACCESS) == 0
                                                   : may_use(facts, who);
      out.push_back({text::printable("/" + path.string(), 256), group_name(groups, facts.st_gid),
                     facts.st_mode & 0777U, usable,
                     facts.st_gid != 0 && (facts.st_mode & 060U) == 060U,
                     address_behind(system, name)});
    }
  return out;
}

bool matches(std::string_view path, std::string_view pattern) {
  if (!pattern.ends_with('*')) return path == pattern;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace bitnet::host::doctor
