#include "probe/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <span>
#include <system_error>

#include "base/environment.hpp"
#include "bitnet/abi/base.h"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/library_search.hpp"
#include "plugin/trust/file_map.hpp"
#include "probe/frame.hpp"
#include "probe/hardware.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;

// The text that is hashed, one fact per line.
class facts_text {
 public:
  void add(std::string_view what, std::string_view value) {
    text_ += what;
    text_ += '=';
    text_ += value;
    text_ += '\n';
  }
  // Adds everything that changes when a file is replaced, even by one of the same name and size.
  void add_file(const fs::path& file) {
    struct stat s{};
    if (stat(file.c_str(), &s) != 0) return;
    std::array<char, 200> out{};
    std::snprintf(out.data(), out.size(), "%llu:%llu:%lld:%lld.%09ld:%lld.%09ld:%o:%u:%llu",
                  static_cast<unsigned long long>(s.st_dev),
                  static_cast<unsigned long long>(s.st_ino), static_cast<long long>(s.st_size),
                  static_cast<long long>(s.st_mtim.tv_sec), s.st_mtim.tv_nsec,
                  static_cast<long long>(s.st_ctim.tv_sec), s.st_ctim.tv_nsec, s.st_mode, s.st_uid,
                  static_cast<unsigned long long>(s.st_rdev));
    add(file.string(), out.data());
  }
  // Adds a device node without its times, which change with use.
  void add_node(const fs::path& file) {
    struct stat s{};
    if (stat(file.c_str(), &s) != 0) return;
    add(file.string(), fmt::format("{}:{}:{}:{}", s.st_rdev, s.st_mode, s.st_uid, s.st_gid));
  }
  void add_content(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    if (std::getline(in, line)) add(file.string(), line);
  }
  [[nodiscard]] std::string digest() const {
    const XXH128_hash_t hash = XXH3_128bits(text_.data(), text_.size());
    std::array<char, 33> out{};
    std::snprintf(out.data(), out.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return out.data();
  }

 private:
  std::string text_;
};

std::vector<fs::path> entries(const fs::path& folder) {
  constexpr std::size_t most = 65'536;
  std::vector<fs::path> out;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end && out.size() < most;
       at.increment(ignored))
    out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

// The dynamic linker's folders, close enough to notice a replaced library.
std::vector<fs::path> library_places(const plugin::inspection& inspected, const fs::path& origin,
                                     const std::vector<std::string>& variables) {
  std::vector<fs::path> out;
  const auto add_list = [&](std::string_view list) {
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      out.emplace_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  };
  constexpr std::string_view variable = "LD_LIBRARY_PATH=";
  for (const std::string& one : variables)
    if (one.starts_with(variable)) add_list(std::string_view(one).substr(variable.size()));
  for (std::string place : inspected.run_path) {
    for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"})
      if (const auto at = place.find(word); at != std::string::npos)
        place.replace(at, word.size(), origin.string());
    out.emplace_back(place);
  }
  std::ranges::copy(plugin::linker_directories("/etc/ld.so.conf"), std::back_inserter(out));
  for (const char* usual : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) out.emplace_back(usual);
  return out;
}

std::vector<std::string> needed_by(const fs::path& file) {
  const plugin::file_descriptor fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s{};
  if (fd.get() < 0 || fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_size == 0) return {};
  const auto map = plugin::file_map::open(fd.get(), static_cast<uint64_t>(s.st_size));
  if (!map) return {};
  std::vector<std::string> out;
  if (const auto image = plugin::elf_image::open(map->bytes()))
    for (const std::string_view name : image->dynamic_strings(DT_NEEDED)) out.emplace_back(name);
  return out;
}

// The files of these libraries and of all that they need.
std::vector<fs::path> closure(std::vector<std::string> names, const std::vector<fs::path>& places) {
  constexpr std::size_t most = 256;
  std::vector<fs::path> out;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    if (names[i].find('/') != std::string::npos || !seen.insert(names[i]).second) continue;
    std::error_code ignored;
    const auto place = std::ranges::find_if(
        places, [&](const fs::path& one) { return fs::exists(one / names[i], ignored); });
    if (place == places.end()) continue;
    out.push_back(*place / names[i]);
    std::ranges::copy(needed_by(out.back()), std::back_inserter(names));
  }
  return out;
}

