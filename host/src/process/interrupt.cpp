#include "process/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "basic/result.hpp"
#include "log/log_queue.hpp"

namespace bitnet::host::interrupt {
namespace {

// The signal handler uses these: lock-free atomics only.
std::atomic<bool> asked{false};
std::atomic<bool> inside_scope{false};
std::atomic<bool> for_good{false};
std::atomic<bitnet_session*> target{nullptr};
std::array<int, 2> wake{-1, -1};  // a pipe: the handler writes, wait_readable() watches
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<bitnet_session*>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  const int saved = errno;
  if (!inside_scope.load() || asked.exchange(true)) {
    settle_logs();
    _exit(exit_code::interrupted);
  }
  if (bitnet_session* session = target.load()) bitnet_session_cancel(session);
  (void)!::write(wake[1], "", 1);  // a full pipe is readable as well
  errno = saved;
}

}  // namespace

void install() {
  (void)!::pipe2(wake.data(), O_CLOEXEC | O_NONBLOCK);
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // only wait_readable() waits for input
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  action.sa_flags = 0;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

void take_termination() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
}

bool requested() {
  return asked.load() || for_good.load();
}

void request_for_good() {
  for_good.store(true);
  (void)!::write(wake[1], "", 1);
}

bool wait_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return wait_readable(std::span(&watched, 1));
}

bool wait_readable(std::span<pollfd> watched) {
  std::array<pollfd, 9> all{};  // the last one is the pipe
  const auto end =
      std::ranges::copy(watched.first(std::min(watched.size(), all.size() - 1)), all.begin()).out;
  *end = {wake[0], POLLIN, 0};
  const auto n = static_cast<std::size_t>(end - all.begin());
  while (!requested()) {
    const int ready = ::poll(all.data(), n + 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    std::ranges::copy(std::span(all).first(n), watched.begin());
    const auto is_ready = [](const pollfd& one) { return one.revents != 0; };
    if (ready < 0 || std::ranges::any_of(watched, is_ready)) return !requested();
  }
  return false;
}

scope::scope(bitnet_session* session) {
  asked.store(false);
  for (std::array<char, 16> old; ::read(wake[0], old.data(), old.size()) > 0;) {
  }
  bitnet_session_clear_cancel(session);
  target.store(session);
  inside_scope.store(true);
}

scope::~scope() {
  inside_scope.store(false);
  target.store(nullptr);
}

}  // namespace bitnet::host::interrupt
