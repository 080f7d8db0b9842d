#include "interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "result.hpp"

namespace bitnet::host::interrupt {
namespace {

// Touched by the signal handler: lock-free atomics only.
std::atomic<bool> asked{false};
std::atomic<bool> inside_scope{false};
std::atomic<bitnet_session*> target{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<bitnet_session*>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  const int saved = errno;
  if (!inside_scope.load() || asked.exchange(true)) _exit(exit_code::interrupted);
  if (bitnet_session* session = target.load()) bitnet_session_cancel(session);
  errno = saved;
}

}  // namespace

void install() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a waiting read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

bool requested() {
  return asked.load();
}

scope::scope(bitnet_session* session) {
  asked.store(false);
  target.store(session);
  inside_scope.store(true);
}

scope::~scope() {
  inside_scope.store(false);
  target.store(nullptr);
}

}  // namespace bitnet::host::interrupt
