#include "probe/hygiene.hpp"

#include <fmt/core.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/environment.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;

long umask_now() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Umask:")) return std::strtol(line.c_str() + 6, nullptr, 8);
  return -1;
}

std::set<int> open_descriptors() {
  std::set<int> out;
  std::error_code ignored;
  fs::directory_iterator all("/proc/self/fd", ignored);
  for (; !ignored && all != fs::directory_iterator(); all.increment(ignored)) {
    const int fd = std::atoi(all->path().filename().c_str());
    // Skips the descriptor of this directory scan.
    if (const auto target = fs::read_symlink(all->path(), ignored);
        target.string().ends_with("/fd"))
      continue;
    out.insert(fd);
  }
  return out;
}

const void* address_of(const struct sigaction& action) {
  return reinterpret_cast<const void*>(action.sa_handler);
}

// Whether it is the program's own handler.
bool is_ours(const struct sigaction& action) {
  Dl_info of_it{}, of_us{};
  return dladdr(address_of(action), &of_it) != 0 &&
         dladdr(reinterpret_cast<const void*>(&is_ours), &of_us) != 0 &&
         of_it.dli_fbase == of_us.dli_fbase;
}

// The library of a handler; "" if it is the plugin or unknown.
std::string library_of(const struct sigaction& action) {
  Dl_info info{};
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
      dladdr(address_of(action), &info) == 0 || info.dli_fname == nullptr)
    return "";
  const std::string_view file = info.dli_fname;
  // Plugins are opened through a descriptor.
  if (file.starts_with("/proc/")) return "";
  return fs::path(file).filename().string();
}

std::string name_of_signal(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : "SIG" + std::string(name);
}

void compare_signals(const process_state& before, const process_state& after, breaches& out) {
  std::map<std::string, std::vector<std::string>> handled;  // signals by library
  for (int number = 1; number < NSIG; ++number) {
    const auto& was = before.handlers[static_cast<std::size_t>(number)];
    const auto& is = after.handlers[static_cast<std::size_t>(number)];
    if (address_of(was) == address_of(is) && was.sa_flags == is.sa_flags) continue;
    if (is_ours(is)) continue;
    const std::string name = name_of_signal(number);
    if (const std::string driver = library_of(is); !driver.empty())
      handled[driver].push_back(name);
    else
      out.wrong.push_back(fmt::format("the handler of {}", name));
  }
  for (const auto& [driver, names] : handled)
    out.remarks.push_back(
        fmt::format("{} handles {}", plugin::printable(driver), plugin::join(names, ", ")));
  for (int number = 1; number < NSIG; ++number)
    if (sigismember(&before.blocked, number) != sigismember(&after.blocked, number))
      return out.wrong.emplace_back("the blocked signals"), void();
}

void compare_variables(const process_state& before, const process_state& after, breaches& out) {
  for (const auto& [name, value] : before.variables) {
    const auto now = after.variables.find(name);
    if (now == after.variables.end() || now->second != value)
      out.wrong.push_back(fmt::format("the variable {}", plugin::printable(name, 64)));
  }
  for (const auto& [name, value] : after.variables)
    if (!before.variables.contains(name))
      out.remarks.push_back(fmt::format("the variable {} is new", plugin::printable(name, 64)));
}

}  // namespace

process_state process_state::now() {
  process_state out;
  out.floating_point_modes = plugin::floating_point_modes();
  for (int number = 1; number < NSIG; ++number)
    sigaction(number, nullptr, &out.handlers[static_cast<std::size_t>(number)]);
  pthread_sigmask(SIG_BLOCK, nullptr, &out.blocked);
  const char* locale = setlocale(LC_ALL, nullptr);
  out.locale = locale == nullptr ? "" : locale;
  std::error_code ignored;
  out.folder = fs::current_path(ignored).string();
  out.mask_of_modes = umask_now();
  out.variables = environment::all_variables();
  for (int i = 0; i < static_cast<int>(RLIMIT_NLIMITS); ++i)
    getrlimit(static_cast<__rlimit_resource_t>(i), &out.limits[static_cast<std::size_t>(i)]);
  out.descriptors = open_descriptors();
  return out;
}

breaches compare(const process_state& before, const process_state& after, bool at_end) {
  breaches out;
  if (before.floating_point_modes != after.floating_point_modes)
    out.wrong.emplace_back("the floating-point modes");
  if (before.locale != after.locale) out.wrong.emplace_back("the locale");
  if (before.folder != after.folder) out.wrong.emplace_back("the working folder");
  if (before.mask_of_modes != after.mask_of_modes) out.wrong.emplace_back("the mask of modes");
  const auto same_limit = [](const rlimit& a, const rlimit& b) {
    return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
  };
  if (!std::ranges::equal(before.limits, after.limits, same_limit))
    out.wrong.emplace_back("a limit");
  compare_signals(before, after, out);
  compare_variables(before, after, out);
  if (!at_end) return out;
  const auto open = std::ranges::count_if(after.descriptors,
                                          [&](int fd) { return !before.descriptors.contains(fd); });
  if (open != 0)
    out.remarks.push_back(
        fmt::format("it left {} descriptor{} open after close", open, open == 1 ? "" : "s"));
  return out;
}

}  // namespace bitnet::probe
