#include "plugin/trust/trust.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ranges>
#include <system_error>
#include <vector>

#include "plugin/codes/text.hpp"
#include "system/limits.hpp"

namespace bitnet::plugin {
namespace {

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

std::string shown(const std::filesystem::path& path) {
  return printable(path.string(), 400);
}

std::string reason_of(int error) {
  return limits::reason(error);
}

file_identity identity_of(const struct stat& s) {
  constexpr int64_t second = 1'000'000'000;
  return {s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size),
          s.st_mtim.tv_sec * second + s.st_mtim.tv_nsec,
          s.st_ctim.tv_sec * second + s.st_ctim.tv_nsec};
}

// Checks owner and mode of one step of the path.
checked<void> check(const std::filesystem::path& path, const struct stat& s) {
  const std::string facts =
      fmt::format("{} (mode {}, owner uid {})", shown(path), octal(s.st_mode), s.st_uid);
  if (s.st_uid != 0 && s.st_uid != geteuid())
    return reject(code::trust_owner,
                  fmt::format("{} must belong to root or to the user that runs bitnet (uid {})",
                              facts, geteuid()),
                  fmt::format("chown root '{}'", shown(path)));
  if (S_ISLNK(s.st_mode)) return {};  // the mode of a link is not used
  const bool is_directory = S_ISDIR(s.st_mode);
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(is_directory && (s.st_mode & S_ISVTX) != 0))
    return reject(code::trust_mode,
                  fmt::format("{} must not be writable by {}", facts,
                              (s.st_mode & S_IWOTH) != 0 ? "everybody" : "its group"),
                  fmt::format("chmod go-w '{}'", shown(path)));
  if (!is_directory && (s.st_mode & (S_ISUID | S_ISGID)) != 0)
    return reject(code::trust_mode, fmt::format("{} must not be setuid or setgid", facts),
                  fmt::format("chmod ug-s '{}'", shown(path)));
  return {};
}

std::unexpected<defect> missing(const std::filesystem::path& path, const std::string& why) {
  return std::unexpected(defect{code::trust_missing, BITNET_UNAVAILABLE,
                                fmt::format("cannot open {}: {}", shown(path), why), ""});
}

}  // namespace

file_descriptor::~file_descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

// The position of a walk: a folder and its parents, and a name in it. Each is held open, so that
// the next step starts from what was checked.
class walk {
 public:
  explicit walk(missing_directory what = missing_directory::is_an_error) : missing_(what) {}

  // Walks to `path` and checks each step. Links are followed and must be trusted themselves, since
  // their owner decides the target. last() takes the last step.
  checked<void> go(const std::filesystem::path& path) {
    asked_ = path;
    if (auto fine = enter_root(); !fine) return fine;
    push(path);
    while (!todo_.empty()) {
      const std::string step = std::move(todo_.back());
      todo_.pop_back();
      if (auto fine = take(step); !fine) return fine;
    }
    return {};
  }

