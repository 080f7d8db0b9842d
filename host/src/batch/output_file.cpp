#include "batch/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "batch/batch_line.hpp"
#include "files/place.hpp"
#include "system/limits.hpp"
#include "text/printable.hpp"

namespace bitnet::host::batch {
namespace {

// A line of an output: the embeddings of many texts. What is longer was not written here.
constexpr std::size_t longest_output_line = std::size_t{1} << 30;
constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr std::chrono::seconds between_syncs{1};

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The file, or errno with the reason.
std::expected<files::descriptor, files::problem> open_regular(const files::place& at) {
  constexpr int how = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  if (at.nameless || (at.found && !S_ISREG(at.found->st_mode)))
    return files::refuse(EINVAL, "it is no regular file, which a later run could go on with");
  files::descriptor file(::openat(at.folder.get(), at.name.c_str(), how, 0666));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return files::refuse(errno);
  if (!S_ISREG(facts.st_mode))
    return files::refuse(EINVAL, "it is no regular file, which a later run could go on with");
  return file;
}

}  // namespace

std::unexpected<failure> output_file::broken(int error) const {
  return fail(exit_code::failure,
              fmt::format("cannot write {}: {}; what was answered is in it, and the same command "
                          "goes on",
                          path_, limits::reason(error)));
}

result<output_file> output_file::open(const std::string& path, int input, const shard& part,
                                      const std::string& fingerprint, written& already) {
  const auto at = files::find_place(path);
  if (!at) return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, at.error().text));
  auto file = open_regular(*at);
  if (!file)
    return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, file.error().text));
  output_file out(path, *std::move(file));
  const int fd = out.file_.get();
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return out.broken(errno);
    return fail(
        exit_code::failure,
        fmt::format("another process writes {}; wait for it, or name another output", path));
  }
  struct stat mine{};
  struct stat other{};
  if (::fstat(fd, &mine) != 0) return out.broken(errno);
  if (::fstat(input, &other) == 0 && same_file(mine, other))
    return fail(exit_code::usage, fmt::format("{} is the input too; name another output", path));
  if (::fstatat(at->folder.get(), at->name.c_str(), &other, AT_SYMLINK_NOFOLLOW) != 0 ||
      !same_file(mine, other))
    return fail(exit_code::failure,
                fmt::format("{} was replaced while it was opened; run the command again", path));
  if (auto ok = out.read(part, fingerprint, already); !ok) return std::unexpected(ok.error());
  return out;
}

result<void> output_file::read_line(std::string_view line, const shard& part,
                                    const std::string& fingerprint, written& already) const {
  ++already.n;
  const auto refuse = [&](std::string_view why) {
    return fail(exit_code::usage,
                fmt::format("line {} of {} {}; name another output", already.n, path_, why));
  };
  const auto about = read_written_line(line);
  if (!about) return refuse("is no answer of a batch");
  if (!about->fingerprint.empty() && about->fingerprint != fingerprint)
    return refuse(fmt::format("is an answer of another model ({}, and this one is {})",
                              text::printable(about->fingerprint), fingerprint));
  const bool is_mine =
      about->custom_id.empty() ? part.has_line(about->number) : part.has(about->custom_id);
  if (!is_mine) return refuse("belongs to another --shard");
  const bool is_new = about->custom_id.empty() ? already.lines.insert(about->number).second
                                               : already.ids.add_answered(about->custom_id);
  if (!is_new) return refuse("answers what an earlier line has answered");
  return {};
}

// What is behind the last whole line. A file that is none of ours stays as it is.
result<void> output_file::remove_rest(std::string_view rest, written& already) {
  const std::size_t n = std::min(rest.size(), output_prefix.size());
  if (already.n == 0 && rest.substr(0, n) != output_prefix.substr(0, n))
    return fail(exit_code::usage,
                fmt::format("{} is no output of a batch; name another output", path_));
  already.cut_bytes = rest.size();
  if (rest.empty()) return {};
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) return broken(errno);
  return {};
}

result<void> output_file::read(const shard& part, const std::string& fingerprint,
                               written& already) {
  std::string buffer;
  std::size_t searched = 0;
  uint64_t offset = 0;
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
      if (auto ok = read_line(line, part, fingerprint, already); !ok) return ok;
      begin = searched = end + 1;
    }
    bytes_ += begin;
    buffer.erase(0, begin);
    searched = buffer.size();
    if (n == 0) return remove_rest(buffer, already);
    if (buffer.size() > longest_output_line)
      return fail(
          exit_code::usage,
          fmt::format("{} has a line that is too long for an answer; name another output", path_));
  }
}

result<void> output_file::append(std::string_view line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(file_.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      (void)!::ftruncate(file_.get(), static_cast<off_t>(bytes_));  // else the next run does it
      return broken(error);
    }
    done += static_cast<std::size_t>(n);
  }
  bytes_ += line.size();
  is_synced_ = false;
  const auto now = std::chrono::steady_clock::now();
  return now - synced_ < between_syncs ? result<void>{} : sync();
}

result<void> output_file::sync() {
  if (!is_synced_ && ::fdatasync(file_.get()) != 0) return broken(errno);
  is_synced_ = true;
  synced_ = std::chrono::steady_clock::now();
  return {};
}

}  // namespace bitnet::host::batch
