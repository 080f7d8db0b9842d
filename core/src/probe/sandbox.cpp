#include "probe/sandbox.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "plugin/trust/trust.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BITNET_SHADOW_MEMORY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BITNET_SHADOW_MEMORY
#endif
#endif

namespace bitnet::probe {
namespace {

// From linux/landlock.h: the header on the build machine may be older than the running kernel.
constexpr long create_ruleset = 444, add_rule = 445, restrict_self = 446;
constexpr uint32_t ask_version = 1, rule_path_beneath = 1;

struct ruleset {
  uint64_t files;
  uint64_t network;  // from version 4 on
  uint64_t scoped;   // from version 6 on
};
struct __attribute__((packed)) path_beneath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t write_file = 1U << 1, remove_dir = 1U << 4, remove_file = 1U << 5,
                   make_all = 0x7FU << 6, refer = 1U << 13, truncate = 1U << 14;
constexpr uint64_t tcp_bind = 1U << 0, tcp_connect = 1U << 1;
constexpr uint64_t scope_signal = 1U << 1;  // no signals to processes outside
constexpr long with_refer = 2, with_truncate = 3, with_network = 4, with_scope = 6;

using nodes_of_modules = std::map<std::string, std::filesystem::path>;

// A node that a loaded driver will make with its set-uid helper and that is missing; "" if none.
std::string missing_node(const nodes_of_modules& late_nodes) {
  std::error_code ignored;
  for (const auto& [module, node] : late_nodes)
    if (std::filesystem::exists(std::filesystem::path("/sys/module") / module, ignored) &&
        !std::filesystem::exists(node, ignored))
      return node.string();
  return "";
}

std::string none(const std::string& why) {
  return fmt::format("none: {}", why);
}

std::string why(const char* call) {
  return fmt::format("none: {}: {}", call, std::generic_category().message(errno));
}

// Adds a rule for the folder and everything in it. A missing folder needs no rule.
bool allow(int rules, const std::filesystem::path& folder, uint64_t what) {
  const plugin::file_descriptor opened(open(folder.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
  if (opened.get() < 0) return true;
  const path_beneath beneath{what, opened.get()};
  return syscall(add_rule, rules, rule_path_beneath, &beneath, 0) == 0;
}

std::string enter_landlock(const std::filesystem::path& scratch, const nodes_of_modules& late_nodes,
                           const std::vector<std::filesystem::path>& pipes) {
  if (const std::string node = missing_node(late_nodes); !node.empty())
    return none(fmt::format("the driver has yet to make {}", node));
  const long version = syscall(create_ruleset, nullptr, 0, ask_version);
  if (version < 1) return none("this kernel has no Landlock");
  ruleset rules{write_file | remove_dir | remove_file | make_all, 0, 0};
  if (version >= with_refer) rules.files |= refer;
  if (version >= with_truncate) rules.files |= truncate;
  if (version >= with_network) rules.network = tcp_bind | tcp_connect;
  if (version >= with_scope) rules.scoped = scope_signal;
  const std::size_t size = version >= with_scope     ? sizeof rules
                           : version >= with_network ? offsetof(ruleset, scoped)
                                                     : sizeof rules.files;
  const plugin::file_descriptor set(static_cast<int>(syscall(create_ruleset, &rules, size, 0)));
  if (set.get() < 0) return why("landlock_create_ruleset");
  bool added =
      allow(set.get(), "/dev", rules.files & (write_file | truncate | remove_file | make_all)) &&
      (scratch.empty() || allow(set.get(), scratch, rules.files));
  for (const std::filesystem::path& folder : pipes)
    added = added && allow(set.get(), folder, write_file);
  if (!added) return why("landlock_add_rule");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return why("PR_SET_NO_NEW_PRIVS");
  if (syscall(restrict_self, set.get(), 0) != 0) return why("landlock_restrict_self");
  return fmt::format("landlock {}", version);
}

// Makes the kernel end the probe before the waiting process when memory runs out.
void be_first_to_go() {
  const plugin::file_descriptor score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view most = "1000";
  [[maybe_unused]] const ssize_t n = write(score.get(), most.data(), most.size());
}

// Limits private writable memory, as drivers reserve far more addresses than they use. The limit is
// half of the machine's memory, within bounds; a compiling driver needs `least`, even where the
// machine has no more (be_first_to_go() then protects the waiting process).
std::string limit_memory() {
#ifdef BITNET_SHADOW_MEMORY
  return "";  // a sanitizer reserves terabytes of addresses
#else
  constexpr uint64_t least = uint64_t{4} << 30, most = uint64_t{64} << 30;
  const uint64_t all =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return "";
  limit.rlim_cur = std::min<uint64_t>(limit.rlim_max, std::clamp(all / 2, least, most));
  limit.rlim_max = limit.rlim_cur;
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return "";
  return fmt::format(", memory {} MiB", limit.rlim_cur >> 20);
#endif
}

}  // namespace

std::string enter_sandbox(int parent, const std::filesystem::path& scratch,
                          const nodes_of_modules& late_nodes,
                          const std::vector<std::filesystem::path>& pipes) {
  // 1, not 0: a kernel that pipes core dumps into a program takes only 1 for none.
  const rlimit no_core{1, 1};
  setrlimit(RLIMIT_CORE, &no_core);
  be_first_to_go();
  const std::string memory = limit_memory();
  // Orphans become children of this process, so that it sees what the plugin leaves behind.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);  // it died before the prctl above
  return enter_landlock(scratch, late_nodes, pipes) + memory;
}

}  // namespace bitnet::probe
