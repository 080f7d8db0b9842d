#include "probe/helper_process.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

#include "base/new_thread.hpp"
#include "plugin/codes/text.hpp"
#include "probe/child.hpp"
#include "system/limits.hpp"

extern "C" {            // this header of glibc 2.36 lacks it
#include <sys/pidfd.h>  // NOLINT(llvm-include-order)
}

namespace bitnet::probe {
namespace {

using plugin::file_descriptor;

constexpr std::size_t most_message_bytes = std::size_t{64} << 10;

std::string reason_of(int error) {
  return error == EAGAIN || error == ENOMEM ? shortage_text(error) : limits::reason(error);
}

std::unexpected<plugin::defect> system_error(const char* call) {
  return std::unexpected(no_helper(fmt::format("{}: {}", call, reason_of(errno))));
}

class left_alone {
 public:
  static left_alone& all() {
    static left_alone one;
    return one;
  }
  void add(pid_t pid) {
    const std::scoped_lock lock(mutex_);
    pids_.push_back(pid);
  }
  void reap() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;  // guards pids_
  std::vector<pid_t> pids_;
};

// Moves a descriptor above the numbers that the helper's descriptors get.
file_descriptor above_standard(int fd) {
  constexpr int first = 10;
  const file_descriptor low(fd);
  return file_descriptor(fcntl(fd, F_DUPFD_CLOEXEC, first));
}

// Owns the file actions and attributes of posix_spawn.
class spawn_settings {
 public:
  spawn_settings(const helper_start& how, int socket, int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      if (how.keep_output)
        posix_spawn_file_actions_adddup2(&files_, output, stream);
      else
        posix_spawn_file_actions_addopen(&files_, stream, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, socket, task_fd);
    posix_spawn_file_actions_addclosefrom_np(&files_, task_fd + 1);
    // A process that outlives its starter must not block the starter's folder.
    if (how.own_session) posix_spawn_file_actions_addchdir_np(&files_, "/");
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);  // processes that it starts end with it
    const int place = how.own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | place));
  }
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* files() const { return &files_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

// Returns 0, or the errno of the failed start.
int spawn(const std::filesystem::path& program, const helper_start& how, const spawn_settings& with,
          pid_t& pid) {
  std::string name = how.helper.filename().string();
  std::string argument = how.argument;
  std::vector<std::string> environment = how.environment;
  std::vector<char*> arguments = {name.data(), argument.data(), nullptr};
  std::vector<char*> variables;
  variables.reserve(environment.size() + 1);
  for (std::string& one : environment) variables.push_back(one.data());
  variables.push_back(nullptr);
  return posix_spawn(&pid, program.c_str(), with.files(), with.attributes(), arguments.data(),
                     variables.data());
}

}  // namespace

plugin::defect no_helper(const std::string& why) {
  return {plugin::code::probe_helper, BITNET_UNAVAILABLE,
          fmt::format("unprobed: not loaded; {}", why), ""};
}

plugin::checked<helper_process> start_helper(const helper_start& how, std::string_view message) {
  const auto trusted = plugin::open_trusted(how.helper);
  if (!trusted) return std::unexpected(no_helper(trusted.error().reason));
  if (message.size() > most_message_bytes)
    return std::unexpected(no_helper("its settings have more than 64 KiB"));
  helper_process out;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("socketpair");
  out.socket = file_descriptor(ends[0]);
  const file_descriptor theirs = above_standard(ends[1]);
  file_descriptor their_output;
  if (how.keep_output) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return system_error("pipe2");
    out.output = file_descriptor(pipe_ends[0]);
    their_output = above_standard(pipe_ends[1]);
    fcntl(out.output.get(), F_SETFL, O_NONBLOCK);
  }
  const spawn_settings with(how, theirs.get(), their_output.get());
  if (const int failed = spawn(trusted->path, how, with, out.pid); failed != 0)
    return std::unexpected(no_helper(fmt::format(
        "cannot run {}: {}", plugin::printable(how.helper.string(), 400), reason_of(failed))));
  out.process = file_descriptor(pidfd_open(out.pid, 0));
  const ssize_t sent = out.process.get() < 0 ? -1
                                             : send(out.socket.get(), message.data(),
                                                    message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size())) {
    const int error = errno;
    kill(out.pid, SIGKILL);
    waitpid(out.pid, nullptr, 0);
    return std::unexpected(
        no_helper(fmt::format("the helper takes no task: {}", reason_of(error))));
  }
  return out;
}

void signal_all(const helper_process& p, int number) {
  pidfd_send_signal(p.process.get(), number, nullptr, 0);
  // The group keeps its number until the process is reaped.
  kill(-p.pid, number);
}

void leave_alone(pid_t pid) {
  left_alone::all().add(pid);
}

void reap_left_alone() {
  left_alone::all().reap();
}

}  // namespace bitnet::probe
