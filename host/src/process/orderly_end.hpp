#pragma once
// Makes the program end when its work is done, neither earlier nor much later.
//
// Backends run in this process. If one calls exit(), an incomplete text would look complete; if one
// hangs while it closes, the shell would wait forever.

#include <chrono>

namespace bitnet::host::orderly_end {

// Call it once, before all else: from now on an unannounced exit() ends with exit code 1 and a
// message. It cannot catch _exit().
void expect();

// The work is done with this exit code; the rest may take `longest_end`, then the process ends.
void announce(int exit_code);

// While alive: closing may take `longest_end`, then the process ends with exit code 1 and a message
// that names what was being closed. May be nested; the outermost counts.
class closing {
 public:
  explicit closing(const char* what);
  ~closing();
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
};

inline constexpr std::chrono::seconds longest_end{30};

}  // namespace bitnet::host::orderly_end