  [[nodiscard]] const file_descriptor& place() const { return chain_.back().fd; }
  [[nodiscard]] const struct stat& seen() const { return chain_.back().seen; }
  [[nodiscard]] const std::filesystem::path& path() const { return chain_.back().path; }
  // Opens the found file for reading, from its folder.
  [[nodiscard]] file_descriptor reopen() const {
    if (chain_.size() < 2) return file_descriptor(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return file_descriptor(::openat(chain_[chain_.size() - 2].fd.get(), path().filename().c_str(),
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }

 private:
  struct link {
    file_descriptor fd;
    struct stat seen{};
    std::filesystem::path path;
  };
  static constexpr int max_links = 40;  // the kernel's limit

  checked<void> enter_root() {
    chain_.clear();
    return enter(::open("/", O_PATH | O_CLOEXEC), "/");
  }

  checked<void> enter(int fd, const std::filesystem::path& path) {
    link next{file_descriptor(fd), {}, path};
    if (fd < 0 || ::fstat(fd, &next.seen) != 0) return missing(asked_, reason_of(errno));
    // First: a device or a pipe is no plugin, whatever its mode.
    if (const mode_t mode = next.seen.st_mode; !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
      return reject(code::trust_kind, fmt::format("{} is not a regular file", shown(path)));
    if (auto fine = check(path, next.seen); !fine) return fine;
    chain_.push_back(std::move(next));
    return {};
  }

  void push(const std::filesystem::path& path) {
    const std::vector<std::filesystem::path> parts(path.begin(), path.end());
    for (const auto& part : std::views::reverse(parts)) todo_.push_back(part.string());
  }

  checked<void> take(const std::string& step) {
    if (step == "/") return enter_root();
    if (step.empty() || step == ".") return {};
    if (step == "..") {
      if (chain_.size() > 1) chain_.pop_back();
      return {};
    }
    const std::filesystem::path next = path() / step;
    if (!S_ISDIR(seen().st_mode)) return missing(asked_, reason_of(ENOTDIR));
    if (auto fine = enter(open_step(step), next); !fine) return fine;
    return S_ISLNK(seen().st_mode) ? follow() : checked<void>();
  }

  [[nodiscard]] int open_step(const std::string& step) const {
    constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    const int fd = ::openat(place().get(), step.c_str(), flags);
    if (fd >= 0 || errno != ENOENT || missing_ != missing_directory::make) return fd;
    // Another process may make it first; it is then judged like any other.
    if (::mkdirat(place().get(), step.c_str(), S_IRWXU) != 0 && errno != EEXIST) return -1;
    return ::openat(place().get(), step.c_str(), flags);
  }

  checked<void> follow() {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(place().get(), "", target.data(), target.size());
    if (size <= 0) return missing(asked_, reason_of(errno));
    if (++links_ > max_links) return missing(asked_, reason_of(ELOOP));
    chain_.pop_back();
    push(std::string(target.data(), static_cast<std::size_t>(size)));
    return {};
  }

  missing_directory missing_;
  std::filesystem::path asked_;
  std::vector<link> chain_;
  std::vector<std::string> todo_;  // in reverse order
  int links_ = 0;
};

// The path as the user would write it, relative to the current directory.
std::filesystem::path from_here(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored);
}

}  // namespace

checked<void> trust_directory(const std::filesystem::path& directory) {
  walk way;
  return way.go(from_here(directory));
}

checked<file_descriptor> open_trusted_directory(const std::filesystem::path& directory,
                                                missing_directory what) {
  walk way(what);
  if (auto fine = way.go(from_here(directory)); !fine)
    return std::unexpected(std::move(fine.error()));
  file_descriptor fd = way.reopen();
  struct stat opened{};
  if (fd.get() < 0 || ::fstat(fd.get(), &opened) != 0) return missing(way.path(), reason_of(errno));
  if (!S_ISDIR(opened.st_mode))
    return reject(code::trust_kind, fmt::format("{} is no directory", shown(way.path())));
  if (opened.st_dev != way.seen().st_dev || opened.st_ino != way.seen().st_ino)
    return reject(code::trust_changed,
                  fmt::format("{} changed while it was being opened", shown(way.path())));
  return fd;
}

checked<trusted_file> open_trusted(const std::filesystem::path& file) {
  walk way;
  if (auto fine = way.go(from_here(file)); !fine) return std::unexpected(std::move(fine.error()));
  const std::filesystem::path& path = way.path();
  if (!S_ISREG(way.seen().st_mode))
    return reject(code::trust_kind,
                  fmt::format("{} is a directory, not a regular file", shown(path)));
  file_descriptor fd = way.reopen();
  struct stat opened{};
  if (fd.get() < 0 || ::fstat(fd.get(), &opened) != 0) return missing(path, reason_of(errno));
  // Both are held open, so no other file can have this inode number meanwhile.
  if (identity_of(way.seen()) != identity_of(opened))
    return reject(code::trust_changed,
                  fmt::format("{} changed while it was being opened", shown(path)));
  return trusted_file{std::move(fd), path, identity_of(opened)};
}

trusted_file duplicate(const trusted_file& file) {
  return {file_descriptor(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)), file.path, file.identity};
}

checked<void> check_unchanged(const trusted_file& file) {
  struct stat s{};
  if (::fstat(file.fd.get(), &s) != 0) return missing(file.path, reason_of(errno));
  // Not the change time: it changes when a new file is renamed over this one, which is harmless.
  const file_identity now = identity_of(s);
  if (now.size_bytes == file.identity.size_bytes && now.modified_ns == file.identity.modified_ns)
    return {};
  return reject(code::trust_changed,
                fmt::format("{} was written to after it was inspected", shown(file.path)),
                "run the command again; replace plugins by renaming a new file over the old one");
}

checked<trusted_file> open_any(const std::filesystem::path& file) {
  file_descriptor fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat s{};
  if (fd.get() < 0 || ::fstat(fd.get(), &s) != 0) return missing(file, reason_of(errno));
  if (!S_ISREG(s.st_mode))
    return reject(code::trust_kind, fmt::format("{} is not a regular file", shown(file)));
  return trusted_file{std::move(fd), file, identity_of(s)};
}

checked<std::string> read_all(const trusted_file& file, uint64_t limit) {
  if (file.identity.size_bytes > limit)
    return reject(code::manifest_size,
                  fmt::format("{} has {} bytes; at most {} are read", shown(file.path),
                              file.identity.size_bytes, limit));
  std::string out(file.identity.size_bytes, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(file.fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return reject(code::manifest_unreadable,
                    fmt::format("cannot read {}: {}", shown(file.path),
                                n < 0 ? reason_of(errno) : "it became shorter"));
    done += static_cast<std::size_t>(n);
  }
  return out;
}

}  // namespace bitnet::plugin
