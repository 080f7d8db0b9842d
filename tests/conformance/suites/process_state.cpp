#include "suites/process_state.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace bitnet::conformance {
namespace {

uint64_t entries(const char* folder) {
  uint64_t n = 0;
  DIR* all = opendir(folder);
  if (all == nullptr) return 0;
  while (readdir(all) != nullptr) ++n;
  closedir(all);
  return n - 2;  // . and ..
}

std::string line_of_status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return line.substr(key.size() + 1);
  return "";
}

}  // namespace

uint64_t floating_point_modes() {
#if defined(__x86_64__)
  constexpr unsigned flags = 0x3f;  // what happened, not how to compute
  uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (_mm_getcsr() & ~flags) | static_cast<uint64_t>(x87) << 32;
#elif defined(__aarch64__)
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return static_cast<uint64_t>(std::fegetround());
#endif
}

std::map<std::string, std::string> process_state() {
  std::map<std::string, std::string> out;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%p %x", reinterpret_cast<void*>(action.sa_handler),
                  static_cast<unsigned>(action.sa_flags));
    out["handler of signal " + std::to_string(number)] = text;
  }
  out["blocked signals"] = line_of_status("SigBlk");
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const auto equals = text.find('=');
    out["variable " + text.substr(0, equals)] = text.substr(equals + 1);
  }
  out["locale"] = setlocale(LC_ALL, nullptr);
  out["working folder"] = std::filesystem::current_path().string();
  out["mask of modes"] = line_of_status("Umask");
  out["floating-point modes"] = std::to_string(floating_point_modes());
  return out;
}

std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after) {
  std::string out;
  const auto say = [&](const std::string& key) { out += (out.empty() ? "" : ", ") + key; };
  for (const auto& [key, value] : before) {
    const auto now = after.find(key);
    if (now == after.end() || now->second != value) say(key);
  }
  for (const auto& [key, value] : after)
    if (!before.contains(key)) say(key);
  return out;
}

uint64_t running_threads() {
  return entries("/proc/self/task");
}
uint64_t threads_left(uint64_t expected) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    const uint64_t now = running_threads();
    if (now <= expected || steady_clock::now() > until) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
uint64_t open_descriptors() {
  return entries("/proc/self/fd") - 1;  // that of the folder itself
}
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool is_mapped(const std::string& file) {
  const std::string path = std::filesystem::weakly_canonical(file).string();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(path)) return true;
  return false;
}

}  // namespace bitnet::conformance
