#include "crossval/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "system/limits.hpp"
#include "text/printable.hpp"

namespace bitnet::host::crossval {
namespace {

constexpr std::size_t errors_kept = 4096;        // bytes of its standard error
constexpr int lines_shown = 3;                   // of errors_kept, in a message
constexpr std::size_t longest_text_shown = 600;  // bytes
constexpr std::string_view last_words = "; its last lines: ";
constexpr auto longest_end = std::chrono::seconds(2);  // wait after the last byte
constexpr int end_look_ms = 5;
constexpr int look_ms = 100;  // polling interval of `stop`

// A memory file with this content, positioned at its beginning.
std::optional<files::descriptor> memory_file(std::string_view content) {
  files::descriptor out(::memfd_create("prompts", MFD_CLOEXEC));
  if (!out) return std::nullopt;
  while (!content.empty()) {
    const ssize_t n = ::write(out.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::lseek(out.get(), 0, SEEK_SET) != 0) return std::nullopt;
  return out;
}

struct pipe_ends {
  files::descriptor from, to;
};
std::optional<pipe_ends> new_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return pipe_ends{files::descriptor(ends[0]), files::descriptor(ends[1])};
}

std::unexpected<failure> no_process() {
  return fail(exit_code::failure,
              fmt::format("the process for the other engine cannot be started: {}",
                          limits::shortage(errno)));
}

// Calls only functions that are safe after fork() in a process with threads.
[[noreturn]] void become(char* const* words, int in, int out, int err) {
  ::signal(SIGPIPE, SIG_DFL);
  if (::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
      ::dup2(err, STDERR_FILENO) >= 0)
    ::execv("/proc/self/exe", words);
  ::_exit(127);
}

}  // namespace

foreign_process::foreign_process(pid_t child, files::descriptor out, files::descriptor err,
                                 process_limits limits)
    : child_(child), out_(std::move(out)), err_(std::move(err)), limits_(std::move(limits)) {}

foreign_process::foreign_process(foreign_process&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      limits_(std::move(other.limits_)),
      errors_(std::move(other.errors_)) {}

foreign_process::~foreign_process() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

result<foreign_process> foreign_process::start(const std::vector<std::string>& words,
                                               std::string_view input, process_limits limits) {
  auto in = memory_file(input);
  auto out = new_pipe();
  auto err = new_pipe();
  if (!in || !out || !err) return no_process();
  std::string self = "bitnet";
  std::vector<std::string> copies = words;
  std::vector<char*> pointers = {self.data()};
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return no_process();
  if (child == 0) become(pointers.data(), in->get(), out->to.get(), err->to.get());
  ::fcntl(err->from.get(), F_SETFL, O_NONBLOCK);
  return foreign_process(child, std::move(out->from), std::move(err->from), std::move(limits));
}

bool foreign_process::drain_errors() {
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t n = ::read(err_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    errors_.append(bytes.data(), static_cast<std::size_t>(n));
    if (errors_.size() > errors_kept) errors_.erase(0, errors_.size() - errors_kept);
  }
}

std::string foreign_process::last_lines() const {
  const std::size_t end = errors_.find_last_not_of(" \t\r\n.");
  if (end == std::string::npos) return "";
  std::size_t begin = end;
  for (int lines = 0; begin > 0 && lines < lines_shown; ++lines) {
    const std::size_t before = errors_.rfind('\n', begin - 1);
    begin = before == std::string::npos ? 0 : before;
  }
  std::string out;
  for (const char c : errors_.substr(begin, end - begin + 1))
    if (c != '\n')
      out += c;
    else if (!out.empty())
      out += " | ";
  return fmt::format("{}{}", last_words, text::printable(out, longest_text_shown));
}

std::string foreign_process::how_it_ended() {
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (::waitpid(child_, &status, WNOHANG) != child_) {
    drain_errors();  // the child may block on a full pipe
    if (std::chrono::steady_clock::now() - begin > longest_end)
      return "it closed its pipe and still runs";  // the destructor ends it
    ::poll(nullptr, 0, end_look_ms);
  }
  child_ = -1;
  drain_errors();
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({}) ended it", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("it ended with exit status {}", WEXITSTATUS(status));
}

failure foreign_process::explained(failure why) {
  if (why.exit_code == exit_code::no_comparison &&
      why.message.find(last_words) == std::string::npos) {
    drain_errors();
    why.message += last_lines();
  }
  return why;
}

result<void> foreign_process::wait_for_more(std::string_view doing) {
  const auto begin = std::chrono::steady_clock::now();
  bool has_errors = true;
  for (;;) {
    std::array<pollfd, 2> watched = {pollfd{out_.get(), POLLIN, 0},
                                     pollfd{has_errors ? err_.get() : -1, POLLIN, 0}};
    const int ready = ::poll(watched.data(), watched.size(), look_ms);
    if (ready < 0 && errno != EINTR)
      return fail(exit_code::failure, fmt::format("poll: {}", limits::reason(errno)));
    if (limits_.stop && limits_.stop()) return fail(exit_code::interrupted, "");
    if (ready > 0 && watched[1].revents != 0) has_errors = drain_errors();
    if (ready > 0 && watched[0].revents != 0) return {};
    if (std::chrono::steady_clock::now() - begin > limits_.patience)
      return fail(exit_code::no_comparison,
                  fmt::format("the other engine wrote nothing for {} s while {}; raise "
                              "--engine-timeout to wait longer{}",
                              std::chrono::duration<double>(limits_.patience).count(), doing,
                              last_lines()));
  }
}

result<void> foreign_process::read(std::span<std::byte> to, std::string_view doing) {
  while (!to.empty()) {
    if (auto ready = wait_for_more(doing); !ready) return ready;
    const ssize_t n = ::read(out_.get(), to.data(), to.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (limits_.stop && limits_.stop()) return fail(exit_code::interrupted, "");
      const std::string ended = how_it_ended();
      return fail(exit_code::no_comparison,
                  fmt::format("the other engine stopped writing while {}: {}{}", doing, ended,
                              last_lines()));
    }
    to = to.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace bitnet::host::crossval
