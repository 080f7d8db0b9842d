#include "session/file_mark.hpp"

#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <system_error>

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;

constexpr int64_t ns_of_a_second = 1'000'000'000;
constexpr int most_links = 40;  // the kernel's limit

int64_t ns_of(const timespec& t) {
  return int64_t{t.tv_sec} * ns_of_a_second + t.tv_nsec;
}

}  // namespace

file_mark mark_of(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino, static_cast<uint64_t>(facts.st_size), ns_of(facts.st_mtim),
          ns_of(facts.st_ctim)};
}

std::set<std::string> folders_on_the_way(const std::string& path) {
  std::set<std::string> out;
  const fs::path whole(path);
  std::deque<fs::path> left(whole.begin(), whole.end());
  fs::path at = "/";
  for (int links = 0; !left.empty();) {
    const fs::path name = left.front();
    left.pop_front();
    if (name.is_absolute() || name.empty() || name == ".") continue;
    if (name == "..") {
      at = at.parent_path();
      continue;
    }
    out.insert(at.string());
    std::error_code is_none;
    const fs::path target = fs::read_symlink(at / name, is_none);
    if (is_none) {
      at /= name;
      continue;
    }
    if (++links > most_links) break;
    left.insert(left.begin(), target.begin(), target.end());
    if (target.is_absolute()) at = "/";
  }
  return out;
}

}  // namespace bitnet::host
