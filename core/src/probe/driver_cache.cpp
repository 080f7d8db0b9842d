#include "probe/driver_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "plugin/trust/trust.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;

// Size of all files, without following links.
uint64_t bytes_below(const fs::path& folder) {
  uint64_t out = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    struct stat facts{};
    // The blocks in use, not the length: holes cost nothing.
    if (lstat(at->path().c_str(), &facts) == 0) out += static_cast<uint64_t>(facts.st_blocks) * 512;
  }
  return out;
}

}  // namespace

fs::path open_driver_cache(const fs::path& folder) {
  constexpr mode_t all = 07777;
  constexpr mode_t mine = 0700;
  if (mkdir(folder.c_str(), mine) != 0 && errno != EEXIST) return {};
  const plugin::file_descriptor opened(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (opened.get() < 0 || fstat(opened.get(), &facts) != 0 || facts.st_uid != geteuid() ||
      (facts.st_mode & all) != mine || !plugin::trust_directory(folder))
    return {};
  return folder;
}

void bound_driver_cache(const fs::path& folder, uint64_t most_bytes) {
  if (most_bytes != 0 && bytes_below(folder) <= most_bytes) return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace bitnet::probe