void add_kernel(facts_text& out) {
  utsname kernel{};
  if (uname(&kernel) != 0) return;
  out.add("kernel", kernel.release);
  out.add("machine", kernel.machine);
}

void add_module(facts_text& out, const std::string& module) {
  for (const char* file : {"version", "srcversion"})
    out.add_content(fs::path("/sys/module") / module / file);
}

// A single node is recorded even if it is missing.
void add_nodes(facts_text& out, const fs::path& pattern) {
  if (!pattern.filename().string().contains('*')) return out.add_node(pattern);
  for (const fs::path& node : nodes_like("/", pattern)) out.add_node(node);
}

void add_named(facts_text& out, const plugin::probe_facts& on,
               const std::vector<fs::path>& places) {
  for (const std::string& module : on.modules) add_module(out, module);
  // Libraries that plugins open by name, found as the linker does.
  for (const std::string& name : on.libraries)
    for (const fs::path& place : places) out.add_file(place / name);
  for (const fs::path& folder : on.folders)
    for (const fs::path& one : entries(folder)) out.add_file(one);
  for (const fs::path& pattern : on.nodes) add_nodes(out, pattern);
  for (const auto& [module, node] : on.late_nodes) out.add_node(node);
}

void add_devices(facts_text& out) {
  for (const fs::path& device : entries("/sys/bus/pci/devices")) {
    if (!is_computing_class(device)) continue;
    for (const char* fact : {"class", "vendor", "device"}) out.add_content(device / fact);
    std::error_code ignored;
    const std::string driver =
        fs::read_symlink(device / "driver" / "module", ignored).filename().string();
    out.add("driver", driver);
    if (!driver.empty()) add_module(out, driver);
  }
  for (const char* folder : {"/dev/dri", "/dev/accel"})  // the kernel's own, for any driver
    for (const fs::path& node : entries(folder)) out.add_node(node);
}

void add_processor(facts_text& out) {
  out.add("hwcap",
          std::to_string(getauxval(AT_HWCAP)) + "," + std::to_string(getauxval(AT_HWCAP2)));
#if defined(__x86_64__)
  // Leaf 1 without EBX, which contains the number of the current core.
  for (const unsigned leaf : {1U, 7U, 0x19U, 0x24U, 0x80000001U})
    for (unsigned sub = 0; sub < (leaf == 7 ? 2U : 1U); ++sub) {
      unsigned a = 0;
      unsigned b = 0;
      unsigned c = 0;
      unsigned d = 0;
      if (__get_cpuid_count(leaf, sub, &a, &b, &c, &d) == 0) continue;
      out.add("cpuid", fmt::format("{}.{}:{}:{}:{}:{}", leaf, sub, a, leaf == 1 ? 0 : b, c, d));
    }
#endif
  // Includes the cgroup's cpuset and taskset's mask.
  cpu_set_t cpus;
  std::string allowed;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i) allowed += CPU_ISSET(i, &cpus) ? '1' : '0';
  out.add("cpus", allowed);
}

}  // namespace

std::string fingerprint(const fs::path& library, const plugin::file_identity& identity,
                        const plugin::inspection& inspected, const plugin::probe_facts& on,
                        const std::vector<std::pair<std::string, std::string>>& params,
                        bool devices) {
  const std::vector<std::string> variables = environment::probe_variables(on.env);
  facts_text out;
  out.add("protocol", std::to_string(protocol_version));
  out.add("core", BITNET_CORE_VERSION " " BITNET_ABI_RANGE);
  out.add("library", library.string());
  for (const auto number :
       {identity.device, identity.inode, identity.size_bytes,
        static_cast<uint64_t>(identity.modified_ns), static_cast<uint64_t>(identity.changed_ns)})
    out.add("identity", std::to_string(number));
  out.add("build id", inspected.build_id);
  const std::vector<fs::path> places = library_places(inspected, library.parent_path(), variables);
  for (const fs::path& file : closure(inspected.needed, places)) out.add_file(file);
  add_kernel(out);
  add_named(out, on, places);
  if (devices) add_devices(out);
  add_processor(out);
  for (const std::string& variable : variables) out.add("variable", variable);
  for (const auto& [key, value] : params) out.add(fmt::format("param {}", key), value);
  return out.digest();
}

}  // namespace bitnet::probe
