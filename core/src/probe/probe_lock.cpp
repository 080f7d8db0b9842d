#include "probe/probe_lock.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "plugin/codes/text.hpp"
#include "system/limits.hpp"

namespace bitnet::probe {

using plugin::file_descriptor;

std::optional<probe_lock> probe_lock::take(const std::filesystem::path& file,
                                           const std::function<bool()>& give_up,
                                           std::string* problem) {
  file_descriptor held(
      open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat facts{};
  const auto unusable = [&](const std::string& why) {
    if (problem != nullptr)
      *problem = fmt::format("{}: {}", plugin::printable(file.string(), 400), why);
    return std::nullopt;
  };
  if (held.get() < 0 || fstat(held.get(), &facts) != 0) return unusable(limits::reason(errno));
  if (!S_ISREG(facts.st_mode)) return unusable("it is no regular file; remove it");
  while (flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return unusable(limits::reason(errno));
    if (give_up()) return std::nullopt;
  }
  return probe_lock(std::move(held));
}

void probe_lock::mark(bool under_way) const {
  if (ftruncate(held_.get(), 0) != 0 || !under_way) return;
  const char word = '1';
  [[maybe_unused]] const ssize_t n = pwrite(held_.get(), &word, 1, 0);
}

uint64_t under_way_ms(const std::filesystem::path& file) {
  struct stat facts{};
  if (lstat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) return 0;
  const auto since =
      std::chrono::seconds(facts.st_mtim.tv_sec) + std::chrono::nanoseconds(facts.st_mtim.tv_nsec);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (now < since) return 0;  // the clock was set back
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count());
}

}  // namespace bitnet::probe
