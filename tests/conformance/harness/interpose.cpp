#include "harness/interpose.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <string>

#include "harness/channel.hpp"
#include "harness/plugin.hpp"

namespace {

std::atomic<bool> watching{false};

// Says it if the call came out of the plugin.
void look(const char* name, const void* caller) {
  if (!watching.load() || !bitnet::conformance::inside_plugin(caller)) return;
  const std::string text = std::string("it called ") + name;
  bitnet::conformance::channel::breach("hygiene", name, text.c_str());
}

// The definition that ours hides.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace bitnet::conformance {

void watch_calls() {
  watching = true;
}

}  // namespace bitnet::conformance

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

#define BITNET_CALLER __builtin_return_address(0)
#define BITNET_SEEN __attribute__((visibility("default"), used, noinline))

BITNET_SEEN void abort() noexcept {
  look("abort", BITNET_CALLER);
  signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
  for (;;) syscall(SYS_exit_group, 134);
}
BITNET_SEEN void exit(int status) noexcept {
  look("exit", BITNET_CALLER);
  next<void(int)>("exit")(status);
  for (;;) syscall(SYS_exit_group, status);
}
BITNET_SEEN void _exit(int status) {
  look("_exit", BITNET_CALLER);
  for (;;) syscall(SYS_exit_group, status);
}
BITNET_SEEN int setenv(const char* name, const char* value, int overwrite) noexcept {
  look("setenv", BITNET_CALLER);
  return next<int(const char*, const char*, int)>("setenv")(name, value, overwrite);
}
BITNET_SEEN int unsetenv(const char* name) noexcept {
  look("unsetenv", BITNET_CALLER);
  return next<int(const char*)>("unsetenv")(name);
}
BITNET_SEEN int putenv(char* text) noexcept {
  look("putenv", BITNET_CALLER);
  return next<int(char*)>("putenv")(text);
}
BITNET_SEEN char* setlocale(int category, const char* locale) noexcept {
  if (locale != nullptr) look("setlocale", BITNET_CALLER);
  return next<char*(int, const char*)>("setlocale")(category, locale);
}
BITNET_SEEN int chdir(const char* path) noexcept {
  look("chdir", BITNET_CALLER);
  return next<int(const char*)>("chdir")(path);
}
BITNET_SEEN mode_t umask(mode_t mask) noexcept {
  look("umask", BITNET_CALLER);
  return next<mode_t(mode_t)>("umask")(mask);
}
#if !defined(BITNET_SANITIZED)  // whose runtime has these two already
BITNET_SEEN sighandler_t signal(int number, sighandler_t handler) noexcept {
  look("signal", BITNET_CALLER);
  return next<sighandler_t(int, sighandler_t)>("signal")(number, handler);
}
BITNET_SEEN int sigaction(int number, const struct sigaction* now, struct sigaction* old) noexcept {
  if (now != nullptr) look("sigaction", BITNET_CALLER);
  return next<int(int, const struct sigaction*, struct sigaction*)>("sigaction")(number, now, old);
}
#endif

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
