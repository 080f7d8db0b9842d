#include "probe/requirements.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "plugin/inspection/library_search.hpp"
#include "probe/hardware.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;
using texts = std::vector<std::string>;

// Features of the first processor; nullopt: the kernel does not list them.
std::optional<std::set<std::string>> features_of(const fs::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  constexpr int most_lines = 64;  // per processor
  std::string line;
  for (int i = 0; i < most_lines && std::getline(in, line); ++i) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || !(line.starts_with("flags") || line.starts_with("Features")))
      continue;
    std::set<std::string> out;
    for (std::size_t at = colon + 1; at < line.size();) {
      const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
      if (end > at) out.insert(line.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
  return std::nullopt;
}

// The number in a file of a PCI device, "0x10de", without "0x".
std::string pci_number(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  return text.starts_with("0x") ? text.substr(2) : text;
}

// "10de:2b85:030000" for each device on the bus; nullopt: no bus is visible.
std::optional<texts> pci_devices(const fs::path& root) {
  std::error_code failed;
  fs::directory_iterator at(root / "sys/bus/pci/devices", failed);
  if (failed) return std::nullopt;
  texts out;
  for (const fs::directory_iterator end; !failed && at != end; at.increment(failed)) {
    texts parts;
    for (const char* name : {"vendor", "device", "class"})
      parts.push_back(pci_number(at->path() / name));
    out.push_back(fmt::format("{}", fmt::join(parts, ":")));
  }
  return out;
}

std::array<std::string_view, 3> parts_of(std::string_view triple) {
  const std::size_t first = triple.find(':'), second = triple.find(':', first + 1);
  return {triple.substr(0, first), triple.substr(first + 1, second - first - 1),
          triple.substr(second + 1)};
}

bool is_like(std::string_view device, std::string_view pattern) {
  const auto given = parts_of(device), wanted = parts_of(pattern);
  return std::ranges::equal(given, wanted, [](std::string_view part, std::string_view like) {
    if (!like.ends_with('*')) return part == like;
    return part.starts_with(like.substr(0, like.size() - 1));
  });
}

bool has_device(const texts& patterns, const texts& devices) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return std::ranges::any_of(devices, [&](const auto& one) { return is_like(one, pattern); });
  });
}

void note_processor(const plugin::machine_needs& of, const machine& on, texts& missing) {
  const auto wanted = of.cpu.find(on.architecture);
  if (wanted == of.cpu.end()) return;
  const auto features = features_of(on.root);
  if (!features) return;
  texts lacking;
  std::ranges::copy_if(wanted->second, std::back_inserter(lacking),
                       [&](const std::string& one) { return !features->contains(one); });
  if (!lacking.empty())
    missing.push_back(fmt::format("a processor with {}", fmt::join(lacking, ", ")));
}

// Returns the missing ones.
texts missing_libraries(const texts& names) {
  texts out;
  plugin::library_search search;
  if (!search.is_known()) return out;
  std::ranges::copy_if(names, std::back_inserter(out), [&](const std::string& name) {
    return !plugin::loaded_file(name) && search.find(name, {}, {}).file.empty();
  });
  return out;
}

}  // namespace

plugin::checked<void> check_requirements(const plugin::machine_needs& of,
                                         const std::map<std::string, std::string>& packages,
                                         const machine& on) {
  texts missing, install;
  note_processor(of, on, missing);
  if (!of.pci.empty())
    if (const auto devices = pci_devices(on.root); devices && !has_device(of.pci, *devices))
      missing.push_back(fmt::format("a PCI device like {}", fmt::join(of.pci, " or ")));
  const auto is_there = [&](const fs::path& like) { return !nodes_like(on.root, like).empty(); };
  if (!of.nodes.empty() && std::ranges::none_of(of.nodes, is_there)) {
    texts names;
    for (const fs::path& node : of.nodes) names.push_back(node.string());
    missing.push_back(fmt::format("a device file like {}", fmt::join(names, " or ")));
  }
  for (const std::string& library : missing_libraries(of.libraries)) {
    missing.push_back(fmt::format("the library {}", library));
    const auto package = packages.find(library);
    if (package != packages.end()) install.push_back(package->second);
  }
  if (missing.empty()) return {};
  const bool only_packages = install.size() == missing.size();
  return std::unexpected(plugin::defect{
      plugin::code::select_requires, BITNET_UNAVAILABLE,
      fmt::format("its manifest requires what this machine lacks: {}", fmt::join(missing, "; ")),
      only_packages ? fmt::format("install {}", fmt::join(install, ", ")) : ""});
}

plugin::checked<void> check_requirements(const plugin::machine_needs& of,
                                         const std::map<std::string, std::string>& packages) {
  utsname kernel{};
  return check_requirements(
      of, packages, {.root = "/", .architecture = uname(&kernel) == 0 ? kernel.machine : ""});
}

}  // namespace bitnet::probe
