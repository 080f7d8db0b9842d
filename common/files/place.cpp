#include "files/place.hpp"
#include "system/limits.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

namespace bitnet::files {

std::unexpected<problem> fail(int error, std::string why) {
  if (why.empty()) why = limits::reason(error);
  return std::unexpected(problem{error, std::move(why)});
}

namespace {

constexpr int max_links = 40;  // the kernel's limit

class walk {
 public:
  std::expected<place, problem> go(const std::filesystem::path& path) {
    folder_ = descriptor(::open(path.is_absolute() ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) return fail(errno);
    push(path);
    place out;
    while (!steps_.empty()) {
      const std::string step = std::move(steps_.back());
      steps_.pop_back();
      if (auto fine = take(step, out); !fine) return std::unexpected(fine.error());
    }
    // "", ".", "..", "/" and paths that end in a slash are folders.
    if (!out.nameless && out.name.empty()) return fail(EISDIR);
    if (own_link_ && !out.nameless) {
      struct stat s{};
      if (::fstat(folder_.get(), &s) != 0) return fail(errno);
      if (s.st_uid != 0 && s.st_uid != ::geteuid())
        return fail(EACCES, "a link leads into a folder of uid " + std::to_string(s.st_uid) +
                                "; name the file itself");
    }
    out.folder = std::move(folder_);
    return out;
  }

 private:
  void push(const std::filesystem::path& path) {
    const std::vector<std::filesystem::path> parts(path.begin(), path.end());
    for (const auto& part : std::views::reverse(parts)) steps_.push_back(part.string());
  }

  std::expected<void, problem> enter(descriptor next) {
    if (!next) return fail(errno);
    folder_ = std::move(next);
    return {};
  }

  // Takes one step: into a folder, or, as the last step, to the file.
  std::expected<void, problem> take(const std::string& step, place& out) {
    if (step == "/") return enter(descriptor(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
    if (step.empty() || step == ".") return {};
    if (step == "..")
      return enter(descriptor(::openat(folder_.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC)));
    const bool last = steps_.empty();
    struct stat s{};
    descriptor next(::openat(folder_.get(), step.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT && last) {
      out.name = step;
      return {};
    }
    if (!next || ::fstat(next.get(), &s) != 0) return fail(errno);
    if (S_ISLNK(s.st_mode)) return follow(next, step, s, out);
    if (!last) return S_ISDIR(s.st_mode) ? enter(std::move(next)) : fail(ENOTDIR);
    out.name = step;
    out.found = s;
    return {};
  }

  std::expected<void, problem> follow(const descriptor& link, const std::string& step,
                                      const struct stat& s, place& out) {
    if (s.st_uid != 0 && s.st_uid != ::geteuid())
      return fail(EACCES, "'" + step + "' is a link of uid " + std::to_string(s.st_uid) +
                              ", which could change where it leads; name the file itself");
    std::array<char, PATH_MAX> text{};
    const ssize_t size = ::readlinkat(link.get(), "", text.data(), text.size());
    if (size <= 0) return fail(errno);
    if (++links_ > max_links) return fail(ELOOP);
    std::string target(text.data(), static_cast<std::size_t>(size));
    if (is_open_file(link, target)) return take_open_file(step, out);
    own_link_ = own_link_ || s.st_uid != 0;
    push(std::move(target));
    return {};
  }

  // The links in /proc/<pid>/fd of unnamed files have no real path as target: "pipe:[81]".
  static bool is_open_file(const descriptor& link, const std::string& target) {
    struct statfs system{};
    if (::fstatfs(link.get(), &system) != 0 || system.f_type != PROC_SUPER_MAGIC) return false;
    return target.starts_with('/') || target.find(":[") != std::string::npos;
  }

  std::expected<void, problem> take_open_file(const std::string& step, place& out) {
    descriptor next(::openat(folder_.get(), step.c_str(), O_PATH | O_CLOEXEC));
    struct stat s{};
    if (!next || ::fstat(next.get(), &s) != 0) return fail(errno);
    if (!steps_.empty()) return S_ISDIR(s.st_mode) ? enter(std::move(next)) : fail(ENOTDIR);
    out.found = s;
    out.nameless = std::move(next);
    return {};
  }

  descriptor folder_;
  std::vector<std::string> steps_;  // in reverse order
  bool own_link_ = false;           // a link that the effective user owns was followed
  int links_ = 0;
};

}  // namespace

std::expected<place, problem> find_place(const std::filesystem::path& path) {
  return walk().go(path);
}

std::expected<place, problem> find_place(int folder, const std::string& name) {
  place out;
  out.folder = descriptor(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  if (!out.folder) return fail(errno);
  out.name = name;
  struct stat s{};
  if (::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0)
    out.found = s;
  else if (errno != ENOENT)
    return fail(errno);
  return out;
}

}  // namespace bitnet::files
