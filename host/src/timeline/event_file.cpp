#include "timeline/event_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "basic/output.hpp"
#include "files/place.hpp"
#include "system/limits.hpp"
#include "timeline/clock.hpp"

namespace bitnet::host::timeline {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t flush_bytes = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds flush_after = 250ms;
constexpr uint64_t kept_for_end = 1024;  // most bytes of the last two events

// Whether the file is empty or begins like a trace. Other contents may be valuable.
bool may_be_replaced(int fd) {
  std::array<char, 3> begin{};
  const ssize_t n = ::pread(fd, begin.data(), begin.size(), 0);
  return n == 0 || (n >= 2 && begin[0] == '[' && begin[1] == '\n' && (n == 2 || begin[2] == '{'));
}

std::expected<files::descriptor, files::problem> open_at(const files::place& at) {
  constexpr int how = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  constexpr const char* not_regular = "it is no regular file";
  if (at.nameless || (at.found && !S_ISREG(at.found->st_mode)))
    return files::fail(EINVAL, not_regular);
  files::descriptor file(::openat(at.folder.get(), at.name.c_str(), how, 0666));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) return files::fail(errno);
  if (!S_ISREG(facts.st_mode)) return files::fail(EINVAL, not_regular);
  if (!may_be_replaced(file.get()))
    return files::fail(EEXIST, "it is there and is no trace; remove it, or name another file");
  if (::ftruncate(file.get(), 0) != 0) return files::fail(errno);
  return file;
}

std::string instant(std::string_view name, std::string_view args) {
  return fmt::format(R"({{"name":"{}","ph":"i","s":"g","pid":1,"tid":1,"ts":{},"args":{{{}}}}})",
                     name, microseconds(now_ns()), args);
}

}  // namespace

result<std::unique_ptr<event_file>> event_file::open(const std::string& path, uint64_t most_bytes) {
  const auto at = files::find_place(path);
  if (!at) return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, at.error().text));
  auto file = open_at(*at);
  if (!file)
    return fail(exit_code::usage, fmt::format("cannot write {}: {}", path, file.error().text));
  std::unique_ptr<event_file> out(new event_file(path, *std::move(file), most_bytes));
  out->waiting_ = "[\n";
  out->bytes_ = out->waiting_.size();
  return out;
}

event_file::event_file(std::string path, files::descriptor file, uint64_t most_bytes)
    : path_(std::move(path)),
      most_bytes_(std::max(most_bytes, least_bytes)),
      file_(std::move(file)),
      flushed_(std::chrono::steady_clock::now()) {}

void event_file::add(std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (error_ != 0 || bytes_ + event.size() + 2 + kept_for_end > most_bytes_) {
    // Marks in the file where events are missing, in case the program is killed.
    ++n_dropped_;
    if (error_ == 0 && !std::exchange(is_full_, true))
      append(instant("events are dropped from here on",
                     fmt::format(R"("bound_bytes":{})", most_bytes_)));
    return;
  }
  append(event);
  const auto now = std::chrono::steady_clock::now();
  if (waiting_.size() < flush_bytes && now - flushed_ < flush_after) return;
  flushed_ = now;
  flush();
}

void event_file::drop() {
  const std::lock_guard lock(mutex_);
  ++n_dropped_;
}

// Commas separate events, so that the file is JSON once the array has its end.
void event_file::append(std::string_view event) {
  const std::size_t before = waiting_.size();
  if (bytes_ > 2) waiting_ += ",\n";
  waiting_ += event;
  bytes_ += waiting_.size() - before;
  ++n_waiting_;
}

// Removes a partly written event, so that the file ends with a complete one.
void event_file::flush() {
  const uint64_t written = bytes_ - waiting_.size();
  if (error_ == 0 && !write_all(file_.get(), waiting_)) {
    error_ = errno;
    static_cast<void>(::ftruncate(file_.get(), static_cast<off_t>(written)));
  }
  if (error_ == 0) {
    n_written_ += n_waiting_;
  } else {
    n_dropped_ += n_waiting_;
    bytes_ = written;
  }
  n_waiting_ = 0;
  waiting_.clear();
}

result<void> event_file::finish() {
  const std::lock_guard lock(mutex_);
  flush();
  if (error_ == 0) append_end();
  if (error_ == 0) return {};
  return fail(exit_code::failure, fmt::format("cannot write {}: {}; {} events are not in it", path_,
                                              limits::reason(error_), n_dropped_));
}

void event_file::append_end() {
  append(instant("end of trace",
                 fmt::format(R"("events":{},"dropped_events":{})", n_written_, n_dropped_)));
  waiting_ += "\n]\n";
  bytes_ += 3;
  flush();
}

}  // namespace bitnet::host::timeline
