#pragma once
// Ctrl-C: the first one asks the running work to stop, the second exits at once with code 130.
// Outside a scope the first one exits.

#include <poll.h>

#include <span>

#include "bitnet/bitnet.h"

namespace bitnet::host::interrupt {

// Installs the handler, and makes writes to a closed pipe fail instead of killing the program.
void install();

// Makes SIGTERM act like Ctrl-C, for commands that a job scheduler ends.
void take_termination();

[[nodiscard]] bool requested();
// Any thread. requested() is true from now on, in new scopes too.
void request_for_good();

// Waits until the descriptor is readable or at its end. Returns false once requested() is true,
// whichever thread took the signal, even shortly before this call.
[[nodiscard]] bool wait_readable(int descriptor);
// The same for at most 8 descriptors; their revents say which are readable.
[[nodiscard]] bool wait_readable(std::span<pollfd> watched);

// While alive, the first Ctrl-C sets requested() and cancels the session, if there is one.
// requested() is false at first. One scope at a time.
class scope {
 public:
  explicit scope(bitnet_session* session = nullptr);
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
};

}  // namespace bitnet::host::interrupt
