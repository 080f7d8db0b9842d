#pragma once
// Ctrl-C: the first asks what is running to stop, the second leaves at once with exit code 130.
// Outside of a scope the first one leaves.

#include <poll.h>

#include <span>

#include "bitnet/bitnet.h"

namespace bitnet::host::interrupt {

// Installs the handler, and has writes to a closed pipe fail instead of killing the program.
void install();

// From now on SIGTERM does what Ctrl-C does: for commands that a scheduler of jobs ends.
void take_termination();

[[nodiscard]] bool requested();
// Any thread. requested() is true from now on, in new scopes as well.
void request_for_good();

// Waits until the descriptor can be read (or is at its end): true. False once requested(),
// whichever thread took the signal and however shortly before this call.
[[nodiscard]] bool wait_readable(int descriptor);
// The same of several, at most 8: which of them can be read is in their revents.
[[nodiscard]] bool wait_readable(std::span<pollfd> watched);

// While alive, the first Ctrl-C sets requested() and cancels the session, if there is one. Begins
// with requested() false. One at a time.
class scope {
 public:
  explicit scope(bitnet_session* session = nullptr);
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
};

}  // namespace bitnet::host::interrupt
