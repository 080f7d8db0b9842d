// bitnet-backend-probe: probes a plugin in a process of its own. libbitnet starts it as a broker,
// and the broker starts it as the child that runs the plugin; both pass it a socket.

#include <cstdio>
#include <string_view>

#include "probe/broker.hpp"
#include "probe/child.hpp"

#ifdef BITNET_SANITIZED
// A crash of a plugin must show its signal, not a sanitizer's exit status.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define BITNET_PLAIN_SIGNALS \
  "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"
extern "C" const char* __asan_default_options() {
  return BITNET_PLAIN_SIGNALS ":detect_leaks=0";
}
// Without a symbolizer process, which would look like a process that the plugin left.
extern "C" const char* __tsan_default_options() {
  return BITNET_PLAIN_SIGNALS ":symbolize=0:suppressions=" BITNET_TSAN_SUPPRESSIONS;
}
extern "C" const char* __ubsan_default_options() {
  return BITNET_PLAIN_SIGNALS;
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

constexpr const char* usage =
    "Usage: bitnet-backend-probe --help\n\n"
    "Opens one backend, lists its devices, tests its kernels and closes it, in a process of its "
    "own.\n"
    "libbitnet starts it with a socket (descriptor 3), on which it receives the name of the "
    "backend.\n"
    "Started by hand, it does nothing. To probe a backend anew:\n\n"
    "  bitnet backends probe --all --fresh -v\n\n"
    "To debug one, set the debugger to follow children: docs/how-to/debug-a-backend.md.\n";

int main(int n_arguments, char** arguments) {
  using namespace bitnet::probe;
  const std::string_view word = n_arguments > 1 ? arguments[1] : "";
  if (word == "--help" || word == "-h") {
    std::fputs(usage, stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  const bool is_broker =
      n_arguments > 1 && std::string_view(arguments[1]) == std::string_view(broker_argument);
  const int status = is_broker ? serve_as_broker(task_fd) : serve(task_fd);
  if (status == exit_no_task)
    std::fputs("bitnet-backend-probe: it received no task; see --help\n", stderr);
  return status;
}
