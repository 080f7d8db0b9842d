#include "files/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace bitnet::files {
namespace {

std::string name_of(const descriptor& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

}  // namespace

std::expected<new_file, problem> new_file::create(const std::filesystem::path& path,
                                                  write_options how) {
  auto at = find_place(path);
  if (!at) return std::unexpected(at.error());
  return open(*std::move(at), how);
}

std::expected<new_file, problem> new_file::create_in(int folder, const std::string& name,
                                                     write_options how) {
  auto at = find_place(folder, name);
  if (!at) return std::unexpected(at.error());
  return open(*std::move(at), how);
}

std::expected<new_file, problem> new_file::open(place at, write_options how) {
  new_file out;
  out.at_ = std::move(at);
  out.overwrite_ = how.overwrite;
  const auto& found = out.at_.found;
  if (found && S_ISDIR(found->st_mode)) return fail(EISDIR);
  if (found && !how.overwrite) return fail(EEXIST);
  if (found && S_ISLNK(found->st_mode)) return fail(ELOOP, "it is a link");
  if (how.regular_only && (out.at_.nameless || (found && !S_ISREG(found->st_mode))))
    return fail(EEXIST, "it is no regular file; remove it");
  const bool beside = !out.at_.nameless && (!found || S_ISREG(found->st_mode));
  auto fine = beside ? out.open_beside(how.mode) : out.open_in_place();
  if (!fine) return std::unexpected(fine.error());
  return out;
}

new_file::outcome new_file::open_in_place() {
  in_place_ = true;
  constexpr int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC;
  if (at_.nameless)  // perhaps a regular file, whose name may be gone or belong to another file
    file_ = descriptor(::open(name_of(at_.nameless).c_str(), flags | O_TRUNC));
  else
    file_ = descriptor(::openat(at_.folder.get(), at_.name.c_str(), flags | O_NOFOLLOW));
  struct stat s{};
  if (!file_ || ::fstat(file_.get(), &s) != 0) return fail(errno);
  if (at_.found && (s.st_dev != at_.found->st_dev || s.st_ino != at_.found->st_ino))
    return fail(EAGAIN, "it became another file while it was being opened");
  return {};
}

new_file::outcome new_file::open_beside(mode_t mode) {
  const int folder = at_.folder.get();
  if (at_.found) {
    // Renaming needs rights to the folder only. A user who may not write the old file must not
    // replace it.
    if (::faccessat(folder, at_.name.c_str(), W_OK, AT_EACCESS) != 0) return fail(errno);
    mode = S_IRUSR | S_IWUSR;  // until finish() copies the old file's mode
  }
  // A file without a name can only be named through /proc.
  const bool can_be_named = ::access("/proc/self/fd", X_OK) == 0;
  if (can_be_named) {
    const int nameless = ::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    const int error = errno;
    file_ = descriptor(nameless);
    if (nameless >= 0) return {};
    if (error == ENOENT || error == EACCES || error == EROFS) return fail(error);
  }
  std::string part = name_beside();
  file_ = descriptor(
      ::openat(folder, part.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file_) return fail(errno);
  part_ = std::move(part);
  return {};
}

std::string new_file::name_beside() const {
  static std::atomic<uint32_t> counter{0};
  // File names have at most 255 bytes.
  return at_.name.substr(0, 200) + "." + std::to_string(::getpid()) + "." +
         std::to_string(counter.fetch_add(1)) + ".part";
}

new_file::new_file(new_file&& other) noexcept
    : at_(std::move(other.at_)),
      file_(std::move(other.file_)),
      part_(std::exchange(other.part_, {})),
      overwrite_(other.overwrite_),
      in_place_(other.in_place_) {}

new_file::~new_file() {
  discard();
}

void new_file::discard() {
  if (!part_.empty()) ::unlinkat(at_.folder.get(), part_.c_str(), 0);
  part_.clear();
}

new_file::outcome new_file::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

new_file::outcome new_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

std::filesystem::path new_file::readable_path() const {
  return name_of(file_);
}

new_file::outcome new_file::take_over_owner_and_mode() const {
  if (!at_.found) return {};
  const struct stat& old = *at_.found;
  struct stat mine{};
  if (::fstat(file_.get(), &mine) != 0) return fail(errno);
  constexpr mode_t kept = 0777;  // no setuid or setgid: the content is new
  // The group first: after fchown of the owner this process may not change it. If neither is
  // permitted, this user owns the file, as with any program that replaces one.
  if (mine.st_gid != old.st_gid && ::fchown(file_.get(), static_cast<uid_t>(-1), old.st_gid) != 0 &&
      errno != EPERM)
    return fail(errno);
  if (mine.st_uid != old.st_uid && ::fchown(file_.get(), old.st_uid, static_cast<gid_t>(-1)) != 0 &&
      errno != EPERM)
    return fail(errno);
  if (::fchmod(file_.get(), old.st_mode & kept) != 0 && errno != EPERM) return fail(errno);
  return {};
}

new_file::outcome new_file::give_name() {
  const int folder = at_.folder.get();
  const char* const name = at_.name.c_str();
  if (part_.empty()) {
    // An unnamed file cannot replace an existing name, so it gets another name first, which is then
    // moved.
    const std::string own = name_of(file_);
    if (::linkat(AT_FDCWD, own.c_str(), folder, name, AT_SYMLINK_FOLLOW) == 0) return {};
    if (errno != EEXIST || !overwrite_) return fail(errno);
    std::string beside = name_beside();
    if (::linkat(AT_FDCWD, own.c_str(), folder, beside.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return fail(errno);
    part_ = std::move(beside);
  }
  if (!overwrite_)  // the destructor removes the other name
    return ::linkat(folder, part_.c_str(), folder, name, 0) == 0 ? outcome() : fail(errno);
  struct stat now{};
  if (::fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(now.st_mode))
    return fail(EEXIST, "something that is not a regular file took its name meanwhile");
  if (::renameat(folder, part_.c_str(), folder, name) != 0) return fail(errno);
  part_.clear();
  return {};
}

new_file::outcome new_file::finish(flush to_disk) {
  if (in_place_) {
    // A full disk or an exhausted quota may show only now. Pipes and terminals do not support
    // fsync.
    if (to_disk == flush::yes && ::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS &&
        errno != ENOTSUP)
      return fail(errno);
    return {};
  }
  if (auto fine = take_over_owner_and_mode(); !fine) return fine;
  if (to_disk == flush::yes && ::fsync(file_.get()) != 0) return fail(errno);
  if (auto fine = give_name(); !fine) return fine;
  discard();
  if (to_disk == flush::yes) {
    // Flushes the folder, which has the name. A folder that cannot be opened is no failure.
    const descriptor folder(::openat(at_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) (void)::fsync(folder.get());
  }
  return {};
}

new_file::outcome write_file(const std::filesystem::path& path, std::string_view text,
                             write_options how) {
  auto file = new_file::create(path, how);
  if (!file) return std::unexpected(file.error());
  if (auto fine = file->write(text); !fine) return fine;
  return file->finish();
}

}  // namespace bitnet::files
