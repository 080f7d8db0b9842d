#include "plugin/trust.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "plugin/text.hpp"

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
  return std::generic_category().message(error);
}

file_identity identity_of(const struct stat& s) {
  constexpr int64_t second = 1'000'000'000;
  return {s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size),
          s.st_mtim.tv_sec * second + s.st_mtim.tv_nsec,
          s.st_ctim.tv_sec * second + s.st_ctim.tv_nsec};
}

// Owner and mode of one link of the chain.
checked<void> check(const std::filesystem::path& path, const struct stat& s) {
  const std::string facts =
      shown(path) + " (mode " + octal(s.st_mode) + ", owner uid " + std::to_string(s.st_uid) + ")";
  if (s.st_uid != 0 && s.st_uid != geteuid())
    return reject(code::trust_owner,
                  facts + " must belong to root or to the user that runs bitnet (uid " +
                      std::to_string(geteuid()) + ")",
                  "chown root '" + shown(path) + "'");
  const bool is_directory = S_ISDIR(s.st_mode);
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(is_directory && (s.st_mode & S_ISVTX) != 0))
    return reject(code::trust_mode,
                  facts + " must not be writable by " +
                      ((s.st_mode & S_IWOTH) != 0 ? "everybody" : "its group"),
                  "chmod go-w '" + shown(path) + "'");
  if (!is_directory && (s.st_mode & (S_ISUID | S_ISGID)) != 0)
    return reject(code::trust_mode, facts + " must not be setuid or setgid",
                  "chmod ug-s '" + shown(path) + "'");
  return {};
}

checked<void> check_chain(std::filesystem::path directory) {
  for (;; directory = directory.parent_path()) {
    struct stat s{};
    if (::lstat(directory.c_str(), &s) != 0)
      return reject(code::trust_missing,
                    "cannot look at " + shown(directory) + ": " + reason_of(errno));
    if (auto fine = check(directory, s); !fine) return fine;
    if (directory == directory.root_path()) return {};
  }
}

std::unexpected<defect> missing(const std::filesystem::path& path, const std::string& why) {
  return std::unexpected(defect{code::trust_missing, BITNET_UNAVAILABLE,
                                "cannot open " + shown(path) + ": " + why, ""});
}

}  // namespace

file_descriptor::~file_descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

checked<void> trust_directory(const std::filesystem::path& directory) {
  std::error_code error;
  const auto path = std::filesystem::canonical(directory, error);
  if (error) return missing(directory, error.message());
  return check_chain(path);
}

checked<trusted_file> open_trusted(const std::filesystem::path& file) {
  std::error_code error;
  const auto path = std::filesystem::canonical(file, error);
  if (error) return missing(file, error.message());

  // O_PATH first: opening a device or a pipe for reading can have effects or block.
  const file_descriptor place(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat seen{};
  if (place.get() < 0 || ::fstat(place.get(), &seen) != 0) return missing(path, reason_of(errno));
  if (!S_ISREG(seen.st_mode))
    return reject(code::trust_kind,
                  shown(path) + (S_ISDIR(seen.st_mode) ? " is a directory, not a regular file"
                                                       : " is not a regular file"));
  if (auto fine = check(path, seen); !fine) return std::unexpected(fine.error());
  if (auto fine = check_chain(path.parent_path()); !fine) return std::unexpected(fine.error());

  file_descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat opened{};
  if (fd.get() < 0 || ::fstat(fd.get(), &opened) != 0) return missing(path, reason_of(errno));
  if (identity_of(seen) != identity_of(opened))
    return reject(code::trust_changed, shown(path) + " changed while it was being opened");
  return trusted_file{std::move(fd), path, identity_of(opened)};
}

checked<std::string> read_all(const trusted_file& file, uint64_t limit) {
  if (file.identity.size_bytes > limit)
    return reject(code::manifest_size,
                  shown(file.path) + " has " + std::to_string(file.identity.size_bytes) +
                      " bytes; at most " + std::to_string(limit) + " are read");
  std::string out(file.identity.size_bytes, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(file.fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return reject(code::manifest_unreadable,
                    "cannot read " + shown(file.path) + ": " +
                        (n < 0 ? reason_of(errno) : "it became shorter"));
    done += static_cast<std::size_t>(n);
  }
  return out;
}

}  // namespace bitnet::plugin
