#include "process/run_program.hpp"
#include "system/limits.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace bitnet::host {
namespace {

// Reads until the other end closes; false beyond the limit.
bool read_all(int from, std::string& to, std::size_t limit) {
  std::array<char, 16384> bytes{};
  for (;;) {
    const ssize_t n = read(from, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (to.size() + static_cast<std::size_t>(n) > limit) return false;
    to.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string sibling_program(const std::string& name) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string path = (self.parent_path() / name).string();
  return !self.empty() && access(path.c_str(), X_OK) == 0 ? path : "";
}

result<program_output> run_program(const std::string& program, std::vector<std::string> arguments,
                                   std::size_t limit) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(exit_code::failure, fmt::format("no pipe is left: {}", limits::reason(errno)));
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  // fork() instead of posix_spawn(), which wants the environment as an argument; the child inherits
  // it.
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) >= 0) execv(program.c_str(), words.data());
    _exit(run_program_failed);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return fail(exit_code::failure,
                fmt::format("{} cannot be started: {}", program, limits::shortage(errno)));
  }
  program_output out;
  const bool whole = read_all(ends[0], out.text, limit);
  if (!whole) kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole)
    return fail(exit_code::failure, fmt::format("{} wrote more than {} bytes", program, limit));
  constexpr int signalled = 128;
  out.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : signalled + WTERMSIG(status);
  return out;
}

}  // namespace bitnet::host
