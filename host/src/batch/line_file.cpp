#include "batch/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <utility>

#include "files/place.hpp"
#include "system/limits.hpp"

namespace bitnet::host::batch {
namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr std::chrono::seconds between_syncs{1};

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns the open file, or errno with the reason.
std::expected<files::descriptor, files::problem> open_regular(const files::place& at) {
  constexpr int how = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  if (at.nameless || (at.found && !S_ISREG(at.found->st_mode)))
    return files::fail(EINVAL, "it is no regular file, which a later run could go on with");
  files::descriptor file(::openat(at.folder.get(), at.name.c_str(), how, 0666));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return files::fail(errno);
  if (!S_ISREG(facts.st_mode))
    return files::fail(EINVAL, "it is no regular file, which a later run could go on with");
  return file;
}

}  // namespace

std::unexpected<failure> line_file::broken(int error) const {
  return fail(
      exit_code::failure,
      fmt::format("cannot write {}: {}; it has the answers until now. Mend this, and the same "
                  "command goes on where this one stopped",
                  path_, limits::reason(error)));
}

result<line_file> line_file::open(const std::string& path, std::span<const other_file> others) {
  const auto at = files::find_place(path);
  if (!at) return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, at.error().text));
  auto file = open_regular(*at);
  if (!file)
    return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, file.error().text));
  line_file out(path, *std::move(file));
  const int fd = out.file_.get();
  struct stat mine{};
  struct stat other{};
  if (::fstat(fd, &mine) != 0) return out.broken(errno);
  for (const other_file& one : others)
    if (::fstat(one.descriptor, &other) == 0 && same_file(mine, other))
      return fail(exit_code::usage,
                  fmt::format("{} is {} too; name another output", path, one.what));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return out.broken(errno);
    return fail(
        exit_code::failure,
        fmt::format("another process writes {}; wait for it, or name another output", path));
  }
  if (::fstatat(at->folder.get(), at->name.c_str(), &other, AT_SYMLINK_NOFOLLOW) != 0 ||
      !same_file(mine, other))
    return fail(exit_code::failure,
                fmt::format("{} was replaced while it was opened; run the command again", path));
  return out;
}

result<std::string> line_file::read(
    std::size_t longest, const char* what,
    const std::function<result<void>(std::string_view line)>& take) {
  std::string buffer;
  std::size_t searched = 0;
  uint64_t offset = 0;
  bytes_ = 0;
  while (true) {
    const std::size_t before = buffer.size();
    buffer.resize(before + read_bytes);
    const ssize_t n =
        ::pread(file_.get(), buffer.data() + before, read_bytes, static_cast<off_t>(offset));
    if (n < 0 && errno != EINTR)
      return fail(exit_code::failure,
                  fmt::format("cannot read {}: {}", path_, limits::reason(errno)));
    buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    offset += static_cast<uint64_t>(std::max<ssize_t>(n, 0));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = buffer.find('\n', searched)) != std::string::npos;) {
      const std::string_view line(buffer.data() + begin, end - begin);
      if (auto ok = take(line); !ok) return std::unexpected(ok.error());
      bytes_ += end + 1 - begin;
      begin = searched = end + 1;
    }
    buffer.erase(0, begin);
    searched = buffer.size();
    if (n == 0) return buffer;
    if (buffer.size() > longest)
      return fail(
          exit_code::usage,
          fmt::format("{} has a line that is too long for {}; name another output", path_, what));
  }
}

result<void> line_file::cut(uint64_t bytes) {
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) return broken(errno);
  bytes_ = bytes;
  return {};
}

result<void> line_file::append(std::string_view lines) {
  for (std::size_t done = 0; done < lines.size();) {
    const ssize_t n = ::write(file_.get(), lines.data() + done, lines.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      (void)!::ftruncate(file_.get(), static_cast<off_t>(bytes_));  // else the next run does it
      return broken(error);
    }
    done += static_cast<std::size_t>(n);
  }
  bytes_ += lines.size();
  is_synced_ = false;
  return is_due() ? sync() : result<void>{};
}

bool line_file::is_due() const {
  return std::chrono::steady_clock::now() - synced_ >= between_syncs;
}

result<void> line_file::sync() {
  if (!is_synced_ && ::fdatasync(file_.get()) != 0) return broken(errno);
  is_synced_ = true;
  synced_ = std::chrono::steady_clock::now();
  return {};
}

}  // namespace bitnet::host::batch
