// bitnet-backend-probe: looks at one plugin so that the program itself need not run it. Started by
// libbitnet as a broker, and by a broker as the child that runs the plugin; both hand it a socket.

#include <string_view>

#include "probe/broker.hpp"
#include "probe/child.hpp"

#ifdef BITNET_SANITIZED
// A plugin that crashes must look like one: by the signal, not by a sanitizer's exit status.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define BITNET_PLAIN_SIGNALS \
  "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"
extern "C" const char* __asan_default_options() {
  return BITNET_PLAIN_SIGNALS ":detect_leaks=0";
}
// Nor may a process that looks symbols up be taken for one that the plugin left behind.
extern "C" const char* __tsan_default_options() {
  return BITNET_PLAIN_SIGNALS ":symbolize=0:suppressions=" BITNET_TSAN_SUPPRESSIONS;
}
extern "C" const char* __ubsan_default_options() {
  return BITNET_PLAIN_SIGNALS;
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

int main(int n_arguments, char** arguments) {
  using namespace bitnet::probe;
  const bool is_broker =
      n_arguments > 1 && std::string_view(arguments[1]) == std::string_view(broker_argument);
  return is_broker ? serve_as_broker(task_fd) : serve(task_fd);
}
