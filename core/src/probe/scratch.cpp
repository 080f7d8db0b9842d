#include "probe/scratch.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "plugin/codes/text.hpp"
#include "system/limits.hpp"

namespace bitnet::probe {
namespace {

using plugin::file_descriptor;

constexpr std::string_view prefix = "bitnet-probe-";
constexpr std::size_t random_part = 6;  // mkdtemp's

file_descriptor open_folder(const std::filesystem::path& folder) {
  return file_descriptor(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

bool is_still(const std::filesystem::path& folder, const file_descriptor& opened) {
  struct stat now{};
  struct stat then{};
  return lstat(folder.c_str(), &now) == 0 && fstat(opened.get(), &then) == 0 &&
         now.st_dev == then.st_dev && now.st_ino == then.st_ino;
}

bool is_own(const file_descriptor& folder) {
  constexpr mode_t all = 07777;
  constexpr mode_t mine = 0700;
  struct stat facts{};
  return fstat(folder.get(), &facts) == 0 && facts.st_uid == geteuid() &&
         (facts.st_mode & all) == mine;
}

}  // namespace

std::filesystem::path scratch_place(const std::filesystem::path& wanted) {
  return plugin::trust_directory(wanted) ? wanted : "/tmp";
}

void sweep_scratch_folders(const std::filesystem::path& place) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(place, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + random_part) continue;
    const file_descriptor folder = open_folder(it->path());
    // Locks end with their process. On a file system without locks all folders stay.
    if (folder.get() < 0 || !is_own(folder) || flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
      continue;
    std::error_code refused;
    std::filesystem::remove_all(it->path(), refused);
  }
}

scratch_folder::scratch_folder(const std::filesystem::path& place) {
  const auto fail = [&](int error) {
    problem_ = fmt::format(
        "no folder for what its driver writes can be made in {}: {}; TMPDIR can name another place",
        plugin::printable(place.string(), 400), limits::reason(error));
  };
  // Another process may remove it before it is locked; then try again.
  constexpr int tries = 8;
  for (int i = 0; i < tries; ++i) {
    std::string name = (place / (std::string(prefix) + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) {
      fail(errno);
      return;
    }
    held_ = open_folder(name);
    const bool locked = held_.get() >= 0 && flock(held_.get(), LOCK_EX | LOCK_NB) == 0;
    const bool swept = held_.get() < 0 ? errno == ENOENT : !locked && errno == EWOULDBLOCK;
    if (swept || (locked && !is_still(name, held_))) continue;
    path_ = name;
    return;
  }
  fail(EBUSY);
}

void scratch_folder::remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  path_.clear();
}

}  // namespace bitnet::probe
